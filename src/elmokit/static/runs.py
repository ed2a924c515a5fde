"""Sums by pair, put aside on disk in sorted runs and merged in bounded memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elmokit.static.kernels import Ints


class Run(NamedTuple):
    """Pairs in order, each once, and their sums; the pair (i, j) of V words is the number i * V + j."""

    pairs: Ints
    sums: Ints


def write_run(path: Path, run: Run) -> Run:
    """The run as it lies in two files, mapped into memory."""
    return Run(*(_written(path.with_suffix(f".{name}"), numbers) for name, numbers in run._asdict().items()))


def merged(runs: Sequence[Run], items: int) -> Iterator[Run]:
    """All runs in one, in stretches of about so many items."""
    starts = [0] * len(runs)
    for bound in _bounds(runs, items) if runs else []:
        ends = [int(np.searchsorted(run.pairs, bound)) for run in runs]
        slices = [slice(*ends) for ends in zip(starts, ends, strict=True)]
        pairs, sums = (np.concatenate([run[n][part] for run, part in zip(runs, slices, strict=True)]) for n in (0, 1))
        yield _summed(pairs, sums)
        starts = ends


def _summed(pairs: Ints, sums: Ints) -> Run:
    order = np.argsort(pairs, kind="stable")  # timsort, which finds the sorted runs and merges them
    pairs = pairs[order]
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    return Run(pairs[firsts], np.add.reduceat(sums[order], firsts))


def _bounds(runs: Sequence[Run], items: int) -> list[int]:
    """Pairs that divide all runs into stretches of about so many items; the last one is beyond them all."""
    step = max(1, items // (2 * len(runs)))
    samples = np.sort(np.concatenate([run.pairs[::step] for run in runs]))
    last = max(int(run.pairs[-1]) for run in runs) + 1
    return [*np.unique(samples[2 * len(runs) :: 2 * len(runs)]).tolist(), last]


def _written(path: Path, numbers: Ints) -> Ints:
    numbers.tofile(path)
    return np.memmap(path, dtype=np.int64, mode="r")
