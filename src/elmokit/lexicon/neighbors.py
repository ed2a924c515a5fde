"""Which words, and which occurrences of words, are nearest in meaning."""

from collections.abc import Iterable, Sequence
from heapq import heappush, heappushpop
from typing import NamedTuple, Protocol

import numpy as np

from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.corpus import survey
from elmokit.lexicon.occurrences import Occurrence, Progress, Sample, embed_sample, no_progress, unit_vectors
from elmokit.text.brackets import BracketedWord
from elmokit.text.corpus import Context


class WordVectors(Protocol):
    """A vector a word: the means of a corpus, or a file of static vectors."""

    @property
    def words(self) -> Sequence[str]:
        """The words."""

    @property
    def vectors(self) -> Vectors:
        """(words, D)"""


class Neighbor(NamedTuple):
    """A word and the cosine of its vector with the other's."""

    word: str
    cosine: float


class NearOccurrence(NamedTuple):
    """An occurrence and the cosine of its vector with that of the word asked about."""

    occurrence: Occurrence
    cosine: float


def word_neighbors(word: str, known: WordVectors, *, k: int = 10) -> list[Neighbor]:
    """The k words with the highest cosines, the word itself left out."""
    _check_k(k)
    if word not in known.words:
        raise DataError(f"there is no vector for {word!r}")
    own = known.words.index(word)
    lengths = np.sqrt(np.einsum("wd,wd->w", known.vectors, known.vectors))  # (words,) without a copy of the vectors
    lengths[lengths == 0] = np.inf
    cosines = known.vectors @ (known.vectors[own] / lengths[own]) / lengths
    cosines[own] = -np.inf
    best = np.argsort(-cosines, kind="stable")[: min(k, len(cosines) - 1)]
    return [Neighbor(known.words[place], float(cosines[place])) for place in best]


def context_neighbors(
    query: BracketedWord,
    corpus: Iterable[Context],
    embedder: Embedder,
    *,
    k: int = 10,
    any_word: bool = False,
    layers: Layers = "average",
    progress: Progress = no_progress,
) -> list[NearOccurrence]:
    """The k occurrences nearest to the marked word where it stands: of the same word, or of any.

    All occurrences in the corpus are compared and only the best are kept. The query's own sentence does not count, nor
    does a sentence a second time.
    """
    _check_k(k)
    known = survey(corpus)
    if not any_word:
        known.check_word(query.word)
    sample = Sample(known.counts if any_word else {query.word: known.counts[query.word]})
    own = unit_vectors(embedder.embed([query.context.words], layers=layers)[0][query.position])  # (D,)
    best = _Best(k, query)
    for context, positions, vectors in embed_sample(
        corpus, embedder, sample, sentences=known.sentences, layers=layers, progress=progress
    ):
        cosines = unit_vectors(vectors) @ own  # (positions,)
        for place in np.flatnonzero(cosines > best.least):
            best.add(context, positions[place], vectors[place], float(cosines[place]))
    return best.ranked()


class _Best:
    """The k nearest so far."""

    def __init__(self, k: int, query: BracketedWord) -> None:
        self.k, self.number, self.least = k, 0, -np.inf
        self.query = (query.context.words, query.position)
        self.heap: list[tuple[float, int, Occurrence]] = []

    def add(self, context: Context, position: int, vector: Vectors, cosine: float) -> None:
        if self._is_known(context.words, position):
            return
        self.number -= 1  # of equals the first read wins; and occurrences are never compared
        entry = (cosine, self.number, Occurrence(context, position, vector.copy()))
        if len(self.heap) < self.k:
            heappush(self.heap, entry)
        else:
            heappushpop(self.heap, entry)
        if len(self.heap) == self.k:
            self.least = self.heap[0][0]

    def _is_known(self, words: list[str], position: int) -> bool:
        kept = ((found.context.words, found.position) for _, _, found in self.heap)
        return (words, position) == self.query or (words, position) in kept

    def ranked(self) -> list[NearOccurrence]:
        return [NearOccurrence(found, cosine) for cosine, _, found in sorted(self.heap, reverse=True)]


def _check_k(k: int) -> None:
    if k < 1:
        raise ConfigError(f"k is {k}: it must be at least 1")
