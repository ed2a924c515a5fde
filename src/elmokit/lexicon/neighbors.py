"""Which words, and which occurrences of words, are nearest in meaning."""

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.occurrences import EmbeddedWords, Occurrence, embed_words, near_spellings, survey, unit_vectors
from elmokit.progress import SILENCE, Progress
from elmokit.static.embedders import StaticEmbedder
from elmokit.text.brackets import BracketedWord, has_brackets, read_brackets
from elmokit.text.corpus import Context
from elmokit.text.tokenizers import Tokenizer


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


def word_neighbors(word: str, known: WordVectors, *, k: int = 10, center: bool = False) -> list[Neighbor]:
    """The k words with the highest cosines, the word itself left out; with `center` of vectors less their mean."""
    check_k(k)
    if word not in known.words:
        near = ", ".join(near_spellings(word, known.words))
        raise DataError(f"there is no vector for {word!r}{near and f'; near spellings that have one: {near}'}")
    own, vectors = known.words.index(word), centered(known.vectors) if center else known.vectors
    lengths = np.sqrt(np.einsum("wd,wd->w", vectors, vectors))  # (words,) without a copy of the vectors
    lengths[lengths == 0] = np.inf
    cosines = vectors @ (vectors[own] / lengths[own]) / lengths
    cosines[own] = -np.inf
    best = np.argsort(-cosines, kind="stable")[: min(k, len(cosines) - 1)]
    return [Neighbor(known.words[index], float(cosines[index])) for index in best]


def centered(vectors: Vectors) -> Vectors:
    """The vectors less the mean of all, (words, D): what they have in common makes every cosine high and tells nothing.

    Mu and Viswanath (2018) take off the mean, and for static vectors the first few directions too.
    """
    return np.asarray(vectors - vectors.mean(axis=0))


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
    query = bracketed(query, corpus, embedder)
    known = survey(corpus, progress=progress)
    if not any_word:
        known.check_words(query.word)
    words = known.counts if any_word else [query.word]
    found = embed_words(corpus, embedder, words, known, layers=layers, progress=progress)
    return nearest_occurrences(query, found, embedder, k=k, layers=layers)


def bracketed(query: str | BracketedWord, corpus: Iterable[Context], embedder: Embedder) -> BracketedWord:
    """The word in brackets, by the tokenizer of the corpus or of the embedder."""
    if not isinstance(query, str):
        return query
    tokenizer = getattr(corpus, "tokenizer", None) or getattr(embedder, "tokenizer", None)
    if tokenizer is None:
        missing = "neither the corpus nor the embedder has a tokenizer"
        raise ConfigError(f"{missing}: pass read_brackets(query, tokenizer)")
    return read_brackets(query, tokenizer)


def nearest_occurrences(
    query: BracketedWord, found: Iterable[EmbeddedWords], embedder: Embedder, *, k: int, layers: Layers
) -> list[NearOccurrence]:
    """Of the occurrences found, the k nearest to the query."""
    own = unit_vectors(embedder.embed([query.context.words], layers=layers)[0][query.position])  # (D,)
    best: list[NearOccurrence] = []
    for context, positions, vectors in found:
        cosines = unit_vectors(vectors) @ own  # (positions,)
        least = best[-1].cosine if len(best) == k else -np.inf
        for index in np.flatnonzero(cosines > least):
            one = Occurrence(context, positions[index], vectors[index].copy())
            if not is_same(one, query) and not any(is_same(one, near.occurrence) for near in best):
                insort(best, NearOccurrence(one, float(cosines[index])), key=lambda near: -near.cosine)
                del best[k:]
    return best


def static_similarity(one: str, other: str, vectors: StaticEmbedder, tokenizer: Tokenizer) -> float | None:
    """What `Elmo.similarity` says, by static vectors: of the words in brackets, or of the means of all words.

    None where no word of either has a vector.
    """
    means = []
    for text in (one, other):
        found = read_brackets(text, tokenizer) if has_brackets(text) else None
        words = [found.word] if found else [token.text for token in tokenizer(text)]
        means.append(vectors.vectors_of(words).astype(np.float64).sum(axis=0))  # (D,)
    lengths = np.linalg.norm(means[0]) * np.linalg.norm(means[1])
    return float(means[0] @ means[1] / lengths) if lengths else None


def wanted_word(query: BracketedWord, *, any_word: bool, token: str | None) -> str | None:
    """The word whose occurrences are compared: that of the query, or another; none for all."""
    if any_word and token is not None:
        raise ConfigError(f"occurrences of any word, or of {token!r}: ask for one of them")
    return None if any_word else token if token is not None else query.word


def is_same(one: Occurrence, other: Occurrence | BracketedWord) -> bool:
    """Whether they are the same word of the same sentence, wherever it stands."""
    return one.position == other.position and one.context.words == other.context.words


def check_k(k: int) -> None:
    """Refuse to look for none."""
    if k < 1:
        raise ConfigError(f"k is {k}: it must be at least 1")
