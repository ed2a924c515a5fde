"""Text read in a stream: from a file or standard input, sentence by sentence."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from elmokit.errors import DataError
from elmokit.text.sentences import split_sentences

LONGEST_PARAGRAPH = 1 << 20  # characters; a text without blank lines is split at a line break about so often


def read_lines(source: str) -> Iterator[str]:
    """The lines of a UTF-8 file, or of standard input for "-", without their ends."""
    name = "standard input" if source == "-" else source
    with _open(source, name) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(f"{name}: line {number} is not UTF-8 (byte {error.start + 1} of it)") from None
            yield text.rstrip("\r\n")


def _open(source: str, name: str) -> BinaryIO:
    try:
        return sys.stdin.buffer if source == "-" else Path(source).open("rb")
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}") from None


def read_sentences(source: str, *, split: bool) -> Iterator[str]:
    """A sentence a line, or, to be split, the sentences of paragraphs with a blank line between them."""
    lines = read_lines(source)
    if not split:
        return lines
    return (paragraph[start:end] for paragraph in _paragraphs(lines) for start, end in split_sentences(paragraph))


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    waiting: list[str] = []
    size = 0
    for line in lines:
        if waiting and (not line.strip() or size > LONGEST_PARAGRAPH):
            yield "\n".join(waiting)
            waiting, size = [], 0
        waiting.append(line)
        size += len(line)
    yield "\n".join(waiting)
