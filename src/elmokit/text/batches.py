"""Sentences of like length together, and their results back in order."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar

from elmokit.errors import ConfigError

T = TypeVar("T")


def batch_by_tokens(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices by falling length, in batches of at most `budget` tokens; a longer item stands alone."""
    if budget < 1:
        raise ConfigError(f"the batch budget is {budget} tokens: it must be at least 1")
    batches: list[list[int]] = []
    room = -1
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if not batches or lengths[index] > room:
            batches.append([])
            room = budget
        batches[-1].append(index)
        room -= lengths[index]
    return batches


def in_original_order(batches: list[list[int]], results: Iterable[Sequence[T]]) -> list[T]:
    """The results of each batch, put where their items stood before batching."""
    pairs = zip(chain.from_iterable(batches), chain.from_iterable(results), strict=True)
    by_index = dict(pairs)
    return [by_index[index] for index in range(len(by_index))]
