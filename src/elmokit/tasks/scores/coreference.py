"""Coreference: MUC, B³, CEAF over entities, and their mean, summed over documents as CoNLL's scorer does."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import DataError
from elmokit.tasks.scores.f1 import F1, share

Clusters = Sequence[Collection[Hashable]]
Matrix = NDArray[np.float64]


class CoreferenceScores(NamedTuple):
    """The three measures."""

    muc: F1
    b_cubed: F1
    ceaf_e: F1

    @property
    def average(self) -> float:
        """The mean of the three F1, which CoNLL ranks by."""
        return sum(score.f1 for score in self) / len(self)


class _Overlap(NamedTuple):
    """Sizes of gold and predicted clusters, and how many mentions two of them have in common, where there are any."""

    gold: list[int]
    predicted: list[int]
    shared: dict[tuple[int, int], int]


def coreference_scores(documents: Iterable[tuple[Clusters, Clusters]]) -> CoreferenceScores:
    """The scores of documents, given the gold and the predicted clusters of mentions of each."""
    overlaps = [_overlap(list(filter(None, gold)), list(filter(None, predicted))) for gold, predicted in documents]
    swapped = [
        _Overlap(one.predicted, one.gold, {(two, first): size for (first, two), size in one.shared.items()})
        for one in overlaps
    ]
    muc, b_cubed = (F1(_recall(measure, swapped), _recall(measure, overlaps)) for measure in (_links, _mentions))
    matched = sum(map(_matched, overlaps))
    found, expected = sum(len(one.predicted) for one in overlaps), sum(len(one.gold) for one in overlaps)
    return CoreferenceScores(muc, b_cubed, F1.of_counts(matched, found, expected))


def _overlap(gold: Clusters, predicted: Clusters) -> _Overlap:
    theirs, ours = _owners(gold), _owners(predicted)
    shared = Counter((cluster, ours[mention]) for mention, cluster in theirs.items() if mention in ours)
    return _Overlap([len(cluster) for cluster in gold], [len(cluster) for cluster in predicted], shared)


def _owners(clusters: Clusters) -> dict[Hashable, int]:
    owners = {mention: number for number, cluster in enumerate(clusters) for mention in cluster}
    if len(owners) != sum(map(len, clusters)):
        raise DataError("a mention is in two clusters, or twice in one: expected each once")
    return owners


def _recall(measure: Callable[[_Overlap], tuple[float, float]], overlaps: list[_Overlap]) -> float:
    counted = [measure(one) for one in overlaps]
    return share(sum(found for found, _ in counted), sum(expected for _, expected in counted))


def _links(overlap: _Overlap) -> tuple[float, float]:
    """MUC: links of the gold clusters that are left when the predicted ones divide them, and links in all."""
    kept = sum(overlap.shared.values()) - len(overlap.shared)
    return kept, sum(size - 1 for size in overlap.gold)


def _mentions(overlap: _Overlap) -> tuple[float, float]:
    """B³: for each mention the share of its gold cluster that is predicted with it, and mentions in all."""
    gold = overlap.gold
    return sum(size * size / gold[cluster] for (cluster, _), size in overlap.shared.items()), sum(gold)


def _matched(overlap: _Overlap) -> float:
    """CEAF-e: clusters, each matched with one at most, by φ4 = 2 |G ∩ P| / (|G| + |P|)."""
    gold = {cluster: row for row, cluster in enumerate(sorted({one for one, _ in overlap.shared}))}
    predicted = {cluster: column for column, cluster in enumerate(sorted({two for _, two in overlap.shared}))}
    gains = np.zeros((len(gold), len(predicted)))
    for (one, two), size in overlap.shared.items():
        gains[gold[one], predicted[two]] = 2 * size / (overlap.gold[one] + overlap.predicted[two])
    return largest_assignment(gains)


def largest_assignment(gains: Matrix) -> float:
    """The largest sum of gains (N, M) of which no two share a row or a column, by the Hungarian method."""
    costs = -gains if gains.shape[0] <= gains.shape[1] else -gains.T  # (N, M), N <= M
    rows, columns = costs.shape
    row_of = np.full(columns + 1, -1)  # the last column is none: every row sets out from there
    row_prices, column_prices = np.zeros(rows), np.zeros(columns + 1)
    for row in range(rows):
        row_of[columns] = row
        _take_in(costs, row_of, row_prices, column_prices)
    taken = np.flatnonzero(row_of[:columns] >= 0)
    return 0.0 - float(costs[row_of[taken], taken].sum())


def _take_in(costs: Matrix, row_of: NDArray[np.int64], row_prices: Matrix, column_prices: Matrix) -> None:
    """Give the row that stands without a column one, along the shortest path to a column that is free."""
    start = column = costs.shape[1]
    distances = np.full(start, np.inf)
    before = np.full(start, start)
    passed = np.zeros(start + 1, dtype=bool)
    while row_of[column] >= 0:
        passed[column] = True
        row = row_of[column]
        reduced = costs[row] - row_prices[row] - column_prices[:-1]  # (M,)
        nearer = ~passed[:-1] & (reduced < distances)
        distances[nearer], before[nearer] = reduced[nearer], column
        open_distances = np.where(passed[:-1], np.inf, distances)
        column = int(open_distances.argmin())
        step = open_distances[column]
        row_prices[row_of[passed]] += step
        column_prices[passed] -= step
        distances -= step
    while column != start:
        row_of[column], column = row_of[before[column]], int(before[column])
    row_of[start] = -1
