"""Words whose use differs between two corpora, by one model (Kutuzov and Giulianelli, 2020)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Embedder, Layers
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.occurrences import (
    Occurrence,
    Survey,
    distinct,
    embed_occurrences,
    find_occurrences,
    is_wordlike,
    survey,
    unit_vectors,
)
from elmokit.lexicon.settings import Measure, ShiftSettings
from elmokit.progress import SILENCE, Progress
from elmokit.text.corpus import Context

DEFAULTS = ShiftSettings()
SIDES = ("the first corpus", "the second corpus")


@dataclass(frozen=True)
class Change:
    """How far apart the uses of a word in two corpora are."""

    word: str
    apd: float
    """Average pairwise distance: the mean of 1 - cosine over all pairs of an occurrence here and one there."""
    prt: float
    """Prototype distance: 1 - cosine of the mean vectors."""
    counts: tuple[int, int]
    """Occurrences in each corpus."""
    examples: tuple[tuple[Occurrence, ...], tuple[Occurrence, ...]]
    """From each corpus, those that are farthest on average from all occurrences in the other."""


class Sums(NamedTuple):
    """Over the occurrences of each word in one corpus."""

    vectors: NDArray[np.float64]
    """(words, D)"""
    units: NDArray[np.float64]
    """(words, D) of the vectors at length 1."""
    counts: NDArray[np.int64]
    """(words,)"""


def find_shift(
    first: Iterable[Context],
    second: Iterable[Context],
    embedder: Embedder,
    *,
    words: Sequence[str] = (),
    settings: ShiftSettings = DEFAULTS,
    layers: Layers = "average",
    seed: int = 0,
    progress: Progress = SILENCE,
) -> list[Change]:
    """The words whose use changed most: of those given, or of all that are frequent in both corpora."""
    if settings.by not in get_args(Measure):
        raise ConfigError(f"unknown measure {settings.by!r}: known are {', '.join(get_args(Measure))}")
    surveys = [
        survey(corpus, progress=progress, stage=f"counting {side}")
        for corpus, side in zip((first, second), SIDES, strict=True)
    ]
    chosen = _given_words(words, surveys) if words else _shared_words(surveys, settings)
    sides = list(zip((first, second), surveys, SIDES, strict=True))
    reading: dict[str, Any] = {"layers": layers, "limit": settings.limit, "seed": seed, "progress": progress}
    sums = [
        sum_vectors(corpus, embedder, chosen, known, stage=f"embedding {side}", **reading)
        for corpus, known, side in sides
    ]
    distances = {"apd": average_pairwise_distance(*sums), "prt": prototype_distance(*sums)}
    best = np.argsort(-distances[settings.by], kind="stable")[: settings.k].tolist()
    indices = {chosen[index]: index for index in best}
    examples = []
    for (corpus, known, side), other in zip(sides, reversed(sums), strict=True):
        found = find_occurrences(corpus, embedder, indices, known=known, stage=f"examples from {side}", **reading)
        examples.append({word: _farthest(found[word], other.units[indices[word]], settings.examples) for word in found})
    return [
        Change(
            word,
            float(distances["apd"][index]),
            float(distances["prt"][index]),
            (surveys[0].counts[word], surveys[1].counts[word]),
            (examples[0][word], examples[1][word]),
        )
        for word, index in indices.items()
    ]


def sum_vectors(
    corpus: Iterable[Context], embedder: Embedder, words: Sequence[str], known: Survey, **reading: Any
) -> Sums:
    """The sums of the words' vectors in a corpus, read as `embed_occurrences` does."""
    indices = {word: index for index, word in enumerate(words)}
    shape = (len(indices), embedder.width)
    sums = Sums(np.zeros(shape), np.zeros(shape), np.zeros(len(indices), dtype=np.int64))
    for context, positions, vectors in embed_occurrences(corpus, embedder, words, known, **reading):
        rows = [indices[context.tokens[position].text] for position in positions]
        np.add.at(sums.vectors, rows, vectors)
        np.add.at(sums.units, rows, unit_vectors(vectors))
        np.add.at(sums.counts, rows, 1)
    return sums


def average_pairwise_distance(first: Sums, second: Sums) -> NDArray[np.float64]:
    """1 - mean(u) · mean(v) of the unit vectors u here and v there, which is the mean of 1 - cosine over all pairs."""
    cosines = (first.units * second.units).sum(axis=1) / (first.counts * second.counts)  # (words,)
    return np.asarray(1 - cosines)


def prototype_distance(first: Sums, second: Sums) -> NDArray[np.float64]:
    """1 - cosine of the mean vectors."""
    lengths = np.linalg.norm(first.vectors, axis=1) * np.linalg.norm(second.vectors, axis=1)  # (words,)
    products = (first.vectors * second.vectors).sum(axis=1)
    return np.asarray(1 - np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0))


def _given_words(words: Sequence[str], surveys: Sequence[Survey]) -> list[str]:
    for word in words:
        for known in surveys:
            known.check_word(word)
    return list(dict.fromkeys(words))


def _shared_words(surveys: Sequence[Survey], settings: ShiftSettings) -> list[str]:
    """The words that are frequent in both corpora, by the count in that where they are rarer."""
    first, second = (known.counts for known in surveys)
    rarer = {word: min(count, second[word]) for word, count in first.items() if is_wordlike(word)}
    shared = [word for word, count in rarer.items() if count >= settings.min_count]
    if not shared:
        raise DataError(f"no word occurs {settings.min_count} times in both corpora: lower the minimum count")
    return sorted(shared, key=lambda word: (-rarer[word], word))[: settings.max_words]


def _farthest(occurrences: Sequence[Occurrence], other: NDArray[np.float64], count: int) -> tuple[Occurrence, ...]:
    """The occurrences with the lowest mean cosine with those whose unit vectors are summed up, no sentence twice."""
    cosines = unit_vectors(np.stack([occurrence.vector for occurrence in occurrences])) @ other  # (N,)
    ranked = [occurrences[index] for index in np.argsort(cosines, kind="stable")]
    return distinct(ranked)[:count]
