"""Words to the ids of their characters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from elmokit.config import CharacterConfig
from elmokit.errors import ConfigError
from elmokit.text.vocabulary import BOS, EOS


class CharacterEncoder(Protocol):
    """Reads a word as [BOW, its characters, EOW, PAD...]; <S> and </S> are words of one character, BOS or EOS."""

    size: int
    """Rows of the character table."""
    pad: int
    """The id that fills a row after its word."""
    max_characters: int
    """Ids a word, BOW and EOW included."""

    def encode(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Character ids, (N, max_characters)."""


class _Marks(NamedTuple):
    bos: int
    eos: int
    bow: int
    eow: int
    pad: int


_BYTE_MARKS = _Marks(bos=256, eos=257, bow=258, eow=259, pad=260)
_UNICODE_MARKS = _Marks(pad=0, bow=2, eow=3, bos=4, eos=5)
_UNKNOWN = 1
_FIRST_CHARACTER = 6


class ByteCharacters:
    """UTF-8 bytes, numbered as in AllenAI's weight files: 0-255, BOS 256, EOS 257, BOW 258, EOW 259, PAD 260."""

    def __init__(self, max_characters: int = 50) -> None:
        self.max_characters = _checked(max_characters)
        self.size = 261
        self.pad = _BYTE_MARKS.pad

    def encode(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Character ids, (N, max_characters); a long word is cut by the byte, lone surrogates vanish."""
        spelled = [word.encode("utf-8", "ignore")[: self.max_characters - 2] for word in words]
        ids = np.frombuffer(b"".join(spelled), dtype=np.uint8)  # (all bytes,)
        return _framed(words, spelled, ids, marks=_BYTE_MARKS, width=self.max_characters)


class UnicodeCharacters:
    """Unicode characters: PAD 0, UNKNOWN 1, BOW 2, EOW 3, BOS 4, EOS 5, then the alphabet in its order."""

    def __init__(self, characters: str, max_characters: int = 50) -> None:
        self.max_characters = _checked(max_characters)
        self.size = _FIRST_CHARACTER + len(characters)
        self.pad = _UNICODE_MARKS.pad
        codes = _code_points(characters)
        # A row for each code point up to the alphabet's highest, and a last one for all above.
        self._ids = np.full(codes.max(initial=0) + 2, _UNKNOWN, dtype=np.int64)
        self._ids[codes] = np.arange(_FIRST_CHARACTER, self.size)

    def encode(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Character ids, (N, max_characters)."""
        spelled = [word[: self.max_characters - 2] for word in words]
        codes = _code_points("".join(spelled))  # (all characters,)
        ids = self._ids[np.minimum(codes, len(self._ids) - 1)]
        return _framed(words, spelled, ids, marks=_UNICODE_MARKS, width=self.max_characters)


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


def _checked(max_characters: int) -> int:
    if max_characters < 3:
        raise ConfigError(f"max_characters is {max_characters}: it must be at least 3, for BOW, a character and EOW")
    return max_characters


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _framed(
    words: Sequence[str],
    spelled: Sequence[Sequence[object]],
    ids: NDArray[np.integer],
    *,
    marks: _Marks,
    width: int,
) -> NDArray[np.int64]:
    """The ids of all words end to end, put into rows [BOW, ids, EOW, PAD...]."""
    lengths = np.fromiter(map(len, spelled), dtype=np.int64, count=len(words))  # (N,)
    rows = np.full((len(words), width), marks.pad, dtype=np.int64)  # (N, C)
    rows[:, 0] = marks.bow
    rows[:, 1:][np.arange(width - 1) < lengths[:, None]] = ids
    rows[np.arange(len(words)), lengths + 1] = marks.eow
    for bound, mark in ((BOS, marks.bos), (EOS, marks.eos)):
        where = [index for index, word in enumerate(words) if word == bound]
        rows[where] = marks.pad
        rows[where, :3] = marks.bow, mark, marks.eow
    return rows
