"""Vectors in groups: spherical k-means, agglomerative clustering by average linkage, and the silhouette."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.occurrences import unit_vectors

RESTARTS, MOST_ROUNDS = 10, 100  # of k-means
STRONG_SHARES = (
    0.1,
    0.05,
    0.0,
)  # of all vectors: what a cluster needs to be a group of its own; lower if too few have it
Labels = NDArray[np.int64]


class Clustering(NamedTuple):
    """Which cluster each vector is in."""

    labels: Labels  # (N,)
    centers: Vectors  # (clusters, D) of length 1
    likeness: float  # the mean cosine of a vector with its cluster's center


def cluster(units: Vectors, count: int, *, seed: int = 0, restarts: int = RESTARTS) -> Clustering:
    """The best of several spherical k-means of unit vectors, each begun by k-means++."""
    if not 1 <= count <= len(units):
        raise ConfigError(f"{len(units)} occurrences cannot be put into {count} groups")
    random = np.random.default_rng(seed)
    runs = (_settle(units, _spread_centers(units, count, random)) for _ in range(restarts))
    return max(runs, key=lambda run: run.likeness)


def agglomerate(units: Vectors, count: int) -> Clustering:
    """Average linkage of cosine distances, cut where so many clusters are strong; k-means from their centers on.

    Average linkage leaves outliers by themselves. As Amrami and Goldberg (2019) do, such weak clusters are no groups:
    their vectors join the nearest strong one.
    """
    if not 1 <= count <= len(units):
        raise ConfigError(f"{len(units)} occurrences cannot be put into {count} groups")
    merges = linkage(units)
    for share in STRONG_SHARES:
        for number in range(count, len(units) + 1):
            labels = _cut(merges, number)
            sizes = np.bincount(labels)
            strong = np.flatnonzero(sizes >= max(share * len(units), 1))
            if len(strong) == count:
                return _settle(units, unit_vectors(_sums(units, labels, number)[strong]))
            if share * len(units) > sizes.max() / 2 and len(strong) < count:
                break  # no further cut can make more of them
    raise AssertionError("as many clusters as are asked for are there without a share")


def linkage(units: Vectors) -> NDArray[np.int64]:
    """Average linkage by the nearest-neighbour chain: a member of each of two clusters that merge, (N - 1, 2)."""
    distances = 1 - np.asarray(units @ units.T, np.float64)  # (N, N)
    np.fill_diagonal(distances, np.inf)
    sizes, chain, merges = np.ones(len(units)), list[int](), list[tuple[float, int, int]]()
    while len(merges) < len(units) - 1:
        if not chain:
            chain = [int(np.flatnonzero(sizes)[0])]
        nearest = int(distances[chain[-1]].argmin())
        if len(chain) > 1 and distances[chain[-1], chain[-2]] <= distances[chain[-1], nearest]:
            one, other = chain.pop(), chain.pop()
            merges.append((float(distances[one, other]), one, other))
            row = (sizes[one] * distances[one] + sizes[other] * distances[other]) / (sizes[one] + sizes[other])
            row[one] = np.inf
            distances[one] = distances[:, one] = row
            distances[other] = distances[:, other] = np.inf
            sizes[one], sizes[other] = sizes[one] + sizes[other], 0
        else:
            chain.append(nearest)
    merges.sort(key=lambda merge: merge[0])
    return np.array([pair for _, *pair in merges], np.int64).reshape(-1, 2)


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
    return Clustering(labels, centers, likeness=float((units * centers[labels]).sum(axis=1).mean()))


def _sums(units: Vectors, labels: Labels, count: int) -> Vectors:
    """The sum of each cluster's vectors, (clusters, D)."""
    members = (np.arange(count)[:, None] == labels).astype(np.float32)  # (clusters, N)
    return np.asarray(members @ units)


def _cut(merges: NDArray[np.int64], count: int) -> Labels:
    """The labels, (N,), when so many clusters are left."""
    owners = list(range(len(merges) + 1))

    def owner(index: int) -> int:
        while owners[index] != index:
            owners[index] = index = owners[owners[index]]
        return index

    for one, other in merges[: len(owners) - count].tolist():
        owners[owner(one)] = owner(other)
    return np.unique([owner(index) for index in range(len(owners))], return_inverse=True)[1]
