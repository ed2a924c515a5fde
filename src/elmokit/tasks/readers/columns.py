"""A word a line in columns, a blank line between sentences: CoNLL-2003, WNUT and others."""

from collections.abc import Iterator
from pathlib import Path

from elmokit.tasks.examples import TaggedSentence
from elmokit.tasks.readers.lines import Line, at_least_one, blocks, fields, read_lines

DOCUMENT_START = "-DOCSTART-"
EXPECTED = "a word and its tag a line, in columns, and a blank line after each sentence"


def read_columns(path: Path, *, column: int = -1, words: int = 0) -> Iterator[TaggedSentence]:
    """The sentences with the tags of one column; columns count from 0, or from -1 backwards."""
    return at_least_one(_sentences(path, column, words), path, EXPECTED)


def _sentences(path: Path, column: int, words: int) -> Iterator[TaggedSentence]:
    width = None
    for block in blocks(_without_document_starts(path)):
        rows = [fields(line) for line in block]
        width = width or len(rows[0])
        for line, row in zip(block, rows, strict=True):
            _check(line, row, width, (column, words))
        tokens, tags = (tuple(row[number] for row in rows) for number in (words, column))
        yield TaggedSentence(tokens, tags, str(path), tuple(line.place.line for line in block))


def _without_document_starts(path: Path) -> Iterator[Line]:
    for line in read_lines(path):
        starts = line.text.startswith(DOCUMENT_START) and fields(line)[0] == DOCUMENT_START
        yield line._replace(text="") if starts else line


def _check(line: Line, row: list[str], width: int, asked: tuple[int, ...]) -> None:
    if len(row) != width:
        raise line.place.error(f"found {line.text[:60]!r}, {len(row)} columns: expected {width} as in the first line")
    if width < 2:
        raise line.place.error(f"found {line.text[:60]!r}, a single column: expected a word and its tag")
    for number in asked:
        if number not in range(-width, width):
            raise line.place.error(f"there is no column {number}: the line has {width}, counted from 0")
        if not row[number]:
            raise line.place.error(f"found {line.text[:60]!r}: column {number} is empty")
