"""The occurrences of a word, grouped into senses, each with its keywords and its most central sentences."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.elmo import BOUNDS, Elmo
from elmokit.embedder import Embedder, Layers, Sentence, Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.clustering import Clustering, Labels, cluster, silhouette
from elmokit.lexicon.occurrences import (
    Occurrence,
    Survey,
    distinct,
    find_occurrences,
    is_wordlike,
    survey,
    unit_vectors,
)
from elmokit.lexicon.settings import SenseSettings
from elmokit.progress import SILENCE, Progress
from elmokit.text.corpus import Context
from elmokit.text.inputs import batch_by_tokens, in_original_order
from elmokit.text.vocabulary import BOS, EOS

FEWEST = 8  # occurrences; fewer are taken for one sense unless a number is asked for
WINDOW = 10  # tokens on either side of an occurrence, of which some are keywords
PRIOR = 500.0  # words' worth of belief that a word is as frequent here as in the whole corpus
DEFAULTS = SenseSettings()


class Keyword(NamedTuple):
    """A word and by how many standard errors it is more frequent here than there."""

    word: str
    score: float


@dataclass(frozen=True)
class Sense:
    """Occurrences that are alike."""

    count: int
    share: float
    """Of all the occurrences."""
    examples: tuple[Occurrence, ...]
    """The most central first; no sentence twice."""
    words: tuple[Keyword, ...]
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
        """The vectors of sentences sorted by falling length."""
        outputs = self.elmo.run(bounded, gradients=False).cpu().numpy()  # (L, N, 2P)
        ends = np.cumsum([len(tokens) for tokens in bounded])[:-1]
        return [_around(sentence, layers) for sentence in np.split(outputs, ends, axis=1)]


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
    found = find_occurrences(
        corpus, embedder, [word], layers=layers, limit=limit, seed=seed, known=known, progress=progress
    )
    return group_senses(word, found[word], known, settings=settings, seed=seed)


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
    clusters, score = _choose(units, settings, seed)
    sizes = np.bincount(clusters.labels)
    labels = np.argsort(np.argsort(-sizes, kind="stable"))[clusters.labels]  # the largest cluster is 0
    central = (units * clusters.centers[clusters.labels]).sum(axis=1)  # (N,)
    senses = [_sense(occurrences, labels == number, central, known, settings) for number in range(labels.max() + 1)]
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
    scores = [
        Keyword(word, _log_odds(here[word], there[word], PRIOR * corpus.get(word, 1) / total, sizes))
        for word in here
        if is_wordlike(word)
    ]
    return sorted((word for word in scores if word.score > 0), key=lambda word: (-word.score, word.word))


def _around(bounded: Vectors, layers: Layers) -> Vectors:
    """Of a sentence with its bounds, (L, T + 2, 2P), what stands before and after each token, (L, T, 2P) or (T, 2P)."""
    forward, backward = np.split(bounded, 2, axis=-1)
    around: Vectors = np.concatenate([forward[:, :-BOUNDS], backward[:, BOUNDS:]], axis=-1)
    if layers != "all":
        around = around.mean(axis=0) if layers == "average" else around[-1 if layers == "top" else layers]
    return around


def _choose(units: Vectors, settings: SenseSettings, seed: int) -> tuple[Clustering, float | None]:
    """As many clusters as are asked for, or as stand apart best, and their silhouette."""
    if settings.count is not None:
        return _clustered(units, settings.count, seed)
    if settings.most < 1:
        raise ConfigError(f"the most senses to try is {settings.most}: it must be at least 1")
    best: tuple[Clustering, float | None] = cluster(units, 1, seed=seed, restarts=1), None
    most = min(settings.most, len(units) - 1) if len(units) >= FEWEST else 1
    for count in range(2, most + 1):
        clusters, score = _clustered(units, count, seed)
        if score is not None and score >= settings.least_silhouette and (best[1] is None or score > best[1]):
            best = clusters, score
    return best


def _clustered(units: Vectors, count: int, seed: int) -> tuple[Clustering, float | None]:
    clusters = cluster(units, count, seed=seed)
    return clusters, silhouette(units, clusters.labels) if len(np.unique(clusters.labels)) > 1 else None


def _sense(
    occurrences: Sequence[Occurrence],
    members: NDArray[np.bool_],
    central: Vectors,
    known: Survey,
    settings: SenseSettings,
) -> Sense:
    inside = [occurrence for occurrence, member in zip(occurrences, members, strict=True) if member]
    outside = [occurrence for occurrence, member in zip(occurrences, members, strict=True) if not member]
    ranked = [inside[index] for index in np.argsort(-central[members], kind="stable").tolist()]
    return Sense(
        len(inside),
        len(inside) / len(occurrences),
        distinct(ranked)[: settings.examples],
        tuple(keywords(inside, outside, known.counts)[: settings.keywords]),
    )


def _words_around(occurrences: Iterable[Occurrence]) -> Counter[str]:
    """The words near the occurrences, these themselves left out."""
    counts: Counter[str] = Counter()
    for context, position, _ in occurrences:
        words = context.words
        counts.update(words[max(0, position - WINDOW) : position] + words[position + 1 : position + 1 + WINDOW])
    return counts


def _log_odds(here: int, there: int, prior: float, sizes: tuple[float, float]) -> float:
    odds = [log((count + prior) / (size - count - prior)) for count, size in zip((here, there), sizes, strict=True)]
    return (odds[0] - odds[1]) / sqrt(1 / (here + prior) + 1 / (there + prior))
