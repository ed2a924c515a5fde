"""How far apart the uses of a word in two samples are, and whether it could be chance.

Each measure is a function of the sums of the occurrences' rows, (D,), and of their numbers, so that what a permutation
test computes thousands of times is one product of matrices.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[Any]
Numbers = NDArray[np.float64]
Measurement = Callable[[Rows, Any, Rows, Any], Numbers]
ROUNDS_AT_ONCE = 250  # of a permutation test


def average_pairwise_distance(first: Rows, here: Any, second: Rows, there: Any) -> Numbers:
    """1 - mean(u) · mean(v) of the unit vectors u here and v there, which is the mean of 1 - cosine over all pairs."""
    return np.asarray(1 - (first * second).sum(axis=-1) / (here * there))


def excess_distance(first: Rows, here: Any, second: Rows, there: Any) -> Numbers:
    """The average pairwise distance less that of any two occurrences, wherever they are: 0 on average without change.

    By itself the former is mostly how varied the uses of a word are. What is left grows with the squared distance of
    the two means of unit vectors.
    """
    total, number = first + second, here + there
    cosines = ((total * total).sum(axis=-1) - number) / (number * (number - 1))
    return np.asarray(average_pairwise_distance(first, here, second, there) - (1 - cosines))


def prototype_distance(first: Rows, here: Any, second: Rows, there: Any) -> Numbers:  # noqa: ARG001
    """1 - cosine of the mean vectors, which point where their sums do."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    products = (first * second).sum(axis=-1)
    return np.asarray(1 - np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths > 0))


def jensen_shannon_divergence(first: Rows, here: Any, second: Rows, there: Any) -> Numbers:
    """½ KL(p ‖ m) + ½ KL(q ‖ m) in bits, from 0 to 1: p and q are the mean distributions, m the mean of the two."""
    p, q = first / here, second / there
    terms = divergence_terms(p, q) + divergence_terms(q, p)
    return np.asarray(np.maximum(terms.sum(axis=-1), 0) / 2)


def divergence_terms(p: Rows, q: Rows) -> Numbers:
    """p log2(p / m) of each word, m the mean of p and q: what it adds to the divergence from p's side."""
    ratio = np.divide(2 * p, p + q, out=np.ones(np.shape(p)), where=p > 0)
    return np.asarray(p * np.log2(ratio))


MEASURES: dict[str, Measurement] = {
    "apd": average_pairwise_distance,
    "excess": excess_distance,
    "prt": prototype_distance,
    "jsd": jensen_shannon_divergence,
}


def permutation_test(first: Rows, second: Rows, measure: Measurement, *, rounds: int, seed: int = 0) -> float:
    """How probable so large a distance is if it does not matter which occurrences, (N, D) and (M, D), are where.

    p = (1 + rounds in which occurrences dealt out anew are as far apart) / (1 + rounds), which is never 0.
    """
    rows, here, there = np.concatenate([first, second]).astype(np.float64), len(first), len(second)
    total, random = rows.sum(axis=0), np.random.default_rng(seed)
    observed = measure(first.astype(np.float64).sum(axis=0), here, second.astype(np.float64).sum(axis=0), there)
    as_far = 0
    for done in range(0, rounds, ROUNDS_AT_ONCE):
        order = random.random((min(ROUNDS_AT_ONCE, rounds - done), here + there)).argsort(axis=1)
        sums = (order < here).astype(np.float64) @ rows  # (rounds, D)
        # The sums of the same rows in another order differ in their last digits.
        as_far += int((measure(sums, here, total - sums, there) >= observed - 1e-9).sum())
    return (1 + as_far) / (1 + rounds)


def adjusted(p_values: Sequence[float], tests: int) -> list[float]:
    """Benjamini and Hochberg's q of each p-value: the share of false findings among all with p as small.

    `tests` is how many words were compared; those of which no p is known count as if theirs were larger.
    """
    order = np.argsort(p_values)
    scaled = np.asarray(p_values)[order] * tests / np.arange(1, len(p_values) + 1)
    q = np.empty(len(p_values))
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1)
    return [float(value) for value in q]


def orthogonal_map(source: Rows, target: Rows) -> Rows:
    """The rotation Q that brings the rows of one matrix nearest to those of another, (D, D): Schönemann (1966).

    Q = U Vᵀ of the singular value decomposition of sourceᵀ target minimises ‖source Q - target‖.
    """
    left, _, right = np.linalg.svd(source.T @ target)
    return np.asarray(left @ right)
