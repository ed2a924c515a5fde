"""The searchable index of occurrences: every word of a corpus where it stands, found by its meaning there.

A small corpus needs none: `neighbors` reads it each time. An index is built in a stream and goes on where it was broken
off, chunk by chunk: a chunk's sentences, then their occurrences, then the manifest, which says what is committed.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import reduce
from hashlib import blake2b
from itertools import islice
from operator import and_
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from elmokit.embedder import Embedder, Vectors
from elmokit.errors import ConfigError, DataError, OutputError
from elmokit.lexicon.corpus import LEAST_LIKENESS, SPELLINGS_COMPARED, Survey
from elmokit.lexicon.index_manifest import (
    EXACT_ROWS,
    MANIFEST,
    PARTIAL,
    Manifest,
    ModelId,
    Reading,
    check_model,
    read_manifest,
    write_manifest,
)
from elmokit.lexicon.index_tables import Batch, Tables, import_lancedb
from elmokit.lexicon.neighbors import NearOccurrence
from elmokit.lexicon.occurrences import Progress, no_progress, unit_vectors
from elmokit.text.brackets import BracketedWord
from elmokit.text.corpus import Context
from elmokit.text.inputs import in_chunks

CHUNK_TOKENS = 16_384  # committed together; embedded together too, so that batches are the same after a break
FEW_ROWS = 5000  # among a million, so many can be read and compared in the time that a search takes anyway


def build_index(
    corpus: Iterable[Context],
    embedder: Embedder,
    folder: Path,
    *,
    reading: Reading,
    exact_rows: int = EXACT_ROWS,
    progress: Progress = no_progress,
) -> Manifest:
    """Give every occurrence of every word a row; of a build that broke off, do what is left.

    The corpus is read twice: to count and recognise it, and to embed it. What is embedded is what `reading` says, which
    is written down for those who search.
    """
    if reading.layer == "all":
        raise ConfigError("words are compared by one layer or mix: 'all' is not one")
    import_lancedb()
    embedder.embed([], layers=reading.layer)  # refuses a layer that there is not
    total, digest = _survey(corpus)
    manifest = _begin(
        folder, Manifest(reading=reading, width=embedder.width, corpus=digest, total=total, exact_rows=exact_rows)
    )
    if manifest.finished:
        return manifest
    tables = Tables(folder, manifest.width, create=True)
    tables.cut(manifest)
    tables.check(manifest)
    for batch in _batches(corpus, embedder, manifest, progress):
        tables.add(batch, first=manifest.sentences)
        manifest = msgspec.structs.replace(
            manifest, sentences=manifest.sentences + len(batch.contexts), rows=manifest.rows + batch.rows
        )
        write_manifest(folder, manifest)
    if manifest.sentences != total:
        raise DataError("the corpus changed between two readings: pass a list or a TextCorpus, not a generator")
    tables.finish(approximate=manifest.rows > manifest.exact_rows)
    tables.check(manifest)
    manifest = msgspec.structs.replace(manifest, finished=True)
    write_manifest(folder, manifest)
    return manifest


def open_index(folder: Path, *, model: ModelId | None = None) -> "Index":
    """A finished index, to be searched with vectors of the model that built it."""
    manifest = read_manifest(folder)
    if model is not None:
        check_model(folder, manifest.reading.model, model)
    if not manifest.finished:
        raise DataError(
            f"{folder}: the index is unfinished ({manifest.sentences:,} of {manifest.total:,} sentences): "
            "give the same `elmokit index build` again to go on"
        )
    tables = Tables(folder, manifest.width)
    tables.check(manifest)
    return Index(folder, manifest, tables)


class Index:
    """Occurrences to be searched by meaning."""

    def __init__(self, folder: Path, manifest: Manifest, tables: Tables) -> None:
        self.folder, self.manifest, self.tables = folder, manifest, tables

    def search_word(
        self,
        query: BracketedWord,
        embedder: Embedder,
        *,
        k: int = 10,
        token: str | None = None,
        document: str | None = None,
    ) -> list[NearOccurrence]:
        """The k occurrences nearest to the marked word where it stands."""
        [vectors] = embedder.embed([query.context.words], layers=self.manifest.reading.layer)
        return self.search(vectors[query.position], k=k, token=token, document=document)

    def search(
        self, vector: Vectors, *, k: int = 10, token: str | None = None, document: str | None = None
    ) -> list[NearOccurrence]:
        """The k occurrences with the highest cosines: of all, of one word, of one document.

        All are compared in an index of no more rows than the manifest's `exact_rows`, and of a larger one where the
        filter leaves few; else those that seem nearest by a rough copy of the vectors.
        """
        if k < 1:
            raise ConfigError(f"k is {k}: it must be at least 1")
        unit, wanted, rows = self._unit(vector), _filter(token=token, document=document), self.manifest.rows
        count = rows if wanted is None else self.tables.count(wanted, most=FEW_ROWS + 1)
        if not count:
            self._refuse(token, document)
        return self.tables.nearest(unit, k, wanted, exact=rows <= self.manifest.exact_rows or count <= FEW_ROWS)

    def _unit(self, vector: Vectors) -> Vectors:
        vector = np.asarray(vector, np.float32)
        if vector.shape != (self.manifest.width,):
            raise ConfigError(f"the vector is {vector.shape}: those of {self.folder} are ({self.manifest.width},)")
        if not np.isfinite(vector).all() or not vector.any():
            raise ConfigError("the vector has no direction: it is all zeros, or not all numbers")
        return unit_vectors(vector)

    def _refuse(self, token: str | None, document: str | None) -> NoReturn:
        """Say why a filter lets nothing through."""
        if token is not None:
            Survey(self.tables.values("token"), self.manifest.sentences).check_word(token)
        known = [name for name, _ in self.tables.values("document").most_common(SPELLINGS_COMPARED)]
        if document in known:
            raise DataError(f"{document} has no word {token!r}: it is in other documents alone")
        near = get_close_matches(str(document), known, n=5, cutoff=LEAST_LIKENESS) or known[:5]
        raise DataError(f"{self.folder} has no document {document!r}; some that it has: {', '.join(near)}")


def _survey(corpus: Iterable[Context]) -> tuple[int, str]:
    """How many sentences a corpus has, and a hash of all that the rows depend on."""
    hashed, total = blake2b(digest_size=32), 0
    for total, context in enumerate(corpus, 1):  # noqa: B007
        hashed.update(msgspec.json.encode(context))
    if not total:
        raise DataError("the corpus holds no words")
    return total, hashed.hexdigest()


def _begin(folder: Path, wanted: Manifest) -> Manifest:
    """The manifest of the build to go on with, or of a new one."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file: an index is a folder")
    if not folder.exists() or all(file.name == PARTIAL for file in folder.iterdir()):
        write_manifest(folder, wanted)
        return wanted
    if not (folder / MANIFEST).exists():
        raise OutputError(f"{folder} is not empty, and not an index: choose another folder")
    found = read_manifest(folder)
    found.check_same(wanted, folder)
    return found


def _batches(corpus: Iterable[Context], embedder: Embedder, manifest: Manifest, progress: Progress) -> Iterator[Batch]:
    """What is not committed yet, embedded chunk by chunk."""
    waiting: list[Context] = []

    def words() -> Iterator[list[str]]:
        left = islice(corpus, manifest.sentences, None)
        for number, context in enumerate(left, manifest.sentences + 1):
            progress(number, manifest.total)
            waiting.append(context)
            yield context.words

    for chunk in in_chunks(words(), CHUNK_TOKENS):
        yield Batch(tuple(waiting), embedder.embed(chunk, layers=manifest.reading.layer))
        waiting.clear()


def _filter(**wanted: str | None) -> Any:
    """An expression of LanceDB's, which needs no quoting: every column that is given has the value given."""
    from lancedb.expr import col, lit

    conditions = [col(name) == lit(value) for name, value in wanted.items() if value is not None]
    return reduce(and_, conditions) if conditions else None
