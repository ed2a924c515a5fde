"""What training reads: the corpus as parallel streams of sentences, in both directions, shuffled every epoch.

An epoch is a pure function of the seed and its number. The corpus is divided between sentences into blocks; the blocks
are put in random order, and the sentences within each. This line of ids is divided into `batch` columns of equal
length, and a chunk is the next `unroll` ids of each. The two directions are shuffled each on its own.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ConfigError, DataError
from elmokit.text.numbering import BOS_ID, EOS_ID, UNK_ID

LARGEST_BLOCK = 1 << 14  # ids
SMALLEST_BLOCK = 1 << 10
BLOCKS_PER_COLUMN = 4  # in a corpus too small for the largest blocks
ROWS_AT_ONCE = 1 << 10  # ids of each column that are put together at a time


class Direction(NamedTuple):
    """What one of the two language models reads in a step; each array is (T, B)."""

    inputs: NDArray[np.int64]
    """Lexicon ids."""
    targets: NDArray[np.int64]
    """The vocabulary id of the word that comes next; -1 where a sentence has ended."""
    keep: NDArray[np.bool_]
    """False where a sentence begins: there the state starts from zero."""


class Chunk(NamedTuple):
    """A step of training; the two directions read different text."""

    forward: Direction
    """From <S> to </S>."""
    backward: Direction
    """From </S> to <S>."""


class Streams:
    """An endless iterator over the chunks of one epoch after another; each process reads its own columns of them."""

    def __init__(
        self,
        ids: NDArray[np.int32],
        *,
        vocab_size: int,
        batch: int,
        unroll: int,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if batch < 1 or unroll < 1:
            raise ConfigError(f"batch is {batch} and unroll is {unroll}: both must be at least 1")
        if batch % world or not 0 <= rank < world:
            raise ConfigError(
                f"a batch of {batch} cannot be shared by process {rank} of {world}: take a multiple of {world}"
            )
        if len(ids) < batch * unroll:
            raise DataError(
                f"the corpus has {len(ids)} tokens, <S> and </S> included, and one batch takes {batch} × {unroll}: "
                "add text, or lower batch or unroll"
            )
        self.ids, self.unroll, self.vocab_size, self.seed = ids, unroll, vocab_size, seed
        self.settings = {"ids": len(ids), "batch": batch, "unroll": unroll, "seed": seed}
        self.steps_per_epoch = -(-len(ids) // (batch * unroll))
        self.epoch = self.step = 0
        # Where each column of this process begins, and the end of the last, (B + 1,).
        self.columns = np.arange(rank * batch // world, (rank + 1) * batch // world + 1) * len(ids) // batch
        size = min(LARGEST_BLOCK, max(SMALLEST_BLOCK, len(ids) // (batch * BLOCKS_PER_COLUMN)))
        # Where each block begins, at the beginning of a sentence, and the end of the last.
        self.blocks = np.array(sorted({*(_next_sentence(ids, start) for start in range(0, len(ids), size)), len(ids)}))
        self._readers = (_Reader(self, reverse=False), _Reader(self, reverse=True))

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        forward, backward = (reader.read(self.epoch, self.step) for reader in self._readers)
        self.step += 1
        if self.step == self.steps_per_epoch:
            self.epoch, self.step = self.epoch + 1, 0
        return Chunk(forward, backward)

    @property
    def total_steps(self) -> int:
        """Chunks read since the beginning."""
        return self.epoch * self.steps_per_epoch + self.step

    def state(self) -> dict[str, int]:
        """Where the streams stand, the same in every process: plain numbers for `restore`."""
        return {"epoch": self.epoch, "step": self.step, **self.settings}

    def restore(self, state: dict[str, int]) -> None:
        """Go on exactly where the streams stood; the number of processes may be another."""
        for name, value in self.settings.items():
            if state[name] != value:
                raise ConfigError(f"the streams were saved with {name} {state[name]} and now have {value}: set it back")
        self.epoch, self.step = state["epoch"], state["step"]


def _next_sentence(ids: NDArray[np.int32], start: int, window: int = 256) -> int:
    while start < len(ids):
        found = np.flatnonzero(ids[start : start + window] == BOS_ID)
        if len(found):
            return start + int(found[0])
        start += window
    return len(ids)


class _Reader:
    """One direction: puts many chunks together at once, a panel, and hands them out."""

    def __init__(self, plan: Streams, *, reverse: bool) -> None:
        self.plan, self.reverse = plan, reverse
        self.begin, self.end = (EOS_ID, BOS_ID) if reverse else (BOS_ID, EOS_ID)
        self.chunks = -(-ROWS_AT_ONCE // plan.unroll)
        self.epoch = self.number = -1
        self.panel: Direction

    def read(self, epoch: int, step: int) -> Direction:
        number, within = divmod(step, self.chunks)
        if self.epoch != epoch:
            self._begin_epoch(epoch)
        if self.number != number:
            self.number = number
            self.panel = self._read_panel(number * self.chunks * self.plan.unroll)
        rows = slice(within * self.plan.unroll, (within + 1) * self.plan.unroll)
        inputs, targets, keep = self.panel
        return Direction(inputs[rows], targets[rows], keep[rows])

    def _begin_epoch(self, epoch: int) -> None:
        """All blocks of the corpus in a new order."""
        self.epoch, self.number = epoch, -1
        self.order = self._random().permutation(len(self.plan.blocks) - 1)
        self.starts = np.concatenate([[0], np.diff(self.plan.blocks)[self.order].cumsum()])
        self.shuffled: dict[int, NDArray[np.int32]] = {}

    def _read_panel(self, first: int) -> Direction:
        """The rows of all columns from the first on; after its end a column goes on with empty sentences."""
        rows = np.arange(first, first + self.chunks * self.plan.unroll)  # (T,)
        ids = self._read_columns(self.plan.columns[:-1] + first, len(rows) + 1).T  # (T + 1, B)
        inputs, targets = ids[:-1].astype(np.int64, order="C"), ids[1:].astype(np.int64, order="C")  # (T, B)
        past = rows[:, None] >= np.diff(self.plan.columns)  # (T, B)
        targets[targets >= self.plan.vocab_size] = UNK_ID
        targets[past | (inputs == self.end)] = -1
        inputs[past] = self.begin
        # A column may begin within a sentence, but then the state is that of other text.
        keep = (inputs != self.begin) & (rows[:, None] > 0)
        return Direction(inputs, targets, keep)

    def _read_columns(self, starts: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """So many ids from each start on, zeros after the end, (starts, length)."""
        columns = np.zeros((len(starts), length), dtype=np.int32)
        before, self.shuffled = self.shuffled, {}
        for column, start in zip(columns, starts.tolist(), strict=True):
            self._fill(column, start, before)
        return columns

    def _fill(self, column: NDArray[np.int32], start: int, before: dict[int, NDArray[np.int32]]) -> None:
        """Copy from one block after another, shuffled before or now."""
        rank = int(np.searchsorted(self.starts, start, side="right")) - 1
        filled = 0
        while filled < len(column) and rank < len(self.order):
            if rank not in self.shuffled:
                self.shuffled[rank] = before[rank] if rank in before else self._shuffle(int(self.order[rank]))
            skipped = start + filled - int(self.starts[rank])
            piece = self.shuffled[rank][skipped : skipped + len(column) - filled]
            column[filled : filled + len(piece)] = piece
            filled += len(piece)
            rank += 1

    def _shuffle(self, block: int) -> NDArray[np.int32]:
        """The sentences of a block in random order, each from its end to its beginning if reversed."""
        ids = np.array(self.plan.ids[self.plan.blocks[block] : self.plan.blocks[block + 1]])
        starts = np.flatnonzero(ids == BOS_ID)
        order = self._random(block).permutation(len(starts))
        lengths = np.diff(starts, append=len(ids))[order]
        shifts = starts[order] - (lengths.cumsum() - lengths)
        shuffled: NDArray[np.int32] = ids[np.arange(len(ids)) + np.repeat(shifts, lengths)]
        return shuffled[::-1] if self.reverse else shuffled

    def _random(self, *more: int) -> np.random.Generator:
        return np.random.default_rng((self.plan.seed, self.reverse, self.epoch, *more))
