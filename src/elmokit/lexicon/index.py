"""The searchable index of occurrences: every word of a corpus where it stands, found by its meaning there.

Of a small corpus `elmokit neighbors` keeps what it needs by itself (`cache.py`). An index is built in a stream and goes
on where it was broken off, chunk by chunk: a chunk's sentences, then their occurrences, then the manifest, which says
what is committed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Literal, NoReturn

import msgspec
import numpy as np

from elmokit.config import Tokenization
from elmokit.elmo import Elmo
from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.files import as_json, check_same_settings, contents, locked, parsing, read_json, replace_file
from elmokit.lexicon.index_tables import Drawn, Tables, filter_rows, import_lancedb
from elmokit.lexicon.neighbors import NearOccurrence, Neighbor, check_k, is_same, wanted_word, word_neighbors
from elmokit.lexicon.occurrences import MOST_TYPES, Survey, TypeVectors, near_spellings, unit_vectors
from elmokit.progress import SILENCE, Progress, tracked
from elmokit.text.brackets import BracketedWord, read_brackets
from elmokit.text.corpus import Context
from elmokit.text.inputs import in_chunks
from elmokit.text.tokenizers import get_tokenizer
from elmokit.vectors import Embedded

MANIFEST = "manifest.json"
MEANS = "words.safetensors"  # the mean vectors of the most frequent words
DOCUMENTS = "documents.json"  # what a table of metadata told of each document
EXACT_ROWS = 100_000
CHUNK_TOKENS = 16_384  # committed together; embedded together too, so that batches are the same after a break
FEW_ROWS = 5000  # among a million, so many can be read and compared in the time that a search takes anyway


class ModelId(msgspec.Struct, frozen=True):
    """Which model it is: where it can be loaded from, and a hash of all that its vectors depend on."""

    name: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name} ({self.digest[:12]})"


class Reading(msgspec.Struct, frozen=True):
    """How the text was read."""

    model: ModelId
    layer: Layers
    tokenizer: Tokenization


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of an index beside its rows."""

    format: Literal["elmokit index"] = "elmokit index"
    version: Literal[2] = 2
    reading: Reading
    width: int  # of a vector
    corpus: str  # a hash of all sentences, tokens and documents
    total: int  # sentences of the corpus
    exact_rows: int = EXACT_ROWS  # among so many rows the nearest are found by comparing all of them
    sentences: int = 0  # committed
    rows: int = 0  # occurrences committed
    finished: bool = False  # whether all is there


def build_index(
    corpus: Iterable[Context | Embedded],
    embedder: Embedder,
    folder: Path | str,
    *,
    layers: Layers = "average",
    model: ModelId | None = None,
    tokenizer: Tokenization | None = None,
    exact_rows: int = EXACT_ROWS,
    progress: Progress = SILENCE,
) -> Manifest:
    """Give every occurrence of every word a row; of a build that broke off, do what is left.

    The corpus is read twice: to count and recognise it, and to embed it, but for sentences that come with their
    vectors. The model and the corpus's tokenizer are written down for those who search; they are those of an `Elmo`
    unless given.
    """
    if layers == "all":
        raise ConfigError("words are compared by one layer or mix: 'all' is not one")
    import_lancedb()
    embedder.embed([], layers=layers)  # refuses a layer that there is not
    if isinstance(embedder, Elmo):
        model = model or identify(embedder, embedder.source)
        tokenizer = tokenizer or embedder.config.tokenizer
    if model is None or tokenizer is None:
        kind = type(embedder).__name__
        raise ConfigError(f"{kind} is no Elmo: say which model and tokenizer the index is built with")
    reading, folder = Reading(model, layers, tokenizer), Path(folder)
    with locked(folder):
        total, digest, documents = _survey(corpus, progress)
        wanted = Manifest(reading=reading, width=embedder.width, corpus=digest, total=total, exact_rows=exact_rows)
        manifest = _begin(folder, wanted)
        if documents:
            replace_file(folder / DOCUMENTS, as_json(documents))
        return manifest if manifest.finished else _fill(folder, manifest, corpus, embedder, progress)


def open_index(folder: Path | str, *, model: Elmo | ModelId | None = None) -> "Index":
    """A finished index, to be searched with vectors of the model that built it; another is refused."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    if model is not None:
        _check_model(folder, manifest, identify(model, model.source) if isinstance(model, Elmo) else model)
    if not manifest.finished:
        done = f"{manifest.sentences:,} of {manifest.total:,} sentences"
        raise DataError(
            f"{folder}: the index is unfinished ({done}): give the same `elmokit index build` again to go on"
        )
    documents: dict[str, dict[str, str]] = {}
    if (folder / DOCUMENTS).exists():
        documents = read_json(folder / DOCUMENTS, dict[str, dict[str, str]], missing="no metadata")
    tables = Tables(folder, manifest.width, documents=documents)
    tables.check(rows=manifest.rows, sentences=manifest.sentences)
    return Index(folder, manifest, tables)


@dataclass(frozen=True)
class Index:
    """Occurrences to be searched by meaning."""

    folder: Path
    manifest: Manifest
    tables: Tables

    def search_word(
        self,
        query: str | BracketedWord,
        embedder: Embedder,
        *,
        k: int = 10,
        any_word: bool = False,
        token: str | None = None,
        document: str | None = None,
    ) -> list[NearOccurrence]:
        """The k occurrences nearest to the word in brackets: of the same word, of another, `token`, or of any.

        As in `context_neighbors`, the query's own sentence does not count, nor does a sentence a second time.
        """
        check_k(k)
        reading = self.manifest.reading
        if isinstance(query, str):
            query = read_brackets(query, get_tokenizer(reading.tokenizer))
        word = wanted_word(query, any_word=any_word, token=token)
        [vectors] = embedder.embed([query.context.words], layers=reading.layer)
        asked = k + 1
        while True:
            found = self.search(vectors[query.position], k=asked, token=word, document=document)
            best: list[NearOccurrence] = []
            for near in found:
                seen = any(is_same(near.occurrence, other.occurrence) for other in best)
                if not seen and not is_same(near.occurrence, query):
                    best.append(near)
            if len(best) >= k or len(found) < asked:
                return best[:k]
            asked *= 2

    def word_neighbors(self, word: str, *, k: int = 10, min_count: int = 5, center: bool = False) -> list[Neighbor]:
        """The k words nearest to a word by their mean vectors, of those that occur `min_count` times."""
        check_k(k)
        types = self.types
        if word not in types.words:
            if not self.tables.count(filter_rows(token=word), most=1):
                self._refuse(word, None)
            types = types.joined(_means(self.tables, [word], word))
        return word_neighbors(word, types.frequent(min_count, also=word), k=k, center=center)

    def occurrences(self, word: str, *, limit: int = 1000, seed: int = 0) -> Drawn:
        """At most so many occurrences of a word, drawn evenly; a word that the index lacks is refused."""
        found = self.tables.drawn(filter_rows(token=word), limit=limit, seed=seed)
        if not found.occurrences:
            self._refuse(word, None)
        return found

    @property
    def types(self) -> TypeVectors:
        """The mean vectors of the most frequent words."""
        with parsing(self.folder / MEANS, "mean vectors", kind=DataError, remedy="Build the index anew"):
            return TypeVectors.load(self.folder / MEANS)

    def search(
        self, vector: Vectors, *, k: int = 10, token: str | None = None, document: str | None = None
    ) -> list[NearOccurrence]:
        """The k occurrences with the highest cosines: of all, of one word, of one document.

        All are compared in an index of no more rows than the manifest's `exact_rows`, and of a larger one where the
        filter leaves few; else those that seem nearest by a rough copy of the vectors.
        """
        check_k(k)
        vector, rows = np.asarray(vector, np.float32), self.manifest.rows
        if vector.shape != (self.manifest.width,):
            raise ConfigError(f"the vector is {vector.shape}: those of {self.folder} are ({self.manifest.width},)")
        if not np.isfinite(vector).all() or not vector.any():
            raise ConfigError("the vector has no direction: it is all zeros, or not all numbers")
        wanted = filter_rows(token=token, document=document)
        count = rows if wanted is None else self.tables.count(wanted, most=FEW_ROWS + 1)
        if not count:
            self._refuse(token, document)
        exact = rows <= self.manifest.exact_rows or count <= FEW_ROWS
        return self.tables.nearest(unit_vectors(vector), k, wanted, exact=exact)

    def _refuse(self, token: str | None, document: str | None) -> NoReturn:
        """Say why a filter lets nothing through."""
        if token is not None:
            Survey(self.tables.values("token"), self.manifest.sentences).check_words(token)
        known = self.tables.values("document")
        if document in known:
            raise DataError(f"{document} has no word {token!r}: it is in other documents alone")
        near = near_spellings(str(document), known) or [name for name, _ in known.most_common(5)]
        raise DataError(f"{self.folder} has no document {document!r}; some that it has: {', '.join(near)}")


def identify(elmo: Elmo, name: str) -> ModelId:
    """Which model this is."""
    return ModelId(name, elmo.digest)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the index in a folder."""
    try:
        return read_json(folder / MANIFEST, Manifest, missing="not an index")
    except CheckpointError as error:
        raise DataError(f"{error}; `elmokit index build` makes a new one") from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put a manifest into its place in one step."""
    replace_file(folder / MANIFEST, as_json(manifest))


def _survey(corpus: Iterable[Context | Embedded], progress: Progress) -> tuple[int, str, dict[str, dict[str, str]]]:
    """How many sentences a corpus has, a hash of all that the rows depend on, and the documents' metadata."""
    hashed, total, documents = blake2b(digest_size=32), 0, {}
    for one in tracked(corpus, progress, "reading", unit="sentences"):
        text, tokens, document, metadata = _context(one)
        hashed.update(msgspec.json.encode((text, tokens, document)))
        total += 1
        if metadata:
            documents[document] = metadata
    if not total:
        raise DataError("the corpus holds no words")
    return total, hashed.hexdigest(), documents


def _begin(folder: Path, wanted: Manifest) -> Manifest:
    """The manifest of the build to go on with, which must be the same, or of a new one."""
    if not contents(folder):
        write_manifest(folder, wanted)
        return wanted
    if not (folder / MANIFEST).exists():
        raise OutputError(f"{folder} is not empty, and not an index: choose another folder")
    found = read_manifest(folder)
    _check_model(folder, found, wanted.reading.model)
    settings = [{"layer": one.reading.layer, "tokenizer": one.reading.tokenizer} for one in (found, wanted)]
    check_same_settings(folder, *settings)
    if found.corpus != wanted.corpus:
        reason = "built from another text, or the files were named otherwise"
        raise ConfigError(f"{folder} was {reason}: choose another folder")
    return found


def _check_model(folder: Path, manifest: Manifest, given: ModelId) -> None:
    built = manifest.reading.model
    if built.digest != given.digest:
        raise ConfigError(f"{folder} was built by the model {built}, not by {given}: their vectors cannot be compared")


def _context(one: Context | Embedded) -> Context:
    return one.context if isinstance(one, Embedded) else one


def _fill(
    folder: Path, manifest: Manifest, corpus: Iterable[Context | Embedded], embedder: Embedder, progress: Progress
) -> Manifest:
    """Embed and commit what is not committed yet."""
    tables = Tables(folder, manifest.width, create=True)
    tables.remove_from(manifest.sentences)
    tables.check(rows=manifest.rows, sentences=manifest.sentences)
    left = islice(corpus, manifest.sentences, None)
    for chunk in in_chunks(left, CHUNK_TOKENS, length=lambda one: len(_context(one).tokens)):
        contexts = [_context(one) for one in chunk]
        vectors = [one.vectors for one in chunk if isinstance(one, Embedded)]
        if not vectors:
            vectors = embedder.embed([one.words for one in contexts], layers=manifest.reading.layer)  # (T, D) each
        tables.add(contexts, vectors, first=manifest.sentences)
        sentences, rows = manifest.sentences + len(chunk), manifest.rows + sum(map(len, vectors))
        manifest = msgspec.structs.replace(manifest, sentences=sentences, rows=rows)
        write_manifest(folder, manifest)
        progress.update("embedding", sentences, manifest.total, unit="sentences")
    if manifest.sentences != manifest.total:
        raise DataError("the corpus changed between two readings: pass a list or a TextCorpus, not a generator")
    tables.finish(approximate=manifest.rows > manifest.exact_rows)
    tables.check(rows=manifest.rows, sentences=manifest.sentences)
    counts = Survey(tables.values("token"), manifest.sentences)
    _means(tables, counts.frequent(1)[:MOST_TYPES]).save(folder / MEANS)
    manifest = msgspec.structs.replace(manifest, finished=True)
    write_manifest(folder, manifest)
    return manifest


def _means(tables: Tables, words: Sequence[str], only: str | None = None) -> TypeVectors:
    """The mean vectors of words; of one alone if its rows are to be sought."""
    indices = {word: index for index, word in enumerate(words)}
    sums, counts = np.zeros((len(words), tables.width)), np.zeros(len(words), dtype=np.int64)  # (words, D)
    for tokens, vectors in tables.vectors(filter_rows(token=only)):
        rows = np.array([indices.get(token, -1) for token in tokens], dtype=np.int64)
        np.add.at(sums, rows[rows >= 0], vectors[rows >= 0])
        np.add.at(counts, rows[rows >= 0], 1)
    means = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
    return TypeVectors(tuple(words), tuple(counts.tolist()), means)
