import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError
from elmokit.text.inputs import batch_by_tokens, in_original_order

LENGTHS = st.lists(st.integers(min_value=0, max_value=60), max_size=60)
BUDGETS = st.integers(min_value=1, max_value=100)


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        ([], 10, []),
        ([3, 9, 3, 4], 10, [[1], [3, 0, 2]]),
        ([5, 5, 5, 5], 10, [[0, 1], [2, 3]]),
        ([50, 2, 50], 10, [[0], [2], [1]]),
        ([0, 0], 1, [[0, 1]]),
        ([1, 1, 1], 1, [[0], [1], [2]]),
    ],
)
def test_batches(lengths, budget, expected):
    assert batch_by_tokens(lengths, budget) == expected


@pytest.mark.parametrize("budget", [0, -5])
def test_no_budget(budget):
    with pytest.raises(ConfigError, match=f"{budget} tokens: it must be at least 1"):
        batch_by_tokens([1], budget)


@given(LENGTHS, BUDGETS)
def test_every_index_once_by_falling_length_within_the_budget(lengths, budget):
    batches = batch_by_tokens(lengths, budget)
    order = [index for batch in batches for index in batch]
    assert order == sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    assert all(len(batch) == 1 or 0 <= sum(lengths[index] for index in batch) <= budget for batch in batches)


@given(LENGTHS, BUDGETS)
def test_results_come_back_in_order(lengths, budget):
    batches = batch_by_tokens(lengths, budget)
    results = ([f"result {index}" for index in batch] for batch in batches)
    assert in_original_order(batches, results) == [f"result {index}" for index in range(len(lengths))]


def test_a_missing_result_is_not_passed_over():
    with pytest.raises(ValueError):
        in_original_order([[1, 0], [2]], [["b", "a"]])
