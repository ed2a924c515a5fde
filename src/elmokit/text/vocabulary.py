"""Words and their ids."""

import codecs
import gzip
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ConfigError, DataError
from elmokit.files import writing
from elmokit.text import BOS as BOS
from elmokit.text import EOS as EOS
from elmokit.text import UNK as UNK

_SPECIALS = (BOS, EOS, UNK)


class Vocabulary:
    """Words in the order of their ids; a repeated word keeps its first id."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        last = len(self.words) - 1
        self._ids = dict(zip(reversed(self.words), range(last, -1, -1), strict=True))  # the first id is put in last

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, size: int | None = None, min_count: int = 1) -> "Vocabulary":
        """The order training needs: <S>, </S>, <UNK>, then words by falling count; `size` includes those three."""
        if size is not None and size < len(_SPECIALS):
            raise ConfigError(f"a vocabulary of size {size} is too small: {', '.join(_SPECIALS)} alone are 3")
        kept = [word for word, count in counts.items() if count >= min_count and word not in _SPECIALS]
        kept.sort(key=lambda word: (-counts[word], word))
        return cls((*_SPECIALS, *kept)[:size])

    def encode(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """The id of each token, that of <UNK> for a word not in the vocabulary."""
        unknown = self._ids.get(UNK, -1)
        ids = np.array([self._ids.get(token, unknown) for token in tokens], dtype=np.int64)  # (N,)
        if unknown < 0 and (ids < 0).any():
            word = tokens[int(ids.argmin())]
            raise DataError(f"{word!r} is not in the vocabulary, and it has no {UNK} to stand for it: add {UNK}")
        return ids

    def check_training_order(self) -> None:
        """Refuse a vocabulary that would train silently to a wrong model."""
        first, needed = list(self.words[:3]), f"{list(_SPECIALS)} first, then the words by falling frequency"
        if first != list(_SPECIALS):
            raise DataError(f"the vocabulary begins with {first}: training needs {needed}")
        if len(self._ids) < len(self.words):
            index, word = next((i, word) for i, word in enumerate(self.words) if self._ids[word] != i)
            lines = f"{self._ids[word] + 1} and {index + 1}"
            raise DataError(f"the vocabulary holds {word!r} twice, on lines {lines}: remove one")


def read_vocabulary(path: Path) -> Vocabulary:
    """The words of a UTF-8 file, plain or .gz, one per line; only a line feed ends a line, for U+2028 may be a word."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the vocabulary cannot be read ({error})") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8: save the file as UTF-8"
        ) from None
    if not lines[-1]:
        del lines[-1]
    return Vocabulary([line.removesuffix("\r") for line in lines] if b"\r" in content else lines)


def write_vocabulary(path: Path, vocabulary: Vocabulary) -> None:
    """One word a line, UTF-8; compressed if the name ends in .gz."""
    for word in vocabulary.words:
        if "\n" in word or word.endswith("\r"):
            raise DataError(f"{path}: the word {word!r} does not fit on a line: remove its line break")
    try:
        content = "".join(f"{word}\n" for word in vocabulary.words).encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"{path}: a word holds {error.object[error.start]!r}, half a character: remove it") from None
    with writing(path):
        path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
