"""Semantic roles in the columns of CoNLL-2005 and CoNLL-2012.

2005: the word, other columns, the predicates' lemmas ("-" for words that are none), then a column for each predicate.
2012: the word is the fourth column; those of the predicates are the twelfth to the last but one.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from elmokit.tasks.examples import Frame, Place, RoleSentence
from elmokit.tasks.readers.brackets import read_spans
from elmokit.tasks.readers.conll2012 import (
    COREFERENCE,
    FIRST_ROLES,
    WORD,
    Row,
    conll_files,
    is_conll2012,
    read_documents,
)
from elmokit.tasks.readers.lines import Line, at_least_one, blocks, fields, read_lines
from elmokit.tasks.readers.penn import unescape

NO_PREDICATE = "-"


def read_roles(path: Path) -> Iterator[RoleSentence]:
    """The sentences of a file, or of all files under a folder whose names end in "conll", with predicates and roles.

    A file of 2012 begins with `#begin document`.
    """
    sentences = chain.from_iterable(
        _read_2012(file) if is_conll2012(file) else _read_2005(file) for file in conll_files(path)
    )
    return at_least_one(sentences, path, "sentences in the columns of CoNLL-2005 or CoNLL-2012")


def _read_2012(path: Path) -> Iterator[RoleSentence]:
    for document in read_documents(path):
        for rows in document.sentences:
            _check_last(rows)
            yield _sentence(rows, word=WORD, first=FIRST_ROLES, last=-1)


def _check_last(rows: list[Row]) -> None:
    """Roles are written with a star, coreference never is: a star in the last column tells that one is missing."""
    for row in rows:
        if "*" in row.cells[COREFERENCE]:
            raise row.place.error(
                f"found {row.cells[COREFERENCE]!r} in the last column: expected coreference after the roles"
            )


def _read_2005(path: Path) -> Iterator[RoleSentence]:
    lemmas = None
    for block in blocks(read_lines(path)):
        rows = _rows(block)
        lemmas = lemmas or _find_lemmas(rows)
        predicates = sum(row.cells[lemmas : lemmas + 1] != [NO_PREDICATE] for row in rows)
        found, expected = len(rows[0].cells), lemmas + 1 + predicates
        if found != expected:
            raise rows[0].place.error(f"found {found} columns: expected {expected}, for {predicates} predicates")
        yield _sentence(rows, word=0, first=lemmas + 1, last=None)


def _rows(block: list[Line]) -> list[Row]:
    rows = [Row(fields(line), line.place) for line in block]
    width = len(rows[0].cells)
    for row in rows:
        if len(row.cells) != width:
            raise row.place.error(f"found {len(row.cells)} columns: expected {width} as at the head of its sentence")
    return rows


def _find_lemmas(rows: list[Row]) -> int:
    """The column with as many lemmas as there are columns after it: files differ in what else they have."""
    columns = list(zip(*(row.cells for row in rows), strict=True))
    for number in range(len(columns) - 1, 0, -1):
        cells = columns[number]
        is_roles = any("*" in cell for cell in cells)
        if not is_roles and sum(cell != NO_PREDICATE for cell in cells) == len(columns) - number - 1:
            return number
    raise rows[0].place.error(
        "no column has as many predicates as there are columns after it: expected a word, the lemmas of predicates "
        f"({NO_PREDICATE!r} for other words) and a column of roles for each predicate"
    )


def _sentence(rows: list[Row], *, word: int, first: int, last: int | None) -> RoleSentence:
    places = [row.place for row in rows]
    columns = list(zip(*(row.cells[first:last] for row in rows), strict=True))
    frames = tuple(_frame(column, places) for column in columns)
    return RoleSentence(tuple(unescape(row.cells[word]) for row in rows), frames, places[0])


def _frame(column: Sequence[str], places: Sequence[Place]) -> Frame:
    spans = read_spans(column, places)
    predicate = next((span.start for span in spans if span.label == "V"), None)
    if predicate is None:
        raise places[0].error("a column of roles of this sentence has no predicate: expected '(V*)' in it")
    return Frame(predicate, spans)
