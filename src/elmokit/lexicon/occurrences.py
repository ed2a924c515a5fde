"""Words where they occur, and their vectors: drawn evenly from a corpus, in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np

from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.corpus import Survey, is_wordlike, survey
from elmokit.text.corpus import Context
from elmokit.text.inputs import in_chunks

CHUNK_TOKENS = 8192
Progress = Callable[[int, int], None]
"""Is told how many sentences have been read, and of how many."""


class Occurrence(NamedTuple):
    """A word in its sentence, with its vector there."""

    context: Context
    position: int
    """Which token of the sentence it is."""
    vector: Vectors
    """(D,)"""

    @property
    def token(self) -> str:
        """The word."""
        return self.context.tokens[self.position].text

    @property
    def marked(self) -> str:
        """The sentence with the word in brackets."""
        return self.context.bracketed(self.position)


class Embedded(NamedTuple):
    """A sentence, and the vectors of those of its tokens that were asked for."""

    context: Context
    positions: list[int]
    vectors: Vectors
    """(positions, D)"""


@dataclass(frozen=True, eq=False)
class TypeVectors:
    """A vector for each word: the mean of its vectors in a corpus."""

    words: tuple[str, ...]
    counts: tuple[int, ...]
    vectors: Vectors
    """(words, D)"""


class Sample:
    """Picks at most `limit` occurrences of each word in one reading, each as likely as any other.

    The counts are known, so the k-th last is taken with probability wanted / k (Knuth's algorithm S): the sentences of
    those not taken need not be embedded.
    """

    def __init__(self, counts: Mapping[str, int], *, limit: int | None = None, seed: int = 0) -> None:
        if limit is not None and limit < 1:
            raise ConfigError(f"the limit is {limit} occurrences a word: it must be at least 1")
        self._left = dict(counts)
        self._wanted = {word: count if limit is None else min(count, limit) for word, count in counts.items()}
        self._random = Random(seed)

    def positions(self, context: Context) -> list[int]:
        """The tokens of the corpus's next sentence that are taken."""
        return [position for position, token in enumerate(context.tokens) if self._takes(token.text)]

    def check_complete(self) -> None:
        """Refuse a corpus that did not hold what was counted in it."""
        if any(self._wanted.values()):
            raise DataError("the corpus changed between two readings: pass a list or a TextCorpus, not a generator")

    def _takes(self, word: str) -> bool:
        wanted = self._wanted.get(word, 0)
        if not wanted:
            return False
        left = self._left[word]
        self._left[word] = left - 1
        if self._random.random() * left >= wanted:
            return False
        self._wanted[word] = wanted - 1
        return True


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


def embed_sample(
    corpus: Iterable[Context],
    embedder: Embedder,
    sample: Sample,
    *,
    sentences: int,
    layers: Layers = "average",
    progress: Progress = no_progress,
) -> Iterator[Embedded]:
    """The sentences of which the sample takes anything, embedded a few thousand tokens at a time."""
    if layers == "all":
        raise ConfigError("words are compared by one layer or mix: 'all' is not one")
    waiting: deque[tuple[Context, list[int]]] = deque()

    def taken() -> Iterator[list[str]]:
        for number, context in enumerate(corpus, 1):
            progress(number, sentences)
            if positions := sample.positions(context):
                waiting.append((context, positions))
                yield context.words

    for chunk in in_chunks(taken(), CHUNK_TOKENS):
        for vectors in embedder.embed(chunk, layers=layers):
            context, positions = waiting.popleft()
            yield Embedded(context, positions, vectors[positions])
    sample.check_complete()


def find_occurrences(
    corpus: Iterable[Context],
    embedder: Embedder,
    words: Iterable[str],
    *,
    layers: Layers = "average",
    limit: int | None = 1000,
    seed: int = 0,
    known: Survey | None = None,
    progress: Progress = no_progress,
) -> dict[str, list[Occurrence]]:
    """Where each of the words stands, at most `limit` times; a word that the corpus lacks is refused."""
    known = known or survey(corpus)
    found: dict[str, list[Occurrence]] = {word: [] for word in words}
    for word in found:
        known.check_word(word)
    sample = Sample({word: known.counts[word] for word in found}, limit=limit, seed=seed)
    for context, positions, vectors in embed_sample(
        corpus, embedder, sample, sentences=known.sentences, layers=layers, progress=progress
    ):
        for position, vector in zip(positions, vectors, strict=True):
            occurrence = Occurrence(context, position, vector.copy())  # a view would keep the sentence's other vectors
            found[occurrence.token].append(occurrence)
    return found


def type_vectors(
    corpus: Iterable[Context],
    embedder: Embedder,
    *,
    layers: Layers = "average",
    min_count: int = 5,
    max_words: int = 20_000,
    limit: int | None = None,
    also: Iterable[str] = (),
    seed: int = 0,
    progress: Progress = no_progress,
) -> TypeVectors:
    """The mean vector of each word that occurs `min_count` times, the most frequent ones, and of the words in `also`.

    With a limit the mean is that of so many occurrences of a word, drawn evenly from the corpus.
    """
    known = survey(corpus)
    for word in also:
        known.check_word(word)
    counts = frequent_words(known, min_count=min_count, max_words=max_words) | {w: known.counts[w] for w in also}
    places = {word: place for place, word in enumerate(counts)}
    sums = np.zeros((len(places), embedder.width))  # (words, D)
    taken = np.zeros(len(places), dtype=np.int64)
    sample = Sample(counts, limit=limit, seed=seed)
    for context, positions, vectors in embed_sample(
        corpus, embedder, sample, sentences=known.sentences, layers=layers, progress=progress
    ):
        rows = [places[context.tokens[position].text] for position in positions]
        np.add.at(sums, rows, vectors)
        np.add.at(taken, rows, 1)
    means = (sums / np.maximum(taken, 1)[:, None]).astype(np.float32)
    return TypeVectors(tuple(counts), tuple(counts.values()), means)


def frequent_words(known: Survey, *, min_count: int, max_words: int) -> dict[str, int]:
    """The words, punctuation left out, that occur often enough, most frequent first, with their counts."""
    ranked = ((word, count) for word, count in known.counts.most_common() if count >= min_count and is_wordlike(word))
    return {word: count for (word, count), _ in zip(ranked, range(max_words), strict=False)}


def unit_vectors(vectors: Vectors) -> Vectors:
    """Each row at length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units


def distinct(occurrences: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
    """The occurrences in their order, each sentence once."""
    first: dict[str, Occurrence] = {}
    for occurrence in occurrences:
        first.setdefault(occurrence.context.text, occurrence)
    return tuple(first.values())
