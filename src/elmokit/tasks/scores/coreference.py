"""Coreference: MUC, B³, CEAF over entities, and their mean, summed over documents as CoNLL's scorer does."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.errors import DataError
from elmokit.tasks.scores.assignment import largest_assignment
from elmokit.tasks.scores.f1 import F1, share

Clusters = Sequence[Collection[Hashable]]


class CoreferenceScores(NamedTuple):
    """The three measures."""

    muc: F1
    b_cubed: F1
    ceaf_e: F1

    @property
    def average(self) -> float:
        """The mean of the three F1, which CoNLL ranks by."""
        return sum(score.f1 for score in self) / len(self)


def coreference_scores(documents: Iterable[tuple[Clusters, Clusters]]) -> CoreferenceScores:
    """The scores of documents, given the gold and the predicted clusters of mentions of each."""
    matches = [_match(list(filter(None, gold)), list(filter(None, predicted))) for gold, predicted in documents]
    return CoreferenceScores(*(_summed([measure(match) for match in matches]) for measure in (_muc, _b_cubed, _ceaf_e)))


class _Match(NamedTuple):
    gold: list[int]
    """Sizes of the clusters."""
    predicted: list[int]
    shared: dict[tuple[int, int], int]
    """How many mentions a gold and a predicted cluster have in common, where there are any."""

    def turned(self) -> "_Match":
        """With gold and predicted in each other's places."""
        return _Match(self.predicted, self.gold, {(two, one): size for (one, two), size in self.shared.items()})


class _Shares(NamedTuple):
    """Precision and recall before they are divided."""

    precise: float
    found: float
    recalled: float
    expected: float


def _match(gold: Clusters, predicted: Clusters) -> _Match:
    theirs, ours = _owners(gold), _owners(predicted)
    shared = Counter((cluster, ours[mention]) for mention, cluster in theirs.items() if mention in ours)
    return _Match([len(cluster) for cluster in gold], [len(cluster) for cluster in predicted], shared)


def _owners(clusters: Clusters) -> dict[Hashable, int]:
    owners = {mention: number for number, cluster in enumerate(clusters) for mention in cluster}
    if len(owners) != sum(map(len, clusters)):
        raise DataError("a mention is in two clusters, or twice in one: expected each once")
    return owners


def _summed(documents: list[_Shares]) -> F1:
    totals = _Shares(*map(sum, zip(*documents, strict=True))) if documents else _Shares(0, 0, 0, 0)
    return F1(share(totals.precise, totals.found), share(totals.recalled, totals.expected))


def _both_ways(measure: Callable[[_Match], tuple[float, float]], match: _Match) -> _Shares:
    return _Shares(*measure(match.turned()), *measure(match))


def _muc(match: _Match) -> _Shares:
    return _both_ways(_links, match)


def _links(match: _Match) -> tuple[float, float]:
    """Links of the gold clusters that are left when the predicted ones divide them, and links in all."""
    kept = sum(match.shared.values()) - len(match.shared)
    return kept, sum(size - 1 for size in match.gold)


def _b_cubed(match: _Match) -> _Shares:
    return _both_ways(_mentions, match)


def _mentions(match: _Match) -> tuple[float, float]:
    """For each mention the share of its gold cluster that is predicted with it, and mentions in all."""
    return sum(size * size / match.gold[cluster] for (cluster, _), size in match.shared.items()), sum(match.gold)


def _ceaf_e(match: _Match) -> _Shares:
    """Clusters, each matched with one at most, by φ4 = 2 |G ∩ P| / (|G| + |P|)."""
    gold = {cluster: row for row, cluster in enumerate(sorted({one for one, _ in match.shared}))}
    predicted = {cluster: column for column, cluster in enumerate(sorted({two for _, two in match.shared}))}
    gains = np.zeros((len(gold), len(predicted)))
    for (one, two), size in match.shared.items():
        gains[gold[one], predicted[two]] = 2 * size / (match.gold[one] + match.predicted[two])
    best = largest_assignment(gains)
    return _Shares(best, len(match.predicted), best, len(match.gold))
