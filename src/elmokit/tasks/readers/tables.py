"""Tables, tab- or comma-separated or JSON lines, and which of their columns are the texts and the labels.

A column is taken by the name or number that is given, else by a usual name in the first line, else by what it holds:
labels have few distinct values, texts are long.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from elmokit.tasks.examples import Place
from elmokit.tasks.readers.lines import read_lines
from elmokit.text.packing import ending

SAMPLE = 1000  # rows that are looked at to find the columns
FEWEST = 10  # rows from which on a first label that never recurs, while all others do, is taken for a name
DELIMITERS = ",;\t"  # of .csv; some countries' spreadsheets write semicolons
Column = str | int | None
"""A column's name, or its number from 0, which may come as a string."""


class Wanted(NamedTuple):
    """A column that is looked for."""

    what: str
    """For messages: "text"."""
    names: Sequence[str]
    """The usual ones, the surest first."""
    given: Column = None
    is_label: bool = False


class Row(NamedTuple):
    """The cells of a line, or of several where a quoted cell has line ends in it."""

    cells: Sequence[Any]
    place: Place


class Layout(NamedTuple):
    """Where the wanted columns are."""

    columns: tuple[int, ...]
    """From 0, one for each that is wanted."""
    names: tuple[str, ...]
    """Of all columns; none if the first line has an example."""
    described: str
    """For people, who count columns from 1."""
    is_json: bool = False


def is_json(path: Path) -> bool:
    """Whether a file has JSON lines, by its name."""
    return ending(path)[0] == ".jsonl"


def read_columns(path: Path, wanted: Sequence[Wanted]) -> Iterator[Row]:
    """The cells of the wanted columns, in their order, row by row."""
    layout = find_columns(path, wanted)
    for cells, place in islice(_rows(path), 1 if layout.names else 0, None):
        chosen = [cells[column] for column in layout.columns]
        if not all(cell.strip() for cell in chosen if isinstance(cell, str) and not layout.is_json):
            raise place.error("an empty column: expected something in each")
        yield Row(chosen, place)


def find_columns(path: Path, wanted: Sequence[Wanted]) -> Layout:
    """Which columns of a file are the wanted ones; of an empty file, none."""
    rows = _rows(path)
    first = next(rows, None)
    if first is None:
        return Layout((), (), "")
    cells = [str(cell) for cell in first.cells]
    names = [cell.strip().lower() for cell in cells]
    below = [[str(cell) for cell in row.cells] for row in islice(rows, SAMPLE)]
    known = [_given(one, names, first) for one in wanted]
    usual = [_usual(one, names, column, known) for one, column in zip(wanted, known, strict=True)]
    by_name = any(isinstance(one.given, str) and not one.given.isdecimal() for one in wanted)
    surely = is_json(path) or by_name or None not in usual
    has_names = surely or _begins_with_names(names, usual, below)
    if has_names:
        known = [its_usual if column is None else column for column, its_usual in zip(known, usual, strict=True)]
    columns = _by_content(known, wanted, below if has_names and below else [cells, *below])
    if len(set(columns)) < len(wanted):
        what = " and ".join(f"the {one.what}" for one in wanted)
        kind = "fields" if is_json(path) else "columns, with tabs between"
        raise first.place.error(f"found {_shown(cells)}: expected {what}, each in one of several {kind}")
    if not has_names:
        has_names = _begins_with_a_name(columns, wanted, [cells, *below])
    header = tuple(cells) if has_names else ()
    return Layout(tuple(columns), header, _described(columns, wanted, header), is_json(path))


def _given(one: Wanted, names: Sequence[str], first: Row) -> int | None:
    """The column that was asked for."""
    if one.given is None:
        return None
    if str(one.given).isdecimal() and int(one.given) < len(names):
        return int(one.given)
    if isinstance(one.given, int):
        raise first.place.error(f"there is no column {one.given + 1}: the line has {len(names)}, {_shown(first.cells)}")
    if one.given.strip().lower() not in names:
        kind = "field" if is_json(Path(first.place.path)) else "column"
        expected = f"expected the {one.what} in the {kind} {one.given!r}"
        raise first.place.error(f"found the {kind}s {_shown(first.cells)}: {expected}")
    return names.index(one.given.strip().lower())


def _usual(one: Wanted, names: Sequence[str], column: int | None, taken: Sequence[int | None]) -> int | None:
    """The column that has a usual name, or the one asked for if it has."""
    found = [names.index(name) for name in one.names if name in names]
    if column is not None:
        return column if column in found else None
    return next((number for number in found if number not in taken), None)


def _begins_with_names(names: Sequence[str], usual: Sequence[int | None], sample: Sequence[Sequence[str]]) -> bool:
    """Whether a usual name stands in the first line, and in no line below it: a label may be "question" too."""
    found = [column for column in usual if column is not None]
    below = ({row[column].strip().lower() for row in sample} for column in found)
    return bool(found) and not any(names[column] in cells for column, cells in zip(found, below, strict=True))


def _begins_with_a_name(columns: Sequence[int], wanted: Sequence[Wanted], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line's label is the only one that occurs once: then it is a name, though not a usual one."""
    column = next(column for column, one in zip(columns, wanted, strict=True) if one.is_label)
    counts = Counter(row[column] for row in rows)
    return len(rows) > FEWEST and [label for label in counts if counts[label] == 1] == [rows[0][column]]


def _by_content(known: Sequence[int | None], wanted: Sequence[Wanted], rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns, with those found that are not known: labels by few distinct values, texts by their length.

    They are fewer than the wanted ones where the table has no more.
    """
    cells = list(zip(*rows, strict=True))
    free = [number for number in range(len(cells)) if number not in known]
    length = {number: sum(map(len, cells[number])) for number in free}
    labels = sorted(free, key=lambda number: (*_distinctness(cells[number]), length[number], number))
    if any(one.is_label and column is None for one, column in zip(wanted, known, strict=True)):
        free = [number for number in free if number not in labels[:1]]
    texts = sum(not one.is_label and column is None for one, column in zip(wanted, known, strict=True))
    longest = iter(sorted(sorted(free, key=lambda number: -length[number])[:texts]))
    sought = iter(labels)
    found = (
        next(sought if one.is_label else longest, None) if column is None else column
        for one, column in zip(wanted, known, strict=True)
    )
    return [column for column in found if column is not None]


def _distinctness(cells: Sequence[str]) -> tuple[int, int]:
    """Less for what is more like labels: each of several values many times, then one value, then what hardly recurs."""
    distinct = len(set(cells))
    return (1 if distinct == 1 else 0 if 2 * distinct <= len(cells) else 2), distinct


def _described(columns: Sequence[int], wanted: Sequence[Wanted], names: Sequence[str]) -> str:
    parts = zip(wanted, columns, strict=True)
    named = ((one.what, column + 1, f" ({names[column].strip()})" if names else "") for one, column in parts)
    return ", ".join(f"the {what} is column {number}{name}" for what, number, name in named)


def _rows(path: Path) -> Iterator[Row]:
    """All rows, of as many cells each; the first has the names of the fields for JSON, and may have them elsewhere."""
    if is_json(path):
        return _objects(path)
    return _separated(path) if ending(path)[0] == ".csv" else _tabbed(path)


def _tabbed(path: Path) -> Iterator[Row]:
    """There is no quoting; a text in the last column may have tabs of its own."""
    width = 0
    for line in read_lines(path, blank=False):
        cells = line.text.split("\t", width - 1)  # -1 for all
        width = width or len(cells)
        if len(cells) < width:
            expected = f"expected {width} as in the first line, with tabs between"
            raise line.place.error(f"found {len(cells)} columns: {expected}")
        yield Row(cells, line.place)


def _separated(path: Path) -> Iterator[Row]:
    """CSV as spreadsheets and pandas write it: a cell in quotes may have commas, quotes and line ends in it."""
    first = next(read_lines(path, blank=False), None)
    delimiter = max(DELIMITERS, key=first.text.count) if first else ","
    reader = csv.reader((line.text + "\n" for line in read_lines(path)), delimiter=delimiter, strict=True)
    width = 0
    while True:
        place = Place(str(path), reader.line_num + 1)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise place.error(f"not CSV ({error}): a cell with quotes in it is quoted, and they are doubled") from None
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        width = width or len(cells)
        if len(cells) != width:
            expected = f"expected {width} as in the first line; a cell with {delimiter!r} in it is put in quotes"
            raise place.error(f"found {len(cells)} columns: {expected}")
        yield Row(cells, place)


def _objects(path: Path) -> Iterator[Row]:
    """The names of the first object's fields, then every object's values of these names; none where it lacks one."""
    names: list[str] = []
    for line in read_lines(path, blank=False):
        try:
            values = msgspec.json.decode(line.text, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise line.place.error(f"found no JSON object ({error}): expected one per line") from None
        if not names:
            names = list(values)
            yield Row(names, line.place)
        yield Row([values.get(name) for name in names], line.place)


def _shown(cells: Sequence[Any]) -> str:
    return ", ".join(repr(str(cell)[:30]) for cell in cells[:12]) or "none"
