"""The tables of an index of occurrences, in LanceDB.

`occurrences` has one row per occurrence: token, sentence, position, document, the vector at length 1, and the length
that it had; `sentences` one per sentence, in the order of their numbers: its text, kept once for all its words, and
where they stand in it. The document stands with each occurrence, so that they can be filtered by it, and takes next to
nothing.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import reduce
from operator import and_
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

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


class Drawn(NamedTuple):
    """Occurrences in the order of the corpus, and how many there are in all."""

    documents: Counter[str]  # of all, in each document
    sentences: list[int]  # the number of each one's sentence
    occurrences: list[Occurrence]  # with the vectors that were indexed


class Tables:
    """Both tables, in the folder of an index."""

    def __init__(
        self, folder: Path, width: int, *, create: bool = False, documents: Mapping[str, dict[str, str]] | None = None
    ) -> None:
        lancedb = import_lancedb()
        self.folder, self.width, self.documents = folder, width, documents or {}
        with self._access(write=create):
            database = lancedb.connect(folder, session=lancedb.Session(INDEX_CACHE, METADATA_CACHE))
            self.occurrences, self.sentences = (
                database.create_table(name, schema=schema, exist_ok=True) if create else database.open_table(name)
                for name, schema in _schemas(width).items()
            )

    def remove_from(self, sentence: int) -> None:
        """Remove what a build that broke off had written but not committed: this sentence and all that follow."""
        with self._access(write=True):
            for table in (self.occurrences, self.sentences):
                table.delete(f"sentence >= {sentence}")

    def check(self, *, rows: int, sentences: int) -> None:
        """Refuse tables that do not hold what was committed."""
        with self._access():
            found = len(self.occurrences), len(self.sentences)
        if found != (rows, sentences):
            held, said = f"{found[0]:,} occurrences in {found[1]:,} sentences", f"{rows:,} in {sentences:,}"
            raise DataError(f"{self.folder}: damaged: {held}, where manifest.json says {said}. Build the index anew")

    def add(self, contexts: Sequence[Context], vectors: Sequence[Vectors], *, first: int) -> None:
        """Append sentences, numbered from `first` on, and their occurrences; vectors are (T, D) each."""
        with self._access(write=True):
            self.sentences.add(_sentence_rows(contexts, first))
            self.occurrences.add(_occurrence_rows(contexts, vectors, first))

    def finish(self, *, approximate: bool) -> None:
        """Join the many small files; index the columns if there are so many rows that it pays."""
        from lancedb.index import BTree, IvfRq

        with self._access(write=True):
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
        with self._access():  # count_rows would want it as SQL
            return len(self.occurrences.search().where(wanted).select(["position"]).limit(most).to_arrow())

    def nearest(self, vector: Vectors, k: int, wanted: Any | None, *, exact: bool) -> list[NearOccurrence]:
        """The k occurrences with the highest cosines among those that a filter lets through, in falling order."""
        query = self.occurrences.search(_padded(vector), vector_column_name="vector").distance_type("cosine").limit(k)
        query = query.bypass_vector_index() if exact else query.nprobes(PROBES).refine_factor(REFINE)
        with self._access():
            found = (query if wanted is None else query.where(wanted)).to_arrow()
            cosines = (1 - distance for distance in found["_distance"].to_pylist())
            return list(map(NearOccurrence, self._occurrences(found), cosines))

    def drawn(self, wanted: Any, *, limit: int, seed: int = 0) -> Drawn:
        """At most so many occurrences of those that a filter lets through, drawn evenly."""
        query = self.occurrences.search().where(wanted).select(["document"]).with_row_id(True)
        with self._access():
            all_of_them = query.to_arrow()
            numbers = Random(seed).sample(all_of_them["_rowid"].to_pylist(), min(limit, len(all_of_them)))
            found = self.occurrences.take_row_ids(sorted(numbers)).to_arrow()
            found = found.sort_by([("sentence", "ascending"), ("position", "ascending")])
            units = zip(self._occurrences(found), found["length"].to_pylist(), strict=True)
        occurrences = [one._replace(vector=one.vector * np.float32(length)) for one, length in units]
        return Drawn(Counter(all_of_them["document"].to_pylist()), found["sentence"].to_pylist(), occurrences)

    def _occurrences(self, found: Any) -> list[Occurrence]:
        """The occurrences that rows are of, in their sentences, with their vectors at length 1."""
        rows = found.select(["sentence", "position", "document"]).to_pylist()
        numbers = sorted({row["sentence"] for row in rows})
        sentences = {row["sentence"]: row for row in self.sentences.take_offsets(numbers).to_arrow().to_pylist()}
        contexts: dict[int, Context] = {}
        for row in rows:
            if row["sentence"] not in contexts:
                sentence = sentences[row["sentence"]]
                text, bounds = sentence["text"], zip(sentence["starts"], sentence["ends"], strict=True)
                tokens = [Token(text[start:end], start, end) for start, end in bounds]
                metadata = self.documents.get(row["document"], {})
                contexts[row["sentence"]] = Context(text, tokens, row["document"], metadata)
        vectors = found["vector"].combine_chunks().flatten().to_numpy()
        units = vectors.reshape(len(rows), self.width + -self.width % WIDTH_STEP)[:, : self.width].copy()  # (rows, D)
        pairs = zip(rows, units, strict=True)
        return [Occurrence(contexts[row["sentence"]], row["position"], vector) for row, vector in pairs]

    def vectors(self, wanted: Any | None = None) -> Iterator[tuple[list[str], Vectors]]:
        """The tokens and vectors of all occurrences, or of those that a filter lets through, some at a time."""
        query = self.occurrences.search().select(["token", "length", "vector"])
        with self._access():
            for batch in (query if wanted is None else query.where(wanted)).to_batches():
                units = batch["vector"].flatten().to_numpy().reshape(len(batch), -1)[:, : self.width]  # (rows, D)
                yield batch["token"].to_pylist(), units * batch["length"].to_numpy()[:, None]

    def values(self, column: str) -> Counter[str]:
        """How often each value of a column occurs."""
        counts: Counter[str] = Counter()
        with self._access():
            for batch in self.occurrences.search().select([column]).to_batches():
                counts.update(batch[column].to_pylist())
        return counts

    @contextmanager
    def _access(self, *, write: bool = False) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:  # LanceDB's
            reason = str(error).partition("\n")[0].partition(", /")[0]  # without the places in its source
            if write:
                raise OutputError(f"{self.folder}: the index cannot be written here: {reason}") from error
            raise DataError(f"{self.folder}: damaged: {reason}. Build the index anew") from error


def filter_rows(**wanted: str | None) -> Any:
    """An expression of LanceDB's, which needs no quoting: every column that is given has the value given."""
    from lancedb.expr import col, lit

    conditions = [col(name) == lit(value) for name, value in wanted.items() if value is not None]
    return reduce(and_, conditions) if conditions else None


def import_lancedb() -> Any:
    """LanceDB, or how to get it."""
    try:
        import lancedb
    except ImportError:
        raise MissingExtraError("the index needs lancedb", "search") from None
    return lancedb


def _schemas(width: int) -> dict[str, Any]:
    import pyarrow as pa

    vector, bounds = pa.list_(pa.float32(), width + -width % WIDTH_STEP), pa.list_(pa.int32())
    where = {"token": pa.string(), "sentence": pa.int64(), "position": pa.int32(), "document": pa.string()}
    return {
        "occurrences": pa.schema({**where, "vector": vector, "length": pa.float32()}),
        "sentences": pa.schema({"sentence": pa.int64(), "text": pa.string(), "starts": bounds, "ends": bounds}),
    }


def _occurrence_rows(contexts: Sequence[Context], vectors: Sequence[Vectors], first: int) -> Any:
    import pyarrow as pa

    lengths = [len(context.tokens) for context in contexts]
    flat = np.concatenate(vectors)  # (rows, D)
    units = _padded(unit_vectors(flat))  # (rows, D or a little wider)
    columns = {
        "token": [token.text for context in contexts for token in context.tokens],
        "sentence": np.repeat(np.arange(first, first + len(lengths)), lengths),
        "position": np.concatenate([np.arange(length, dtype=np.int32) for length in lengths]),
        "document": [context.document for context in contexts for _ in context.tokens],
        "vector": pa.FixedSizeListArray.from_arrays(units.ravel(), units.shape[1]),
        "length": np.linalg.norm(flat, axis=-1),
    }
    return pa.table(columns, schema=_schemas(units.shape[1])["occurrences"])


def _sentence_rows(contexts: Sequence[Context], first: int) -> Any:
    """Of a sentence so long that it was read in pieces, the text of the piece alone."""
    import pyarrow as pa

    rows = []
    for number, (text, tokens, *_) in enumerate(contexts, first):
        start, end = (tokens[0].start, tokens[-1].end) if tokens else (0, 0)
        bounds = {"starts": [token.start - start for token in tokens], "ends": [token.end - start for token in tokens]}
        rows.append({"sentence": number, "text": text[start:end], **bounds})
    return pa.Table.from_pylist(rows, schema=_schemas(1)["sentences"])


def _padded(vectors: Vectors) -> Vectors:
    """With zeros at the end, which change no cosine, up to a width that can be indexed."""
    missing = -vectors.shape[-1] % WIDTH_STEP
    return np.pad(vectors, [(0, 0)] * (vectors.ndim - 1) + [(0, missing)])
