"""The tables of an index of occurrences, in LanceDB.

| table | what it holds |
|---|---|
| occurrences | one row per occurrence: token, sentence, position, document, and the vector at length 1 |
| sentences | one row per sentence: its text, and where its tokens stand in it |

A sentence of 25 words has 25 occurrences: its text is kept once, in the row of its number, and not 25 times. The
document stands with each occurrence, so that they can be filtered by it; a column that says the same a thousand times
over takes next to nothing.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embedder import Vectors
from elmokit.errors import DataError, MissingExtraError, OutputError
from elmokit.lexicon.neighbors import NearOccurrence
from elmokit.lexicon.occurrences import Occurrence, unit_vectors
from elmokit.text.corpus import Context
from elmokit.text.tokenizers import Token

INDEX_CACHE, METADATA_CACHE = 256 << 20, 64 << 20  # bytes; left to itself, LanceDB takes gigabytes
PARTITION_ROWS, PROBES = 4096, 64  # the nearest quarter of a million rows is looked at
REFINE = 20  # as many times k are compared exactly, of those that come nearest by one bit a dimension
WIDTH_STEP = 8  # RaBitQ wants widths that it divides
AT_ONCE = timedelta(milliseconds=1)


class Tables:
    """Both tables, in the folder of an index."""

    def __init__(self, folder: Path, width: int, *, create: bool = False) -> None:
        lancedb = import_lancedb()
        self.folder, self.width = folder, width
        with self._writing() if create else self._reading():
            database = lancedb.connect(folder, session=lancedb.Session(INDEX_CACHE, METADATA_CACHE))
            self.occurrences, self.sentences = (
                database.create_table(name, schema=schema, exist_ok=True) if create else database.open_table(name)
                for name, schema in _schemas(width).items()
            )

    def remove_from(self, sentence: int) -> None:
        """Remove what a build that broke off had written but not committed: this sentence and all that follow."""
        with self._writing():
            for table in (self.occurrences, self.sentences):
                table.delete(f"sentence >= {sentence}")

    def check(self, *, rows: int, sentences: int) -> None:
        """Refuse tables that do not hold what was committed."""
        with self._reading():
            found = len(self.occurrences), len(self.sentences)
        if found != (rows, sentences):
            raise DataError(
                f"{self.folder}: damaged: {found[0]:,} occurrences in {found[1]:,} sentences, where manifest.json says "
                f"{rows:,} in {sentences:,}. Build the index anew"
            )

    def add(self, contexts: Sequence[Context], vectors: Sequence[Vectors], *, first: int) -> None:
        """Append sentences, numbered from `first` on, and their occurrences; vectors are (T, D) each."""
        with self._writing():
            self.sentences.add(_sentence_rows(contexts, first))
            self.occurrences.add(_occurrence_rows(contexts, vectors, first))

    def finish(self, *, approximate: bool) -> None:
        """Join the many small files; index the columns if there are so many rows that it pays."""
        from lancedb.index import BTree, IvfRq

        with self._writing():
            for table in (self.occurrences, self.sentences):
                table.optimize()
                time.sleep(2 * AT_ONCE.total_seconds())  # what was written last must be old enough to go
                # nobody else writes here, so what builds that broke off have left can go at once
                table.optimize(cleanup_older_than=AT_ONCE, delete_unverified=True)
            if approximate:
                partitions = -(-len(self.occurrences) // PARTITION_ROWS)
                self.occurrences.create_index("vector", config=IvfRq(distance_type="cosine", num_partitions=partitions))
                for column in ("token", "document"):
                    self.occurrences.create_index(column, config=BTree())

    def count(self, wanted: Any, *, most: int) -> int:
        """Occurrences that a filter lets through, counted up to so many."""
        query = self.occurrences.search().where(wanted).select(["position"])  # count_rows would want it as SQL
        with self._reading():
            return len(query.limit(most).to_arrow())

    def nearest(self, vector: Vectors, k: int, wanted: Any | None, *, exact: bool) -> list[NearOccurrence]:
        """The k occurrences with the highest cosines among those that a filter lets through, in falling order."""
        query = self.occurrences.search(_padded(vector), vector_column_name="vector").distance_type("cosine").limit(k)
        query = query.bypass_vector_index() if exact else query.nprobes(PROBES).refine_factor(REFINE)
        with self._reading():
            rows = (query if wanted is None else query.where(wanted)).to_arrow().to_pylist()
            numbers = sorted({row["sentence"] for row in rows})
            sentences = {row["sentence"]: row for row in self.sentences.take_offsets(numbers).to_arrow().to_pylist()}
        return [self._found(row, sentences[row["sentence"]]) for row in rows]

    def _found(self, row: dict[str, Any], sentence: dict[str, Any]) -> NearOccurrence:
        text, bounds = sentence["text"], zip(sentence["starts"], sentence["ends"], strict=True)
        context = Context(text, [Token(text[start:end], start, end) for start, end in bounds], row["document"])
        vector = np.array(row["vector"][: self.width], np.float32)
        return NearOccurrence(Occurrence(context, row["position"], vector), 1 - row["_distance"])

    def values(self, column: str) -> Counter[str]:
        """How often each value of a column occurs."""
        counts: Counter[str] = Counter()
        with self._reading():
            for batch in self.occurrences.search().select([column]).to_batches():
                counts.update(batch[column].to_pylist())
        return counts

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:  # LanceDB's
            raise DataError(f"{self.folder}: damaged: {_reason(error)}. Build the index anew") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:
            raise OutputError(f"{self.folder}: the index cannot be written here: {_reason(error)}") from error


def import_lancedb() -> Any:
    """LanceDB, or how to get it."""
    try:
        import lancedb
    except ImportError:
        raise MissingExtraError('the index needs lancedb: pip install "elmokit[search]"') from None
    return lancedb


def _schemas(width: int) -> dict[str, Any]:
    import pyarrow as pa

    vector, bounds = pa.list_(pa.float32(), width + -width % WIDTH_STEP), pa.list_(pa.int32())
    where = {"token": pa.string(), "sentence": pa.int64(), "position": pa.int32(), "document": pa.string()}
    return {
        "occurrences": pa.schema({**where, "vector": vector}),
        "sentences": pa.schema({"sentence": pa.int64(), "text": pa.string(), "starts": bounds, "ends": bounds}),
    }


def _occurrence_rows(contexts: Sequence[Context], vectors: Sequence[Vectors], first: int) -> Any:
    import pyarrow as pa

    lengths = [len(context.tokens) for context in contexts]
    units = _padded(unit_vectors(np.concatenate(vectors)))  # (rows, D or a little wider)
    columns = {
        "token": [token.text for context in contexts for token in context.tokens],
        "sentence": np.repeat(np.arange(first, first + len(lengths)), lengths),
        "position": np.concatenate([np.arange(length, dtype=np.int32) for length in lengths]),
        "document": [context.document for context in contexts for _ in context.tokens],
        "vector": pa.FixedSizeListArray.from_arrays(units.ravel(), units.shape[1]),
    }
    return pa.table(columns, schema=_schemas(units.shape[1])["occurrences"])


def _sentence_rows(contexts: Sequence[Context], first: int) -> Any:
    """Of a sentence so long that it was read in pieces, the text of the piece alone."""
    import pyarrow as pa

    rows = []
    for number, (text, tokens, _) in enumerate(contexts, first):
        start, end = (tokens[0].start, tokens[-1].end) if tokens else (0, 0)
        bounds = {"starts": [token.start - start for token in tokens], "ends": [token.end - start for token in tokens]}
        rows.append({"sentence": number, "text": text[start:end], **bounds})
    return pa.Table.from_pylist(rows, schema=_schemas(1)["sentences"])


def _padded(vectors: Vectors) -> Vectors:
    """With zeros at the end, which change no cosine, up to a width that can be indexed."""
    missing = -vectors.shape[-1] % WIDTH_STEP
    return np.pad(vectors, [(0, 0)] * (vectors.ndim - 1) + [(0, missing)])


def _reason(error: Exception) -> str:
    """The first line of what LanceDB says, without the places in its source."""
    return str(error).partition("\n")[0].partition(", /")[0]
