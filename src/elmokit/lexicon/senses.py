"""The occurrences of a word, grouped into senses, each with its keywords and its most central sentences."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from elmokit.elmo import Elmo
from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.clusters import Clustering, Labels, agglomerate, cluster, silhouette
from elmokit.lexicon.function_words import is_function_word
from elmokit.lexicon.occurrences import Occurrence, Survey, find_occurrences, is_wordlike, lowest, survey, unit_vectors
from elmokit.lexicon.settings import SenseBy, SenseSettings
from elmokit.lexicon.substitute_vectors import SubstituteVectors
from elmokit.lexicon.surroundings import Surroundings
from elmokit.lexicon.tables import table_row
from elmokit.progress import SILENCE, Progress, counted
from elmokit.text.corpus import Context

FEWEST = 20  # occurrences; of fewer it is not said how many senses they have
WINDOW = 10  # tokens on either side of an occurrence, of which some are keywords
PRIOR = 500.0  # words' worth of belief that a word is as frequent here as in the whole corpus
DEFAULTS = SenseSettings()


class Calibration(NamedTuple):
    """What silhouettes mean, found on words with one sense and on pseudo-words with two: `benchmarks/senses.py`."""

    least: float  # more than nine in ten words with one sense stay below it
    even: float  # at it, one sense and several are equally probable
    slope: float

    def probability(self, score: float) -> float:
        """That there are several senses, by logistic regression where one is as probable as two before looking."""
        return 1 / (1 + exp(-self.slope * (score - self.even)))


CALIBRATIONS = {
    Surroundings: Calibration(least=0.29, even=0.205, slope=5.4),
    SubstituteVectors: Calibration(least=0.15, even=0.104, slope=12.2),
}
OWN_VECTORS = Calibration(least=0.38, even=0.250, slope=3.0)


class Keyword(NamedTuple):
    """A word and by how many standard errors it is more frequent here than there."""

    word: str
    score: float


@dataclass(frozen=True)
class Sense:
    """Occurrences that are alike."""

    count: int
    share: float
    examples: tuple[Occurrence, ...]  # the most central first; no sentence twice
    words: tuple[Keyword, ...]
    """What stands around this sense more than around the others, or, where it is the only one, than elsewhere."""


@dataclass(frozen=True, eq=False)
class Senses:
    """A word's senses, the most frequent first."""

    word: str
    senses: tuple[Sense, ...]
    silhouette: float | None
    """How well the best grouping into several stands apart, from -1 to 1, even if it was refused; none if none was
    tried."""
    apart: bool  # whether that is enough to call the groups senses
    confidence: float | None
    """The probability of what is said, one sense or several; none of groups that do not stand apart."""
    occurrences: tuple[Occurrence, ...]
    labels: Labels  # (N,) which sense each occurrence is of

    @property
    def claim(self) -> str:
        """What is said of the word, such as "2 senses", or "2 groups" where they do not stand apart."""
        return counted(len(self.senses), self.noun)

    @property
    def noun(self) -> str:
        """What a group may be called."""
        return "group" if self.confidence is None else "sense"

    def _repr_html_(self) -> str:
        from elmokit.lexicon.plots import draw_inline  # which draws what is found here

        return draw_inline(self)


def static_groups(
    found: Senses, corpus: Iterable[Context], embedder: Embedder, *, settings: SenseSettings = DEFAULTS, seed: int = 0
) -> Senses:
    """The same occurrences in as many groups by another embedder, such as `StaticSurroundings`, for comparison.

    They are never called senses: what their silhouettes mean was not measured.
    """
    settings, limit = replace(settings, count=len(found.senses)), len(found.occurrences)
    beside = find_senses(found.word, corpus, embedder, settings=settings, layers="average", limit=limit, seed=seed)
    return replace(beside, apart=False, confidence=None)


def sense_rows(found: Senses, static: Senses | None = None) -> Iterator[dict[str, Any]]:
    """A row of a table for each occurrence, after the number of its sense, from 1, the most frequent one.

    With `static`, the same occurrences grouped by static vectors, that group's number stands beside it.
    """
    for index, occurrence in enumerate(found.occurrences):
        groups = {"sense": int(found.labels[index]) + 1}
        if static is not None:
            groups["static_sense"] = int(static.labels[index]) + 1
        yield table_row(occurrence, **groups)


def compared_by(by: SenseBy, elmo: Elmo) -> Embedder:
    """The embedder for a way of comparing occurrences."""
    if by == "word":
        return elmo
    return Surroundings(elmo) if by == "around" else SubstituteVectors(elmo)


def find_senses(
    word: str,
    corpus: Iterable[Context],
    embedder: Embedder,
    *,
    settings: SenseSettings = DEFAULTS,
    layers: Layers = "top",
    limit: int = 1000,
    seed: int = 0,
    progress: Progress = SILENCE,
) -> Senses:
    """Group at most `limit` occurrences of a word, drawn evenly from the corpus.

    The embedder decides how they are compared: by what could stand in their place (`SubstituteVectors`), by what is
    around them (`Surroundings`), or, any other, by their own vectors.
    """
    known = survey(corpus, progress=progress)
    reading: dict[str, Any] = {"layers": layers, "limit": limit, "seed": seed, "progress": progress}
    found = find_occurrences(corpus, embedder, [word], known=known, **reading)
    return group_senses(word, found[word], known, embedder, settings=settings, seed=seed)


def group_senses(
    word: str,
    occurrences: Sequence[Occurrence],
    known: Survey,
    embedder: Embedder,
    *,
    settings: SenseSettings = DEFAULTS,
    seed: int = 0,
) -> Senses:
    """Group occurrences that the embedder found before; `known` is the survey of their corpus."""
    vectors = np.stack([one.vector for one in occurrences])
    by_substitutes = isinstance(embedder, SubstituteVectors)
    units = embedder.compare(word, vectors) if isinstance(embedder, SubstituteVectors) else sense_vectors(vectors)
    grouping = agglomerate if by_substitutes else partial(cluster, seed=seed)
    calibration = CALIBRATIONS.get(type(embedder), OWN_VECTORS)
    clusters, score, apart = choose_clusters(units, grouping, calibration, settings)
    sizes = np.bincount(clusters.labels)
    labels = np.argsort(np.argsort(-sizes, kind="stable"))[clusters.labels]  # the largest cluster is 0
    central = (units * clusters.centers[clusters.labels]).sum(axis=1)  # (N,)
    senses = []
    for number in range(labels.max() + 1):
        inside = [one for one, label in zip(occurrences, labels, strict=True) if label == number]
        outside = [one for one, label in zip(occurrences, labels, strict=True) if label != number]
        examples = lowest(inside, -central[labels == number], settings.examples)
        words = tuple(keywords(inside, outside, known.counts)[: settings.keywords])
        senses.append(Sense(len(inside), len(inside) / len(occurrences), examples, words))
    several = None if score is None or len(occurrences) < FEWEST else calibration.probability(score)
    confidence = None if several is None else several if apart else 1 - several if len(senses) == 1 else None
    return Senses(word, tuple(senses), score, apart, confidence, tuple(occurrences), labels)


def sense_vectors(vectors: Vectors) -> Vectors:
    """The directions in which a word's occurrences differ from their mean, (N, D): what they share says nothing."""
    return unit_vectors(vectors - vectors.mean(axis=0))


def keywords(inside: Iterable[Occurrence], outside: Iterable[Occurrence], corpus: Mapping[str, int]) -> list[Keyword]:
    """Content words around the one group of occurrences rather than the other, the highest scores first.

    The score is that of Monroe et al. (2008): the difference of log odds with the corpus as prior, over its standard
    error; small counts cannot make it large. Without another group the corpus itself is compared with.
    """
    here, there = _words_around(inside), _words_around(outside) or Counter(corpus)
    total = sum(corpus.values())
    sizes = here.total() + PRIOR, there.total() + PRIOR
    scores = []
    for word in (word for word in here if is_wordlike(word) and not is_function_word(word)):
        counts, prior = (here[word], there[word]), PRIOR * corpus.get(word, 1) / total
        odds = [log((count + prior) / (size - count - prior)) for count, size in zip(counts, sizes, strict=True)]
        error = sqrt(1 / (counts[0] + prior) + 1 / (counts[1] + prior))
        scores.append(Keyword(word, (odds[0] - odds[1]) / error))
    return sorted((word for word in scores if word.score > 0), key=lambda word: (-word.score, word.word))


def choose_clusters(
    units: Vectors, grouping: Callable[[Vectors, int], Clustering], calibration: Calibration, settings: SenseSettings
) -> tuple[Clustering, float | None, bool]:
    """As many clusters as are asked for, or one unless two stand apart; a silhouette, and whether it is enough.

    Of more than two, those with the best silhouette are taken. The silhouette is theirs, or that of the two refused.
    """
    if settings.count is None and settings.most < 1:
        raise ConfigError(f"the most senses to try is {settings.most}: it must be at least 1")
    least = calibration.least if settings.least_silhouette is None else settings.least_silhouette
    enough = len(units) >= FEWEST
    if settings.count is not None:
        chosen = _scored(units, grouping(units, settings.count))
        return *chosen, enough and chosen[1] is not None and chosen[1] >= least
    two = _scored(units, grouping(units, 2)) if enough and settings.most > 1 else (None, None)
    if two[1] is None or two[1] < least:
        return cluster(units, 1, restarts=1), two[1], False
    more = (_scored(units, grouping(units, count)) for count in range(3, min(settings.most, len(units)) + 1))
    return *max([two, *more], key=lambda one: -1 if one[1] is None else one[1]), True


def _scored(units: Vectors, clusters: Clustering) -> tuple[Clustering, float | None]:
    """Clusters and their silhouette; none if all occurrences are in one."""
    return clusters, silhouette(units, clusters.labels) if len(np.unique(clusters.labels)) > 1 else None


def _words_around(occurrences: Iterable[Occurrence]) -> Counter[str]:
    """The words near the occurrences, the word itself left out wherever it stands."""
    counts: Counter[str] = Counter()
    for context, position, _ in occurrences:
        words = context.words
        near = words[max(0, position - WINDOW) : position + 1 + WINDOW]
        counts.update(word for word in near if word != words[position])
    return counts
