"""Who goes best with whom, each with one other at most."""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


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
