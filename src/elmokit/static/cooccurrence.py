"""How often words stand near each other: counted in bounded memory, in as many threads as are asked for.

Pairs of frequent words are counted in a table, as most pairs of a text are such; the others are gathered in a buffer,
which is sorted, summed and put aside on disk whenever it is full. What was put aside is merged in the end. Counts are
whole numbers of a unit that every 1/distance is a multiple of, so they are exact in whatever order they are added up.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ConfigError
from elmokit.progress import SILENCE, Progress
from elmokit.static.corpus import Text
from elmokit.static.kernels import Ints, compiled, count_pairs, run_together, sum_sorted

Records = NDArray[np.void]
RECORD = np.dtype([("row", "<i4"), ("column", "<i4"), ("count", "<f4")])
LAST_EXACT = 22  # beyond this distance the least common multiple grows too large, and 1/distance is rounded to a unit
MOST_FILES = 500
STEP = 1 << 20  # words, or cells, at a time


class SortedSums(NamedTuple):
    """Pairs in order, each once, and their sums; the pair (i, j) of V words is the number i * V + j."""

    pairs: Ints
    sums: Ints


@dataclass(frozen=True, eq=False)
class Cooccurrences:
    """X, or the half of a symmetric X with row ≤ column, in random order."""

    parts: list[Records]
    """Row, column and count of every pair that occurs, in files mapped into memory."""
    words: int
    """Rows and columns of X."""
    symmetric: bool
    """Whether a record stands for (row, column) and (column, row)."""

    @property
    def pairs(self) -> int:
        """How many numbers of X are not 0."""
        stored = sum(map(len, self.parts))
        diagonal = sum(int((part["row"] == part["column"]).sum()) for part in self.parts)
        return 2 * stored - diagonal if self.symmetric else stored


def count_cooccurrences(
    text: Text,
    *,
    window: int = 10,
    symmetric: bool = True,
    memory_mb: float = 1000,
    threads: int = 1,
    seed: int = 1,
    progress: Progress = SILENCE,
) -> Cooccurrences:
    """X_ij, the sum of 1/distance over every j that stands at most a window after i, or if symmetric on either side.

    It lies in files in the text's folder, in an order that the seed decides.
    """
    words, tokens = len(text.words), len(text.ids)
    if words**2 * window >= 2**63:
        raise ConfigError(f"{words:,} words with a window of {window} are too many to number their pairs")
    memory = int(memory_mb * 1e6)
    layout = Layout(words, memory // (4 * 8 * threads), symmetric=symmetric)
    room = memory // (2 * 16 * threads)
    counters = [Counter(layout, window, room, text.folder / f"sums-{number}") for number in range(threads)]
    bounds = [0, *(text.line_end(tokens * number // threads) for number in range(1, threads)), tokens]
    jobs = [counter.count(text.ids, bounds[n], bounds[n + 1]) for n, counter in enumerate(counters)]
    run_together(jobs, lambda done: progress.update("counting", done, tokens, unit="words"))
    for counter in counters[1:]:
        counters[0].table += counter.table
    aside = [sums for counter in counters for sums in counter.aside]
    stored = int(np.count_nonzero(counters[0].table)) + sum(len(sums.pairs) for sums in aside)
    merged = chain(layout.read(counters[0].table), merge_sums(aside, memory // (4 * 48)))
    records = (_records(sums, words, counters[0].unit, symmetric=symmetric) for sums in merged)
    buckets = min(1 + stored * 32 // memory, MOST_FILES)  # shuffling takes 32 bytes per record
    return Cooccurrences(_shuffled(records, text.folder, buckets, seed), words, symmetric)


class Layout:
    """Which pairs have a cell in the table: those of the most frequent words, by the product of their ranks.

    The table is the largest with at most so many cells; a symmetric one holds i ≤ j alone.
    """

    def __init__(self, words: int, cells: int, *, symmetric: bool) -> None:
        ranks = np.arange(1, words + 1)
        first = ranks - 1 if symmetric else np.zeros_like(ranks)  # column of each row

        def lengths(product: int) -> Ints:
            return np.maximum(np.minimum(product // ranks, words) - first, 0)

        found = lengths(bisect_right(range(words**2 + 1), cells, key=lambda product: lengths(product).sum()) - 1)
        self.symmetric, self.starts = symmetric, np.cumsum(found) - found
        # (V,): the cell of (i, j) is rows[i] + j if j < columns[i].
        self.rows, self.columns = self.starts - first, first + found

    def read(self, table: Ints) -> Iterator[SortedSums]:
        """The sums of a table that are not 0."""
        for start in range(0, len(table), STEP):
            cells = np.flatnonzero(table[start : start + STEP]) + start
            rows = np.searchsorted(self.starts, cells, side="right") - 1
            yield SortedSums(rows * len(self.rows) + cells - self.rows[rows], table[cells])


class Counter:
    """Counts a stretch of text in one thread."""

    def __init__(self, layout: Layout, window: int, room: int, path: Path) -> None:
        self.layout, self.window, self.room, self.path = layout, window, max(room, 2 * window), path
        self.unit = math.lcm(*range(1, min(window, LAST_EXACT) + 1))
        self.weights = np.array([0, *(round(self.unit / distance) for distance in range(1, window + 1))])
        self.table = np.zeros(int(layout.rows[-1] + layout.columns[-1]), dtype=np.int64)
        self.aside: list[SortedSums] = []

    def count(self, ids: NDArray[np.int32], begin: int, end: int) -> Iterator[int]:
        """Count the words from begin to end, and say now and then how many are done."""
        kernel, layout, first = compiled(count_pairs), self.layout, begin
        cells = layout.rows, layout.columns, self.table
        buffer, used = np.empty(self.room, dtype=np.int64), 0
        while begin < end:
            stop = min(begin + STEP, end)
            begin, added = kernel(ids, begin, stop, layout.symmetric, self.weights, *cells, buffer[used:])
            used += added
            if used and (begin < stop or begin == end):
                self._put_aside(buffer[:used])
                used = 0
            yield begin - first

    def _put_aside(self, buffer: Ints) -> None:
        buffer.sort()
        sums = np.empty(len(buffer), dtype=np.int64)
        length = compiled(sum_sorted)(buffer, self.weights, sums)
        paths = [self.path.with_name(f"{self.path.name}-{len(self.aside)}.{kind}") for kind in SortedSums._fields]
        for path, numbers in zip(paths, (buffer[:length], sums[:length]), strict=True):
            numbers.tofile(path)
        self.aside.append(SortedSums(*(np.memmap(path, dtype=np.int64, mode="r") for path in paths)))


def merge_sums(parts: Sequence[SortedSums], items: int) -> Iterator[SortedSums]:
    """All parts in one, in stretches of about so many items."""
    if not parts:
        return
    # Pairs that divide all parts into stretches of about so many items; the last one is beyond them all.
    samples = np.sort(np.concatenate([part.pairs[:: max(1, items // (2 * len(parts)))] for part in parts]))
    last = max(int(part.pairs[-1]) for part in parts) + 1
    starts = [0] * len(parts)
    for bound in (*np.unique(samples[2 * len(parts) :: 2 * len(parts)]).tolist(), last):
        ends = [int(np.searchsorted(part.pairs, bound)) for part in parts]
        found = [(part.pairs[a:b], part.sums[a:b]) for part, a, b in zip(parts, starts, ends, strict=True)]
        pairs, sums = (np.concatenate(numbers) for numbers in zip(*found, strict=True))
        order = np.argsort(pairs, kind="stable")  # timsort, which finds the sorted parts and merges them
        pairs = pairs[order]
        firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
        yield SortedSums(pairs[firsts], np.add.reduceat(sums[order], firsts))
        starts = ends


def _records(sums: SortedSums, words: int, unit: int, *, symmetric: bool) -> Records:
    records = np.empty(len(sums.pairs), dtype=RECORD)
    rows, columns = np.divmod(sums.pairs, words)
    records["row"], records["column"] = rows, columns
    # A word near itself is met in both orders.
    records["count"] = np.where((rows == columns) & symmetric, 2 * sums.sums, sums.sums) / unit
    return records


def _shuffled(blocks: Iterable[Records], folder: Path, buckets: int, seed: int) -> list[Records]:
    """All records in random order: each goes into a bucket that is drawn, and every bucket is shuffled by itself."""
    random = np.random.default_rng(seed)
    paths = [folder / f"records-{bucket}" for bucket in range(buckets)]
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("wb")) for path in paths]
        for block in blocks:
            drawn = random.integers(buckets, size=len(block))
            for bucket, file in enumerate(files):
                block[drawn == bucket].tofile(file)
    paths = [path for path in paths if path.stat().st_size]
    for path in paths:
        records = np.fromfile(path, dtype=RECORD)
        # To sort by 16 random bits is faster than a permutation; the few that draw the same stay in order.
        drawn = random.integers(1 << 16, size=len(records), dtype=np.uint16)
        records.view("V12").take(np.argsort(drawn, kind="stable")).tofile(path)
    return [np.memmap(path, dtype=RECORD, mode="r") for path in paths]
