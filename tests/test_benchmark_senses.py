"""The scores of the benchmark of senses, against another library and by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
senses = pytest.importorskip("senses")


@pytest.mark.parametrize("seed", range(5))
def test_v_measure(seed):
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    random = np.random.default_rng(seed)
    gold, found = random.integers(0, 3, 40), random.integers(0, seed + 1, 40)
    assert senses.v_measure(gold, found) == pytest.approx(metrics.v_measure_score(gold, found))


def test_scores_of_what_is_known():
    gold = np.array([0, 0, 0, 1])
    one, right = np.zeros(4, np.int64), np.array([1, 1, 1, 0])
    assert senses.v_measure(gold, right) == pytest.approx(1)
    assert senses.v_measure(gold, one) == pytest.approx(0)
    assert senses.paired_f(gold, right) == 1
    assert senses.paired_f(gold, one) == pytest.approx(2 * 3 / (3 + 6))  # 3 pairs are right, 6 are put together
    assert senses.purity(one, gold) == 0.75


def test_where_one_sense_and_two_are_equally_probable():
    random = np.random.default_rng(0)
    even, slope = senses.logistic(random.normal(0.1, 0.05, 4000), random.normal(0.2, 0.05, 1000))
    assert even == pytest.approx(0.15, abs=0.01)
    assert slope == pytest.approx(0.1 / 0.05**2, rel=0.1)  # of two normal distributions of the same spread
