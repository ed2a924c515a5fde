"""Words to the ids that a model reads, first of all those of their characters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from elmokit.config import CharacterConfig
from elmokit.errors import ConfigError
from elmokit.text import BOS, EOS


class WordIds(NamedTuple):
    """What the model reads of each word; None for what it does not read."""

    char_ids: NDArray[np.int64] | None
    """(N, C)"""
    word_ids: NDArray[np.int64] | None
    """(N,)"""


class CharacterEncoder(Protocol):
    """Reads a word as [BOW, its characters, EOW, PAD...]; <S> and </S> are words of one character, BOS or EOS."""

    size: int
    """Rows of the character table."""
    max_characters: int
    """Ids of a word, BOW and EOW included."""
    bos: int
    eos: int
    bow: int
    eow: int
    pad: int

    def encode(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Character ids, (N, max_characters)."""


class ByteCharacters:
    """UTF-8 bytes, numbered as in AllenAI's weight files: 0-255, BOS 256, EOS 257, BOW 258, EOW 259, PAD 260."""

    size = 261
    bos, eos, bow, eow, pad = range(256, 261)

    def __init__(self, max_characters: int = 50) -> None:
        self.max_characters = _checked(max_characters)

    def encode(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Character ids, (N, max_characters); a long word is cut by the byte, lone surrogates vanish."""
        spelled = [word.encode("utf-8", "ignore")[: self.max_characters - 2] for word in words]
        return _framed(self, words, spelled, np.frombuffer(b"".join(spelled), dtype=np.uint8))


class UnicodeCharacters:
    """Unicode characters: PAD 0, UNKNOWN 1, BOW 2, EOW 3, BOS 4, EOS 5, then the alphabet in its order."""

    pad, unknown, bow, eow, bos, eos, first = range(7)

    def __init__(self, characters: str, max_characters: int = 50) -> None:
        self.max_characters = _checked(max_characters)
        self.size = self.first + len(characters)
        codes = _code_points(characters)
        # A row for each code point up to the alphabet's highest, and a last one for all above.
        self._ids = np.full(codes.max(initial=0) + 2, self.unknown, dtype=np.int64)
        self._ids[codes] = np.arange(self.first, self.size)

    def encode(self, words: Sequence[str]) -> NDArray[np.int64]:
        spelled = [word[: self.max_characters - 2] for word in words]
        codes = _code_points("".join(spelled))  # (all characters,)
        return _framed(self, words, spelled, self._ids[np.minimum(codes, len(self._ids) - 1)])


def character_encoder(config: CharacterConfig) -> CharacterEncoder:
    """The encoder a model was configured with."""
    if config.alphabet == "bytes":
        return ByteCharacters(config.max_characters)
    return UnicodeCharacters(config.characters, config.max_characters)


def most_frequent_characters(counts: Mapping[str, int], *, min_count: int = 1, limit: int | None = None) -> str:
    """The characters of counted words by falling count, ties by code point."""
    totals: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            totals[character] += count
    kept = [character for character, count in totals.items() if count >= min_count]
    kept.sort(key=lambda character: (-totals[character], character))
    return "".join(kept[:limit])


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _checked(max_characters: int) -> int:
    if max_characters < 3:
        raise ConfigError(f"max_characters is {max_characters}: it must be at least 3, for BOW, a character and EOW")
    return max_characters


def _framed(
    encoder: CharacterEncoder, words: Sequence[str], spelled: Sequence[Sequence[object]], ids: NDArray[np.integer]
) -> NDArray[np.int64]:
    """The ids of all words end to end, put into rows [BOW, ids, EOW, PAD...]."""
    lengths = np.fromiter(map(len, spelled), dtype=np.int64, count=len(words))  # (N,)
    rows = np.full((len(words), encoder.max_characters), encoder.pad, dtype=np.int64)  # (N, C)
    rows[:, 0] = encoder.bow
    rows[:, 1:][np.arange(encoder.max_characters - 1) < lengths[:, None]] = ids
    rows[np.arange(len(words)), lengths + 1] = encoder.eow
    for bound, mark in ((BOS, encoder.bos), (EOS, encoder.eos)):
        where = [index for index, word in enumerate(words) if word == bound]
        rows[where] = encoder.pad
        rows[where, :3] = encoder.bow, mark, encoder.eow
    return rows
