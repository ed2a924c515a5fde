"""Vectors clustered by direction: spherical k-means, and how well the clusters stand apart."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.occurrences import unit_vectors

RESTARTS = 10
MOST_ROUNDS = 100

Labels = NDArray[np.int64]


class Clustering(NamedTuple):
    """Which cluster each vector is in."""

    labels: Labels
    """(N,)"""
    centers: Vectors
    """(clusters, D) of length 1."""
    likeness: float
    """The mean cosine of a vector with its cluster's center."""


def cluster(units: Vectors, count: int, *, seed: int = 0, restarts: int = RESTARTS) -> Clustering:
    """The best of several spherical k-means of unit vectors, each begun by k-means++."""
    if not 1 <= count <= len(units):
        raise ConfigError(f"{len(units)} occurrences cannot be put into {count} groups")
    random = np.random.default_rng(seed)
    runs = [_settle(units, _spread_centers(units, count, random)) for _ in range(restarts)]
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
    likeness = float((units * centers[labels]).sum(axis=1).mean())
    return Clustering(labels, centers, likeness)


def _sums(units: Vectors, labels: Labels, count: int) -> Vectors:
    """The sum of each cluster's vectors, (clusters, D)."""
    members = (np.arange(count)[:, None] == labels).astype(np.float32)  # (clusters, N)
    sums: Vectors = members @ units
    return sums
