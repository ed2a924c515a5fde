"""Questions about the words of a corpus, answered from its index."""

import os
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from elmokit.elmo import Elmo
from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.index import Index
from elmokit.lexicon.neighbors import NearOccurrence, Neighbor, nearest_occurrences, wanted_word, word_neighbors
from elmokit.lexicon.occurrences import Occurrence, Survey, TypeVectors
from elmokit.lexicon.plots import plane
from elmokit.lexicon.senses import Senses, compared_by, group_senses
from elmokit.lexicon.settings import SenseBy, SenseSettings
from elmokit.serve.refusals import RefusedError
from elmokit.text.brackets import BracketedWord
from elmokit.text.inputs import in_chunks
from elmokit.text.tokenizers import get_tokenizer

CHUNK_TOKENS = 8192
KEPT_LINES = 50_000  # occurrences of the words that were asked about last
NO_VECTOR = np.zeros(0, np.float32)
QUERY = "\0query"  # a name that no word has


class Lines(NamedTuple):
    """A word's occurrences, grouped into senses; their vectors are not kept."""

    documents: Counter[str]  # occurrences in each document, of all there are
    sentences: list[int]  # the number of each one's sentence
    senses: Senses
    points: Vectors  # (N, 2) two principal components


class OpenCorpus:
    """An index and the model that built it."""

    def __init__(self, index: Index, elmo: Elmo) -> None:
        self.index, self.elmo, self.layer = index, elmo, index.manifest.reading.layer
        self.tokenizer = get_tokenizer(index.manifest.reading.tokenizer)
        self.survey = Survey(index.tables.values("token"), index.manifest.sentences, str(self.tokenizer))
        self.documents = index.tables.values("document")
        self.folder = common_folder(self.documents)
        self._lock = Lock()
        self._kept: OrderedDict[tuple[Any, ...], Lines] = OrderedDict()

    @property
    def contents(self) -> dict[str, Any]:
        """How much it holds."""
        sizes = {"sentences": self.survey.sentences, "tokens": self.index.manifest.rows}
        return sizes | {"words": len(self.survey.counts), "documents": len(self.documents), "layer": self.layer}

    def word_neighbors(self, word: str, *, k: int, min_count: int) -> list[Neighbor]:
        """The words nearest to a word by their mean vectors."""
        self.check_word(word)
        return self.index.word_neighbors(word, k=k, min_count=min_count)

    def context_neighbors(
        self,
        query: BracketedWord,
        *,
        k: int,
        layers: Layers,
        limit: int,
        any_word: bool = False,
        token: str | None = None,
        document: str | None = None,
    ) -> list[NearOccurrence]:
        """The occurrences nearest to a word in its sentence; by a layer that is not indexed, those of one word."""
        word = wanted_word(query, any_word=any_word, token=token)
        if word is not None:
            self.check_word(word)
        if layers == self.layer:
            chosen: dict[str, Any] = {"any_word": any_word, "token": token, "document": self.long(document)}
            near = self.index.search_word(query, self.elmo, k=k, **chosen)
        elif word is None or document is not None:
            raise ConfigError(f"any word, and one document, are searched by the indexed layer alone: {self.layer!r}")
        else:
            drawn = self.index.occurrences(word, limit=limit).occurrences
            read = ((one.context, [one.position], one.vector[None]) for one in embedded(drawn, self.elmo, layers))
            near = nearest_occurrences(query, read, self.elmo, k=k, layers=layers)
        return [NearOccurrence(self.short(one.occurrence), one.cosine) for one in near]

    def words_near(self, query: BracketedWord, *, k: int, min_count: int) -> list[Neighbor]:
        """The words whose mean vectors are nearest to the vector of a word in its sentence, itself left out."""
        [vectors] = self.elmo.embed([query.context.words], layers=self.layer)
        own = TypeVectors((QUERY,), (min_count,), vectors[query.position][None])
        known = self.index.types.frequent(min_count, also=query.word).joined(own)
        return [one for one in word_neighbors(QUERY, known, k=k + 1) if one.word != query.word][:k]

    def check_word(self, word: str) -> None:
        """Refuse a word that the corpus lacks, and offer near spellings."""
        try:
            self.survey.check_words(word)
        except DataError as error:
            raise RefusedError(404, str(error)) from None

    def lines(
        self, word: str, *, layers: Layers, limit: int, by: SenseBy, settings: SenseSettings | None, seed: int = 0
    ) -> Lines:
        """The occurrences of a word, at most `limit`; with settings in their senses. Those asked for last are kept."""
        key = word, layers, limit, by, settings, seed
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self._grouped(word, layers, limit, by, settings, seed)
            self._kept.move_to_end(key)
            while sum(len(one.sentences) for one in self._kept.values()) > KEPT_LINES and len(self._kept) > 1:
                self._kept.popitem(last=False)
            return self._kept[key]

    def _grouped(
        self, word: str, layers: Layers, limit: int, by: SenseBy, settings: SenseSettings | None, seed: int
    ) -> Lines:
        drawn = self.index.occurrences(word, limit=limit, seed=seed)
        occurrences = drawn.occurrences
        documents = Counter({self.short_name(name): count for name, count in drawn.documents.items()})
        if settings is None:
            none = np.zeros(len(occurrences), np.int64)
            found = Senses(word, (), None, False, None, tuple(map(self.short, occurrences)), none)
            return Lines(documents, drawn.sentences, found, np.zeros((len(occurrences), 2), np.float32))
        embedder = compared_by(by, self.elmo)
        if embedder is not self.elmo or layers != self.layer:
            occurrences = list(embedded(occurrences, embedder, layers))
        senses = group_senses(word, occurrences, self.survey, embedder, settings=settings, seed=seed)
        points = plane(np.stack([one.vector for one in occurrences]))
        bare = [replace(one, examples=tuple(map(self.short, one.examples))) for one in senses.senses]
        found = replace(senses, senses=tuple(bare), occurrences=tuple(map(self.short, occurrences)))
        return Lines(documents, drawn.sentences, found, points)

    def short(self, occurrence: Occurrence) -> Occurrence:
        """Without its vector, and the document's name without the folder that all are in."""
        context = occurrence.context
        named = context._replace(document=self.short_name(context.document))
        return Occurrence(named, occurrence.position, NO_VECTOR)

    def short_name(self, document: str) -> str:
        """A document's name without the folder that all are in, which is nobody's business."""
        return document.removeprefix(self.folder)

    def long(self, document: str | None) -> str | None:
        """A document's name as it is in the index."""
        return None if document is None else f"{self.folder}{document}"


def embedded(occurrences: Iterable[Occurrence], embedder: Embedder, layers: Layers) -> Iterator[Occurrence]:
    """The same occurrences with other vectors, a few sentences at a time."""
    for chunk in in_chunks(occurrences, CHUNK_TOKENS, length=lambda one: len(one.context.tokens)):
        found = embedder.embed([one.context.words for one in chunk], layers=layers)
        for one, vectors in zip(chunk, found, strict=True):
            yield one._replace(vector=vectors[one.position].copy())


def common_folder(documents: Iterable[str]) -> str:
    """The folder that all documents are in, with its separator; nothing if there is none."""
    folders = [os.path.dirname(name) for name in documents]  # noqa: PTH120  (names as they were given)
    with suppress(ValueError):
        if common := os.path.commonpath(folders):
            return os.path.join(common, "")  # noqa: PTH118
    return ""
