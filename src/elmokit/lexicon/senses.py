"""The occurrences of a word, grouped into senses, each with its keywords and its most central sentences."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.elmo import BOUNDS, Elmo
from elmokit.embedder import Embedder, Layers, Sentence, Vectors, choose_layers
from elmokit.errors import ConfigError
from elmokit.lexicon.occurrences import Occurrence, Survey, find_occurrences, is_wordlike, lowest, survey, unit_vectors
from elmokit.lexicon.settings import SenseSettings
from elmokit.progress import SILENCE, Progress
from elmokit.text.corpus import Context
from elmokit.text.inputs import batch_by_tokens, in_original_order
from elmokit.text.vocabulary import BOS, EOS

FEWEST = 8  # occurrences; fewer are taken for one sense unless a number is asked for
WINDOW = 10  # tokens on either side of an occurrence, of which some are keywords
PRIOR = 500.0  # words' worth of belief that a word is as frequent here as in the whole corpus
DEFAULTS = SenseSettings()
RESTARTS, MOST_ROUNDS = 10, 100  # of k-means
Labels = NDArray[np.int64]


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
    silhouette: float | None  # how well they stand apart, from -1 to 1; none for a single sense
    occurrences: tuple[Occurrence, ...]
    labels: Labels  # (N,) which sense each occurrence is of


class Clustering(NamedTuple):
    """Which cluster each vector is in."""

    labels: Labels  # (N,)
    centers: Vectors  # (clusters, D) of length 1
    likeness: float  # the mean cosine of a vector with its cluster's center


class Surroundings:
    """An embedder: for each token the forward state before it and the backward state after it, side by side.

    These are what the model predicts the token from, itself unread, and tell its senses apart best. A token's own
    vectors have read it, and much of them is the same wherever it stands.
    """

    def __init__(self, elmo: Elmo) -> None:
        self.elmo, self.width, self.layer_count = elmo, elmo.width, elmo.layer_count

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """One array per sentence: (T, D), or (L, T, D) for `layers="all"`; layer 0 is that of the words beside it."""
        self.elmo.embed([], layers=layers)  # refuses a layer that there is not
        bounded = [[BOS, *tokens, EOS] for tokens in self.elmo.tokenize(sentences)]
        batches = batch_by_tokens([len(tokens) for tokens in bounded], self.elmo.batch_tokens)
        return in_original_order(batches, (self._batch([bounded[i] for i in batch], layers) for batch in batches))

    def _batch(self, bounded: list[list[str]], layers: Layers) -> list[Vectors]:
        """The vectors of sentences with their bounds, sorted by falling length."""
        outputs, vectors = self.elmo.run(bounded, gradients=False).cpu().numpy(), []  # (L, N, 2P)
        for sentence in np.split(outputs, np.cumsum([len(tokens) for tokens in bounded])[:-1], axis=1):
            forward, backward = np.split(sentence, 2, axis=-1)  # (L, T + 2, P) each
            around = np.concatenate([forward[:, :-BOUNDS], backward[:, BOUNDS:]], axis=-1)  # (L, T, 2P)
            vectors.append(choose_layers(around, layers))
        return vectors


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
    """Group at most `limit` occurrences of a word, drawn evenly from the corpus; best by `Surroundings` of a model."""
    known = survey(corpus, progress=progress)
    reading: dict[str, Any] = {"layers": layers, "limit": limit, "seed": seed, "progress": progress}
    found = find_occurrences(corpus, embedder, [word], known=known, **reading)
    return group_senses(word, found[word], known, settings=settings, seed=seed)


def group_senses(
    word: str, occurrences: Sequence[Occurrence], known: Survey, *, settings: SenseSettings = DEFAULTS, seed: int = 0
) -> Senses:
    """Group occurrences that were found before; `known` is the survey of their corpus."""
    units = sense_vectors(np.stack([one.vector for one in occurrences]))
    clusters, score = _choose(units, settings, seed)
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
    return Senses(word, tuple(senses), score, tuple(occurrences), labels)


def sense_vectors(vectors: Vectors) -> Vectors:
    """The directions in which a word's occurrences differ from their mean, (N, D): what they share says nothing."""
    return unit_vectors(vectors - vectors.mean(axis=0))


def keywords(inside: Iterable[Occurrence], outside: Iterable[Occurrence], corpus: Mapping[str, int]) -> list[Keyword]:
    """Words around the one group of occurrences rather than the other, the highest scores first.

    The score is that of Monroe et al. (2008): the difference of log odds with the corpus as prior, over its standard
    error; small counts cannot make it large. Without another group the corpus itself is compared with.
    """
    here, there = _words_around(inside), _words_around(outside) or Counter(corpus)
    total = sum(corpus.values())
    sizes = here.total() + PRIOR, there.total() + PRIOR
    scores = []
    for word in filter(is_wordlike, here):
        counts, prior = (here[word], there[word]), PRIOR * corpus.get(word, 1) / total
        odds = [log((count + prior) / (size - count - prior)) for count, size in zip(counts, sizes, strict=True)]
        error = sqrt(1 / (counts[0] + prior) + 1 / (counts[1] + prior))
        scores.append(Keyword(word, (odds[0] - odds[1]) / error))
    return sorted((word for word in scores if word.score > 0), key=lambda word: (-word.score, word.word))


def cluster(units: Vectors, count: int, *, seed: int = 0, restarts: int = RESTARTS) -> Clustering:
    """The best of several spherical k-means of unit vectors, each begun by k-means++."""
    if not 1 <= count <= len(units):
        raise ConfigError(f"{len(units)} occurrences cannot be put into {count} groups")
    random = np.random.default_rng(seed)
    runs = (_settle(units, _spread_centers(units, count, random)) for _ in range(restarts))
    return max(runs, key=lambda run: run.likeness)


def silhouette(units: Vectors, labels: Labels) -> float:
    """The mean of (b - a) / max(a, b): a is the mean cosine distance to the own cluster, b to the nearest other one.

    Cosines of unit vectors add up, so the sums of the clusters give these means exactly without any pair being formed.
    """
    sizes = np.bincount(labels).astype(np.float64)  # (clusters,)
    if len(sizes) < 2:
        raise ConfigError("the silhouette of one cluster is not defined")
    sums = _sums(units, labels, len(sizes))  # (clusters, D)
    away = sizes - units @ sums.T  # (N, clusters): the distances to all members, that to itself being 0
    rows, own = np.arange(len(units)), sizes[labels]
    within = away[rows, labels] / np.maximum(own - 1, 1)
    between = away / np.maximum(sizes, 1)
    between[:, sizes == 0] = np.inf
    between[rows, labels] = np.inf
    nearest = between.min(axis=1)
    widest = np.maximum(within, nearest)
    scores = np.divide(nearest - within, widest, out=np.zeros_like(widest), where=widest > 0)
    return float(np.where(own > 1, scores, 0.0).mean())  # a cluster of one scores 0


def _choose(units: Vectors, settings: SenseSettings, seed: int) -> tuple[Clustering, float | None]:
    """As many clusters as are asked for, or as stand apart best, and their silhouette."""
    if settings.count is None and settings.most < 1:
        raise ConfigError(f"the most senses to try is {settings.most}: it must be at least 1")
    best: tuple[Clustering, float | None] = cluster(units, 1, seed=seed, restarts=1), None
    most = min(settings.most, len(units) - 1) if len(units) >= FEWEST else 1
    for count in range(2, most + 1) if settings.count is None else [settings.count]:
        clusters = cluster(units, count, seed=seed)
        score = silhouette(units, clusters.labels) if len(np.unique(clusters.labels)) > 1 else None
        better = score is not None and score >= settings.least_silhouette and (best[1] is None or score > best[1])
        if better or settings.count is not None:
            best = clusters, score
    return best


def _spread_centers(units: Vectors, count: int, random: np.random.Generator) -> Vectors:
    """k-means++: each further center is drawn with probability proportional to its distance from the nearest."""
    chosen = [int(random.integers(len(units)))]
    nearest = units @ units[chosen[0]]
    while len(chosen) < count:
        others = np.delete(np.arange(len(units)), chosen)
        distances = np.maximum(1 - nearest[others], 0).astype(np.float64)
        if not distances.any():  # all coincide with a center: any will do
            distances += 1
        chosen.append(int(random.choice(others, p=distances / distances.sum())))
        nearest = np.maximum(nearest, units @ units[chosen[-1]])
    return units[chosen]


def _settle(units: Vectors, centers: Vectors) -> Clustering:
    """Assign and average until nothing changes; an empty cluster keeps its center."""
    labels = np.full(len(units), -1)
    for _ in range(MOST_ROUNDS):
        before, labels = labels, (units @ centers.T).argmax(axis=1)
        if np.array_equal(before, labels):
            break
        full = np.bincount(labels, minlength=len(centers)) > 0
        centers = np.where(full[:, None], unit_vectors(_sums(units, labels, len(centers))), centers)
    return Clustering(labels, centers, likeness=float((units * centers[labels]).sum(axis=1).mean()))


def _sums(units: Vectors, labels: Labels, count: int) -> Vectors:
    """The sum of each cluster's vectors, (clusters, D)."""
    members = (np.arange(count)[:, None] == labels).astype(np.float32)  # (clusters, N)
    return np.asarray(members @ units)


def _words_around(occurrences: Iterable[Occurrence]) -> Counter[str]:
    """The words near the occurrences, these themselves left out."""
    counts: Counter[str] = Counter()
    for context, position, _ in occurrences:
        words = context.words
        counts.update(words[max(0, position - WINDOW) : position] + words[position + 1 : position + 1 + WINDOW])
    return counts
