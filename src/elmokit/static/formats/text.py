"""Text, a word a line: word2vec's and fastText's with "words width" on the first line, GloVe's without.

Only the ASCII blank separates; where a word has blanks inside, as in GloVe's largest file, the last numbers of the line
are its vector.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
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

_JSON = msgspec.json.Decoder(list[float])
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read(path: Path) -> Iterator[Block]:
    """The words in order; their number must be what the first line says, if it does."""
    with open_old(path) as file:
        first = file.readline().removeprefix(codecs.BOM_UTF8)
        size = parse_header(first)
        width = size[1] if size else first.rstrip(b" \r\n").count(b" ")
        if first and not 0 < width <= WIDEST:
            raise DataError(f"{path}, line 1: found {first[:40]!r}, expected a word and its numbers, or 'words width'")
        line, lines = (1, []) if size else (0, [first] if first else [])  # lines read before these
        while lines := [*lines, *islice(file, ROWS_A_BLOCK)]:
            yield _parsed(lines, width, path, line + 1)
            line, lines = line + len(lines), []
    if size and line - 1 != size[0]:
        raise DataError(f"{path}: line 1 says {size[0]:,} words, but the file ends with line {line:,}")


def write(path: Path, words: Sequence[bytes], vectors: Vectors | None, *, header: bool) -> None:
    """Nine digits a number: they give every float32 back to the bit."""
    width = width_of(words, vectors)
    numbers = b" ".join([b"%.9g"] * width)
    with open_new(path) as file:
        if header:
            file.write(b"%d %d\n" % (len(words), width))
        for word, vector in rows_of(words, vectors):
            file.write(word + b" " + numbers % tuple(vector.tolist()) + b"\n")


def _parsed(lines: list[bytes], width: int, path: Path, first: int) -> Block:
    words = []
    vectors = np.empty((len(lines), width), dtype=np.float32)  # (n, D)
    for row, line in enumerate(lines):
        word, numbers = _divided(line, width)
        found = _numbers(numbers)
        if len(found) != width or numbers.count(b" ") != width - 1 or not np.isfinite(found).all():
            raise DataError(f"{path}, line {first + row}: {_mistake(numbers, width)}")
        words.append(decoded(word, f"{path}, line {first + row}"))
        vectors[row] = found
    return Block(words, vectors)


def _numbers(fields: bytes) -> Vectors:
    """As JSON, which is read fastest; numbers that JSON does not know, such as +1 and .5, one by one."""
    try:
        found = _JSON.decode(b"[" + fields.replace(b" ", b",") + b"]")
    except msgspec.DecodeError:
        known = fields.split(b" ")
        found = [float(field) for field in known] if all(map(_NUMBER.fullmatch, known)) else []
    with np.errstate(over="ignore"):
        return np.fromiter(found, dtype=np.float32, count=len(found))


def _divided(line: bytes, width: int) -> tuple[bytes, bytes]:
    """The word and its numbers; the last ones, if the word has blanks inside."""
    line = line.rstrip(b" \r\n")
    word, _, numbers = line.partition(b" ")
    if numbers.count(b" ") < width:
        return word, numbers
    word, *last = line.rsplit(b" ", width)
    return word, b" ".join(last)


def _mistake(numbers: bytes, width: int) -> str:
    fields = numbers.split(b" ") if numbers else []
    if len(fields) != width:
        return f"{len(fields)} numbers after the word, expected {width} as line 1 has it"
    wrong = next((field for field in fields if not _NUMBER.fullmatch(field)), None)
    if wrong is None:
        return "a number too large for float32"
    return f"{wrong[:40].decode('utf-8', 'replace')!r} is not a number"
