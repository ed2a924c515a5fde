"""How often words stand near each other: counted in bounded memory, in as many threads as are asked for.

Pairs of frequent words are counted in a table, as most pairs of a text are such; the others are gathered in a buffer,
which is sorted, summed and put aside on disk whenever it is full. What was put aside is merged in the end. Counts are
whole numbers of a unit that every 1/distance is a multiple of, so they are exact in whatever order they are added up.
"""

import math
import shutil
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from elmokit.errors import ConfigError, DataError
from elmokit.files import parsing, replacing, writing
from elmokit.progress import SILENCE, Progress
from elmokit.shards import WHOLE, Shard
from elmokit.static.corpus import Text
from elmokit.static.kernels import Ints, compiled, count_pairs, run_together, sum_sorted
from elmokit.static.settings import GloveSettings

Records = NDArray[np.void]
RECORD = np.dtype([("row", "<i4"), ("column", "<i4"), ("count", "<f4")])
LAST_EXACT = 22  # beyond this distance the least common multiple grows too large, and 1/distance is rounded to a unit
MOST_FILES = 500
STEP = 1 << 20  # words, or pairs, at a time
MERGED = 4 * 48  # bytes of memory for each item of a stretch: a quarter of it is for merging


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
    settings: GloveSettings = GloveSettings(),
    *,
    counts: Sequence[Path] = (),
    progress: Progress = SILENCE,
) -> Cooccurrences:
    """X_ij, the sum of 1/distance over every j that stands at most a window after i, or if symmetric on either side.

    It lies in files in the text's folder, in an order that the seed decides. `counts` are the files of shards, all of
    them, that `write_counts` wrote of the same text.
    """
    words, memory, path = len(text.words), int(settings.memory_mb * 1e6), text.folder / "counts"
    if counts:
        _write_sums(path, merge_sums([_read_sums(shard, words) for shard in counts], memory // MERGED))
    else:
        write_counts(text, path, settings=settings, progress=progress)
    sums = _read_sums(path, words)
    stored = len(sums.pairs)
    stretches = (SortedSums(*(numbers[start : start + STEP] for numbers in sums)) for start in range(0, stored, STEP))
    unit, symmetric = unit_of(settings.window), settings.symmetric
    records = (_records(stretch, words, unit, symmetric=symmetric) for stretch in stretches)
    buckets = min(1 + stored * 32 // memory, MOST_FILES)  # shuffling takes 32 bytes per record
    return Cooccurrences(_shuffled(records, text.folder, buckets, settings.seed), words, symmetric)


def write_counts(
    text: Text, path: Path, shard: Shard = WHOLE, *, settings: GloveSettings, progress: Progress = SILENCE
) -> None:
    """Count the pairs of a shard, a stretch of the text, into a file."""
    words, window, threads = len(text.words), settings.window, settings.threads
    if words**2 * window >= 2**63:
        raise ConfigError(f"{words:,} words with a window of {window} are too many to number their pairs")
    memory = int(settings.memory_mb * 1e6)
    layout = Layout(words, memory // (4 * 8 * threads), symmetric=settings.symmetric)
    room = memory // (2 * 16 * threads)
    counters = [Counter(layout, window, room, text.folder / f"sums-{number}") for number in range(threads)]
    part = text.divided(shard.total)[shard.number - 1]
    jobs = [counter.count(stretch.ids) for counter, stretch in zip(counters, part.divided(threads), strict=True)]
    run_together(jobs, lambda done: progress.update("counting", done, len(part.ids), unit="words"))
    for counter in counters[1:]:
        counters[0].table += counter.table
    aside = [sums for counter in counters for sums in counter.aside]
    _write_sums(path, merge_sums([layout.read(counters[0].table), *aside], memory // MERGED))


def _write_sums(path: Path, stretches: Iterable[SortedSums]) -> None:
    """A .npy file of all pairs and then of all sums."""
    with replacing(path) as partial, writing(path), partial.open("wb") as file, TemporaryFile(dir=path.parent) as sums:
        header = {"descr": "<i8", "fortran_order": False, "shape": (2, 0)}
        write_array_header_1_0(file, header)
        for stretch in stretches:
            stretch.pairs.tofile(file)
            stretch.sums.tofile(sums)
        header["shape"] = (2, sums.tell() // 8)
        sums.seek(0)
        shutil.copyfileobj(sums, file)
        file.seek(0)
        write_array_header_1_0(file, header)  # has room for any length


def _read_sums(path: Path, words: int) -> SortedSums:
    """What was written, looked through once: a damaged file would make counts of nothing."""
    remedy = "Remove it, and give the same command again"
    with parsing(path, "a shard of counts", kind=DataError, remedy=remedy):
        pairs, sums = np.load(path, mmap_mode="r")
        last = -1
        for start in range(0, len(pairs), STEP):
            some = pairs[start : start + STEP]
            if (
                some[0] <= last
                or (np.diff(some) <= 0).any()
                or some[-1] >= words**2
                or sums[start : start + STEP].min() <= 0
            ):
                raise ValueError("pairs that are not in order, or counts below 0")
            last = some[-1]
        return SortedSums(pairs, sums)


def unit_of(window: int) -> int:
    """What counts are whole numbers of."""
    return math.lcm(*range(1, min(window, LAST_EXACT) + 1))


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

    def read(self, table: Ints) -> SortedSums:
        """The sums of a table that are not 0."""
        cells = np.flatnonzero(table)
        rows = np.searchsorted(self.starts, cells, side="right") - 1
        return SortedSums(rows * len(self.rows) + cells - self.rows[rows], table[cells])


class Counter:
    """Counts a stretch of text in one thread."""

    def __init__(self, layout: Layout, window: int, room: int, path: Path) -> None:
        self.layout, self.window, self.room, self.path = layout, window, max(room, 2 * window), path
        unit = unit_of(window)
        self.weights = np.array([0, *(round(unit / distance) for distance in range(1, window + 1))])
        self.table = np.zeros(int(layout.rows[-1] + layout.columns[-1]), dtype=np.int64)
        self.aside: list[SortedSums] = []

    def count(self, ids: NDArray[np.int32]) -> Iterator[int]:
        """Count the words of these lines, and say now and then how many are done."""
        kernel, layout, begin, end = compiled(count_pairs), self.layout, 0, len(ids)
        cells = layout.rows, layout.columns, self.table
        buffer, used = np.empty(self.room, dtype=np.int64), 0
        while begin < end:
            stop = min(begin + STEP, end)
            begin, added = kernel(ids, begin, stop, layout.symmetric, self.weights, *cells, buffer[used:])
            used += added
            if used and (begin < stop or begin == end):
                self._put_aside(buffer[:used])
                used = 0
            yield begin

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
    parts = [part for part in parts if len(part.pairs)]
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
