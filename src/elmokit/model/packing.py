"""Sentences of different length, laid out time step by time step so that no padding is computed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Packing(NamedTuple):
    """Where each packed row comes from among the flat tokens, for a run in each direction."""

    forward: Tensor
    """(N,) flat position of each packed row, reading left to right."""
    backward: Tensor
    """(N,) the same, reading each sentence from its own end."""
    batch_sizes: list[int]
    """How many sentences are still running at each step."""
    last_rows: Tensor
    """(B,) the packed row of each sentence's last step."""


def pack(lengths: Sequence[int], device: torch.device | str = "cpu", *, ends: bool = True) -> Packing:
    """Plan the time-major order of sentences that stand end to end, longest first; without `ends`, less a last step."""
    length = np.asarray(lengths, dtype=np.int64)
    if np.any(length[1:] > length[:-1]):
        raise ValueError("sentences must be sorted by falling length")
    start = np.cumsum(length) - length
    steps = length if ends else length - 1
    running = np.arange(steps.max(initial=0))[:, None] < steps  # (T, B)
    step, row = running.nonzero()
    batch_sizes = running.sum(axis=1)
    step_starts = np.cumsum(batch_sizes) - batch_sizes
    return Packing(
        forward=torch.from_numpy(start[row] + step).to(device),
        backward=torch.from_numpy(start[row] + length[row] - 1 - step).to(device),
        batch_sizes=batch_sizes.tolist(),
        last_rows=torch.from_numpy(step_starts[steps - 1] + np.arange(len(length))).to(device),
    )
