"""Words whose use differs between two corpora, by one model (Kutuzov and Giulianelli, 2020)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Embedder, Layers
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.corpus import Survey, is_wordlike, survey
from elmokit.lexicon.occurrences import (
    Occurrence,
    Progress,
    Sample,
    distinct,
    embed_sample,
    find_occurrences,
    no_progress,
    unit_vectors,
)
from elmokit.text.corpus import Context

Measure = Literal["apd", "prt"]


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


@dataclass(frozen=True, kw_only=True)
class ShiftSettings:
    """Which words are compared, and how many of them and of their occurrences are shown."""

    by: Measure = "apd"
    """What the words are ranked by."""
    min_count: int = 20
    """Occurrences that a word must have in either corpus."""
    max_words: int = 5000
    """Words compared, those most frequent in both; memory grows with it."""
    k: int = 20
    """Words shown."""
    examples: int = 2
    """Occurrences shown of each corpus."""
    limit: int | None = 500
    """Occurrences of a word that are drawn from each corpus; all if none."""


DEFAULTS = ShiftSettings()


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
    progress: Progress = no_progress,
) -> list[Change]:
    """The words whose use changed most: of those given, or of all that are frequent in both corpora."""
    if settings.by not in get_args(Measure):
        raise ConfigError(f"unknown measure {settings.by!r}: known are {', '.join(get_args(Measure))}")
    corpora, surveys = (first, second), (survey(first), survey(second))
    chosen = _given_words(words, surveys) if words else _shared_words(surveys, settings)
    reading: dict[str, Any] = {"limit": settings.limit, "layers": layers, "seed": seed, "progress": progress}
    sums = [sum_vectors(corpus, embedder, chosen, **reading) for corpus in corpora]
    distances = {"apd": average_pairwise_distance(*sums), "prt": prototype_distance(*sums)}
    best = np.argsort(-distances[settings.by], kind="stable")[: settings.k].tolist()
    names = {chosen[place]: place for place in best}
    examples = []
    for corpus, other in zip(corpora, reversed(sums), strict=True):
        found = find_occurrences(corpus, embedder, names, **reading)
        examples.append({word: _farthest(found[word], other.units[names[word]], settings.examples) for word in names})
    return [
        Change(
            word,
            float(distances["apd"][place]),
            float(distances["prt"][place]),
            (surveys[0].counts[word], surveys[1].counts[word]),
            (examples[0][word], examples[1][word]),
        )
        for word, place in names.items()
    ]


def sum_vectors(
    corpus: Iterable[Context],
    embedder: Embedder,
    words: Sequence[str],
    *,
    layers: Layers = "average",
    limit: int | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Sums:
    """The sums of the words' vectors in a corpus, over at most `limit` occurrences each."""
    known = survey(corpus)
    places = {word: place for place, word in enumerate(words)}
    shape = (len(places), embedder.width)
    sums = Sums(np.zeros(shape), np.zeros(shape), np.zeros(len(places), dtype=np.int64))
    sample = Sample({word: known.counts[word] for word in places}, limit=limit, seed=seed)
    for context, positions, vectors in embed_sample(
        corpus, embedder, sample, sentences=known.sentences, layers=layers, progress=progress
    ):
        rows = [places[context.tokens[position].text] for position in positions]
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


def _given_words(words: Sequence[str], surveys: tuple[Survey, Survey]) -> list[str]:
    for word in words:
        for known in surveys:
            known.check_word(word)
    return list(dict.fromkeys(words))


def _shared_words(surveys: tuple[Survey, Survey], settings: ShiftSettings) -> list[str]:
    """The words that are frequent in both corpora, by the count in that where they are rarer."""
    first, second = (known.counts for known in surveys)
    rarer = {word: min(count, second[word]) for word, count in first.items() if is_wordlike(word)}
    shared = sorted(
        (word for word in rarer if rarer[word] >= settings.min_count), key=lambda word: (-rarer[word], word)
    )
    if not shared:
        raise DataError(f"no word occurs {settings.min_count} times in both corpora: lower the minimum count")
    return shared[: settings.max_words]


def _farthest(occurrences: Sequence[Occurrence], other: NDArray[np.float64], count: int) -> tuple[Occurrence, ...]:
    """The occurrences with the lowest mean cosine with those whose unit vectors are summed up, no sentence twice."""
    cosines = unit_vectors(np.stack([occurrence.vector for occurrence in occurrences])) @ other  # (N,)
    ranked = [occurrences[place] for place in np.argsort(cosines, kind="stable")]
    return distinct(ranked)[:count]
