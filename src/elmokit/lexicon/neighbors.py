"""Which words, and which occurrences of words, are nearest in meaning."""

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.occurrences import Occurrence, embed_words, survey, unit_vectors
from elmokit.progress import SILENCE, Progress
from elmokit.text.brackets import BracketedWord, read_brackets
from elmokit.text.corpus import Context


class WordVectors(Protocol):
    """A vector a word, (words, D): the means of a corpus, or a file of static vectors."""

    @property
    def words(self) -> Sequence[str]: ...

    @property
    def vectors(self) -> Vectors: ...


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
    check_k(k)
    if word not in known.words:
        raise DataError(f"there is no vector for {word!r}")
    own = known.words.index(word)
    lengths = np.sqrt(np.einsum("wd,wd->w", known.vectors, known.vectors))  # (words,) without a copy of the vectors
    lengths[lengths == 0] = np.inf
    cosines = known.vectors @ (known.vectors[own] / lengths[own]) / lengths
    cosines[own] = -np.inf
    best = np.argsort(-cosines, kind="stable")[: min(k, len(cosines) - 1)]
    return [Neighbor(known.words[index], float(cosines[index])) for index in best]


def context_neighbors(
    query: str | BracketedWord,
    corpus: Iterable[Context],
    embedder: Embedder,
    *,
    k: int = 10,
    any_word: bool = False,
    layers: Layers = "average",
    progress: Progress = SILENCE,
) -> list[NearOccurrence]:
    """The k occurrences nearest to the word in brackets, as in "on the [bank] of it": of the same word, or of any.

    All occurrences in the corpus are compared and only the best are kept. The query's own sentence does not count, nor
    does a sentence a second time.
    """
    check_k(k)
    if isinstance(query, str):
        tokenizer = getattr(corpus, "tokenizer", None) or getattr(embedder, "tokenizer", None)
        if tokenizer is None:
            missing = "neither the corpus nor the embedder has a tokenizer"
            raise ConfigError(f"{missing}: pass read_brackets(query, tokenizer)")
        query = read_brackets(query, tokenizer)
    known = survey(corpus, progress=progress)
    if not any_word:
        known.check_words(query.word)
    words = known.counts if any_word else [query.word]
    own = unit_vectors(embedder.embed([query.context.words], layers=layers)[0][query.position])  # (D,)
    best: list[NearOccurrence] = []
    embedded = embed_words(corpus, embedder, words, known, layers=layers, progress=progress)
    for context, positions, vectors in embedded:
        cosines = unit_vectors(vectors) @ own  # (positions,)
        least = best[-1].cosine if len(best) == k else -np.inf
        for index in np.flatnonzero(cosines > least):
            found = Occurrence(context, positions[index], vectors[index].copy())
            if not _is_same(found, query) and not any(_is_same(found, near.occurrence) for near in best):
                insort(best, NearOccurrence(found, float(cosines[index])), key=lambda near: -near.cosine)
                del best[k:]
    return best


def _is_same(one: Occurrence, other: Occurrence | BracketedWord) -> bool:
    return one.position == other.position and one.context.words == other.context.words


def check_k(k: int) -> None:
    """Refuse to look for none."""
    if k < 1:
        raise ConfigError(f"k is {k}: it must be at least 1")
