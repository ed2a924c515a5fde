"""CoNLL-U: ten columns, words numbered from 1; ranges (1-2) and empty nodes (3.1) are no words."""

import re
from collections.abc import Iterator
from pathlib import Path

from elmokit.errors import ConfigError
from elmokit.tasks.examples import TaggedSentence
from elmokit.tasks.readers.lines import Line, at_least_one, blocks, read_lines

COLUMNS = {"upos": 3, "xpos": 4}
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")


def read_conllu(path: Path, *, column: str = "upos") -> Iterator[TaggedSentence]:
    """The sentences with their universal or their treebank's own parts of speech."""
    if column not in COLUMNS:
        raise ConfigError(f"there is no column {column!r} of tags in CoNLL-U: choose {' or '.join(COLUMNS)}")
    sentences = (_sentence(block, path, column) for block in blocks(_word_lines(path)))
    return at_least_one(sentences, path, "sentences in CoNLL-U, ten columns a line")


def _word_lines(path: Path) -> Iterator[Line]:
    return (line for line in read_lines(path) if not line.text.startswith("#"))


def _sentence(block: list[Line], path: Path, column: str) -> TaggedSentence:
    rows = [(line, _cells(line)) for line in block]
    words = [(line, cells) for line, cells in rows if not _NO_WORD.fullmatch(cells[0])]
    for number, (line, cells) in enumerate(words, 1):
        if cells[0] != str(number):
            raise line.place.error(f"found the word number {cells[0]!r}: expected {number}")
        if cells[COLUMNS[column]] in ("_", ""):
            raise line.place.error(f"the word {cells[1]!r} has no {column.upper()}: expected a tag, found '_'")
    return TaggedSentence(
        tuple(cells[1] for _, cells in words),
        tuple(cells[COLUMNS[column]] for _, cells in words),
        str(path),
        tuple(line.place.line for line, _ in words),
    )


def _cells(line: Line) -> list[str]:
    cells = line.text.split("\t")
    if len(cells) != 10:
        raise line.place.error(f"found {len(cells)} columns: expected the ten of CoNLL-U, with tabs between them")
    return cells
