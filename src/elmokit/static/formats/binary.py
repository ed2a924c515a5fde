"""word2vec's binary: "words width", a line feed, then each word, a blank and its float32 numbers."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from elmokit.embedder import Vectors
from elmokit.errors import DataError
from elmokit.static.formats.block import (
    ROWS_A_BLOCK,
    WIDEST,
    Block,
    decoded,
    open_new,
    open_old,
    parse_header,
    rows_of,
    width_of,
)

LONGEST_WORD = 10_000  # bytes
FASTTEXT_MODEL = b"\xba\x16\x4f\x2f"


def read(path: Path) -> Iterator[Block]:
    """The words in order, as many as the first line says."""
    with open_old(path) as file:
        count, width = _read_header(file, path)
        for start in range(0, count, ROWS_A_BLOCK):
            numbers = range(start + 1, min(start + ROWS_A_BLOCK, count) + 1)
            rows = [_read_row(file, width, f"{path}, word {number} of {count}") for number in numbers]
            yield Block([word for word, _ in rows], np.stack([vector for _, vector in rows]))
        if file.read(LONGEST_WORD).strip():
            raise DataError(f"{path}: line 1 says {count:,} words, but the file goes on after them")


def write(path: Path, words: Sequence[bytes], vectors: Vectors | None) -> None:
    """A line feed after each word, as the original program has it."""
    with open_new(path) as file:
        file.write(b"%d %d\n" % (len(words), width_of(words, vectors)))
        for word, vector in rows_of(words, vectors):
            file.write(word + b" " + vector.astype("<f4").tobytes() + b"\n")


def _read_header(file: BinaryIO, path: Path) -> tuple[int, int]:
    first = file.readline(LONGEST_WORD)
    size = parse_header(first)
    if size is None or not 0 < size[1] <= WIDEST:
        found = "a model of fastText's: take its .vec" if first.startswith(FASTTEXT_MODEL) else repr(first[:40])
        raise DataError(f"{path}, line 1: word2vec's binary begins with 'words width'; found {found}")
    return size


def _read_row(file: BinaryIO, width: int, where: str) -> tuple[str, Vectors]:
    word = bytearray()
    while (character := file.read(1)) != b" ":
        word += character
        if not character or len(word) > LONGEST_WORD:
            raise DataError(f"{where}: no blank after it: the file is cut short, or its width is not {width}")
    content = file.read(4 * width)
    if len(content) < 4 * width:
        raise DataError(f"{where}: the file ends within its {width} numbers")
    vector = np.frombuffer(content, dtype="<f4")
    if not np.isfinite(vector).all():
        raise DataError(f"{where}: not all of its {width} numbers are finite: is the width right?")
    return decoded(bytes(word).lstrip(b"\n"), where), vector
