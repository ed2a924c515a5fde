"""Vectors of words seen before."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

BYTES_A_KEY = 200  # a Python string and its place in the dictionary, roughly
LONGEST_KEY = 64  # longer words are rare, and would make the cache larger than it says


class TokenCache:
    """The most recently used words' vectors, within a bound of memory."""

    def __init__(self, width: int, megabytes: float) -> None:
        self.capacity = int(megabytes * 2**20) // (4 * width + BYTES_A_KEY)
        self.table = torch.empty(self.capacity, width)
        self.places: OrderedDict[str, int] = OrderedDict()

    def lookup(self, words: Sequence[str], compute: Callable[[list[str]], Tensor]) -> Tensor:
        """A row for each of the words, which are distinct; those not known are computed and kept."""
        known = [place for place, word in enumerate(words) if word in self.places]
        unknown = [place for place, word in enumerate(words) if word not in self.places]
        for place in known:
            self.places.move_to_end(words[place])
        rows = self.table.new_empty(len(words), self.table.shape[1])
        if known:
            rows[known] = self.table[[self.places[words[place]] for place in known]]
        if unknown:
            new_words = [words[place] for place in unknown]
            rows[unknown] = vectors = compute(new_words)
            self._keep(new_words, vectors)
        return rows

    def clear(self) -> None:
        """Forget all words, as when the weights have changed."""
        self.places.clear()

    def _keep(self, words: list[str], vectors: Tensor) -> None:
        kept = [place for place, word in enumerate(words) if len(word) <= LONGEST_KEY][: self.capacity]
        if kept:
            self.table[[self._place(words[place]) for place in kept]] = vectors[kept]

    def _place(self, word: str) -> int:
        full = len(self.places) == self.capacity
        place = self.places.popitem(last=False)[1] if full else len(self.places)
        self.places[word] = place
        return place
