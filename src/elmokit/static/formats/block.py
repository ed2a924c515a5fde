"""What every format reads and writes: words with their vectors, some at a time."""

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from elmokit.embedder import Vectors
from elmokit.errors import DataError

ROWS_A_BLOCK = 1000
WIDEST = 1_000_000


class Block(NamedTuple):
    """Some words and their vectors."""

    words: list[str]
    vectors: Vectors
    """(words, width)"""


def open_old(path: Path) -> BinaryIO:
    """A file to read, unpacked if its name ends in .gz."""
    return BufferedReader(gzip.GzipFile(path)) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def open_new(path: Path) -> Iterator[BinaryIO]:
    """A file to write, packed if its name ends in .gz."""
    with path.open("wb") as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packing:
            yield packing  # type: ignore[misc]


def parse_header(line: bytes) -> tuple[int, int] | None:
    """Words and width, if the line says them."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 16 for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def decoded(word: bytes, where: str) -> str:
    """The word as text."""
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: byte 0x{word[error.start]:02x} is not UTF-8: save the file as UTF-8") from None


def one_hot(start: int, end: int, width: int) -> Vectors:
    """The rows from start to end of the identity."""
    return np.eye(end - start, width, start, dtype=np.float32)


def width_of(words: Sequence[bytes], vectors: Vectors | None) -> int:
    """The width of the vectors; of one-hot ones if there are none."""
    return len(words) if vectors is None else vectors.shape[1]


def rows_of(words: Sequence[bytes], vectors: Vectors | None) -> Iterator[tuple[bytes, Vectors]]:
    """Each word with its vector; a one-hot one if there are none."""
    for row, word in enumerate(words):
        yield word, one_hot(row, row + 1, len(words))[0] if vectors is None else vectors[row]
