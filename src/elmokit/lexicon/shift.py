"""Words whose use differs between two corpora, by one model (Kutuzov and Giulianelli, 2020)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Embedder, Layers
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.occurrences import Occurrence, Survey, embed_words, find_occurrences, lowest, survey, unit_vectors
from elmokit.lexicon.settings import Measure, ShiftSettings
from elmokit.progress import SILENCE, Progress
from elmokit.text.corpus import Context

DEFAULTS = ShiftSettings()


@dataclass(frozen=True)
class Change:
    """How far apart the uses of a word in two corpora are."""

    word: str
    apd: float
    """Average pairwise distance: the mean of 1 - cosine over all pairs of an occurrence here and one there."""
    prt: float
    """Prototype distance: 1 - cosine of the mean vectors."""
    counts: tuple[int, int]  # occurrences in each corpus
    examples: tuple[tuple[Occurrence, ...], tuple[Occurrence, ...]]
    """From each corpus, those that are farthest on average from all occurrences in the other."""


class Sums(NamedTuple):
    """Over the occurrences of each word in one corpus: of its vectors, and of these at length 1, (words, D) each."""

    vectors: NDArray[np.float64]
    units: NDArray[np.float64]
    counts: NDArray[np.int64]


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
    sides = ((first, "the first corpus"), (second, "the second corpus"))
    surveys = [survey(corpus, progress=progress, stage=f"counting {side}") for corpus, side in sides]
    for word, known in product(words, surveys):
        known.check_words(word)
    chosen = list(dict.fromkeys(words)) or _shared_words(surveys, settings)
    reading: dict[str, Any] = {"layers": layers, "limit": settings.limit, "seed": seed, "progress": progress}
    sums, changes = [], []
    for (corpus, side), known in zip(sides, surveys, strict=True):
        sums.append(sum_vectors(corpus, embedder, chosen, known, stage=f"embedding {side}", **reading))
    apd, prt = average_pairwise_distance(*sums), prototype_distance(*sums)  # (words,) each
    best = np.argsort(-(apd if settings.by == "apd" else prt), kind="stable")[: settings.k].tolist()
    indices = {chosen[index]: index for index in best}
    examples: dict[str, list[tuple[Occurrence, ...]]] = {word: [] for word in indices}
    for (corpus, side), known, other in zip(sides, surveys, reversed(sums), strict=True):
        found = find_occurrences(corpus, embedder, indices, known=known, stage=f"examples from {side}", **reading)
        for word, index in indices.items():
            cosines = unit_vectors(np.stack([one.vector for one in found[word]])) @ other.units[index]  # (N,)
            examples[word].append(lowest(found[word], cosines, settings.examples))
    for word, index in indices.items():
        counts, farthest = (surveys[0].counts[word], surveys[1].counts[word]), (examples[word][0], examples[word][1])
        changes.append(Change(word, float(apd[index]), float(prt[index]), counts, farthest))
    return changes


def sum_vectors(corpus: Iterable[Context], embedder: Embedder, words: list[str], known: Survey, **reading: Any) -> Sums:
    """The sums of the words' vectors in a corpus, read as `embed_words` does."""
    indices = {word: index for index, word in enumerate(words)}
    shape = (len(indices), embedder.width)
    sums = Sums(np.zeros(shape), np.zeros(shape), np.zeros(len(indices), dtype=np.int64))
    for context, positions, vectors in embed_words(corpus, embedder, words, known, **reading):
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


def _shared_words(surveys: Sequence[Survey], settings: ShiftSettings) -> list[str]:
    """The words that are frequent in both corpora, by the count in that where they are rarer."""
    rarer = {word: min(known.counts[word] for known in surveys) for word in surveys[0].frequent(settings.min_count)}
    shared = [word for word, count in rarer.items() if count >= settings.min_count]
    if not shared:
        raise DataError(f"no word occurs {settings.min_count} times in both corpora: lower the minimum count")
    return sorted(shared, key=lambda word: (-rarer[word], word))[: settings.max_words]
