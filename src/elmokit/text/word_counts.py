"""Every distinct word of a corpus, counted as it is read and numbered by frequency at the end."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TRAIN, VALID = 0, 1
BOS_ID, EOS_ID, UNK_ID = 0, 1, 2
SPECIAL_IDS = (BOS_ID, EOS_ID, UNK_ID)


class RankedWords(NamedTuple):
    """All words in their final order."""

    words: list[str]
    """The first words as they were given, then the others by falling count in training."""
    counts: NDArray[np.int64]
    """(2, words): in training, held out."""
    ids: NDArray[np.int32]
    """The final id of each number that was handed out; <UNK> for a word that was forgotten."""
    forgotten: int
    """Tokens whose word was forgotten."""


class WordCounter:
    """Hands out numbers for words; beyond `limit` words the rarest are forgotten, so that memory stays bounded."""

    def __init__(self, first: Sequence[str], *, limit: int) -> None:
        self.first, self.limit = len(first), limit
        self._numbers = defaultdict(count(len(first)).__next__, zip(first, range(len(first)), strict=True))
        self._counts = np.zeros((2, max(2 * len(first), 1 << 10)), dtype=np.int64)  # (2, room)

    def add(self, words: Sequence[str], ids: NDArray[np.int32], part: int) -> NDArray[np.int32]:
        """Count ids that stand for <S>, </S>, <UNK>, words[0], words[1]…, and number them for the whole corpus."""
        numbers = np.array([*SPECIAL_IDS, *map(self._numbers.__getitem__, words)], dtype=np.int32)
        self._make_room(int(numbers.max()) + 1)
        np.add.at(self._counts[part], numbers, np.bincount(ids, minlength=len(numbers)))
        if len(self._numbers) - self.first > self.limit:
            self._forget()
        return numbers[ids]

    def ranked(self) -> RankedWords:
        """All words in their final order, ties by the word itself."""
        in_training = self._counts[TRAIN]
        entries = list(self._numbers.items())
        later = sorted(entries[self.first :], key=lambda entry: (-in_training[entry[1]], entry[0]))
        kept = [*entries[: self.first], *later]
        numbers = np.array([number for _, number in kept])
        ids = np.full(self._counts.shape[1], UNK_ID, dtype=np.int32)
        ids[numbers] = np.arange(len(kept))
        counts = self._counts[:, numbers]  # (2, words)
        forgotten = self._counts.sum(axis=1) - counts.sum(axis=1)  # (2,)
        counts[:, UNK_ID] += forgotten
        return RankedWords([word for word, _ in kept], counts, ids, int(forgotten.sum()))

    def _make_room(self, size: int) -> None:
        room = self._counts.shape[1]
        if size > room:
            self._counts = np.pad(self._counts, ((0, 0), (0, max(size, 2 * room) - room)))

    def _forget(self) -> None:
        """Drop the words seen once, then twice and so on, until a quarter of the limit is free."""
        seen = self._counts.sum(axis=0)
        least = 2
        while len(self._numbers) - self.first > self.limit * 3 // 4:
            rare = [word for word, number in self._numbers.items() if number >= self.first and seen[number] < least]
            for word in rare:
                del self._numbers[word]
            least += 1
