"""The occurrences of a word, grouped into senses."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.corpus import Survey, survey
from elmokit.lexicon.grouping import Grouping, Labels, group, silhouette
from elmokit.lexicon.occurrences import Occurrence, Progress, distinct, find_occurrences, no_progress, unit_vectors
from elmokit.lexicon.telling import TellingWord, telling_words
from elmokit.text.corpus import Context

LEAST_SILHOUETTE = 0.1  # below it even the best grouping is that of one sense
FEWEST = 8  # occurrences; fewer are taken for one sense unless a number is asked for


@dataclass(frozen=True)
class Sense:
    """Occurrences that are alike."""

    count: int
    share: float
    """Of all the occurrences."""
    examples: tuple[Occurrence, ...]
    """The most central first; no sentence twice."""
    words: tuple[TellingWord, ...]
    """What stands around this sense more than around the others, or, where it is the only one, than elsewhere."""


@dataclass(frozen=True, eq=False)
class Senses:
    """A word's senses, the most frequent first."""

    word: str
    senses: tuple[Sense, ...]
    silhouette: float | None
    """How well they stand apart, from -1 to 1; none for a single sense."""
    occurrences: tuple[Occurrence, ...]
    labels: Labels
    """Which sense each occurrence is of, (N,)."""


@dataclass(frozen=True, kw_only=True)
class SenseSettings:
    """How many senses there may be, and what is shown of each."""

    count: int | None = None
    """So many; chosen by the silhouette if none."""
    most: int = 5
    """The most that are tried."""
    least_silhouette: float = LEAST_SILHOUETTE
    """Below it the word has one sense."""
    examples: int = 3
    words: int = 8


DEFAULTS = SenseSettings()


def find_senses(
    word: str,
    corpus: Iterable[Context],
    embedder: Embedder,
    *,
    settings: SenseSettings = DEFAULTS,
    layers: Layers = "top",
    limit: int = 1000,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Senses:
    """Group at most `limit` occurrences of a word, drawn evenly from the corpus."""
    known = survey(corpus)
    found = find_occurrences(
        corpus, embedder, [word], layers=layers, limit=limit, seed=seed, known=known, progress=progress
    )[word]
    return group_senses(word, found, known, settings=settings, seed=seed)


def group_senses(
    word: str,
    occurrences: Sequence[Occurrence],
    known: Survey,
    *,
    settings: SenseSettings = DEFAULTS,
    seed: int = 0,
) -> Senses:
    """Group occurrences that were found before; `known` is the survey of their corpus."""
    units = sense_vectors(np.stack([occurrence.vector for occurrence in occurrences]))
    grouping, score = _choose(units, settings, seed)
    sizes = np.bincount(grouping.labels)
    labels = np.argsort(np.argsort(-sizes, kind="stable"))[grouping.labels]  # the largest group is 0
    central = (units * grouping.centers[grouping.labels]).sum(axis=1)  # (N,)
    senses = [_sense(occurrences, labels == number, central, known, settings) for number in range(labels.max() + 1)]
    return Senses(word, tuple(senses), score, tuple(occurrences), labels)


def sense_vectors(vectors: Vectors) -> Vectors:
    """The directions in which a word's occurrences differ from their mean, (N, D): what they share says nothing."""
    return unit_vectors(vectors - vectors.mean(axis=0))


def _choose(units: Vectors, settings: SenseSettings, seed: int) -> tuple[Grouping, float | None]:
    if settings.count is not None:
        grouping = group(units, settings.count, seed=seed)
        return grouping, _score(units, grouping)
    if settings.most < 1:
        raise ConfigError(f"the most senses to try is {settings.most}: it must be at least 1")
    best: tuple[Grouping, float | None] = group(units, 1, seed=seed, restarts=1), None
    if len(units) < FEWEST:
        return best
    for count in range(2, min(settings.most, len(units) - 1) + 1):
        grouping = group(units, count, seed=seed)
        score = _score(units, grouping)
        if score is not None and score >= settings.least_silhouette and (best[1] is None or score > best[1]):
            best = grouping, score
    return best


def _score(units: Vectors, grouping: Grouping) -> float | None:
    return silhouette(units, grouping.labels) if len(np.unique(grouping.labels)) > 1 else None


def _sense(
    occurrences: Sequence[Occurrence],
    members: NDArray[np.bool_],
    central: Vectors,
    known: Survey,
    settings: SenseSettings,
) -> Sense:
    inside = [occurrence for occurrence, member in zip(occurrences, members, strict=True) if member]
    outside = [occurrence for occurrence, member in zip(occurrences, members, strict=True) if not member]
    ranked = [inside[place] for place in np.argsort(-central[members], kind="stable").tolist()]
    return Sense(
        len(inside),
        len(inside) / len(occurrences),
        distinct(ranked)[: settings.examples],
        tuple(telling_words(inside, outside, known.counts)[: settings.words]),
    )
