"""Tab-separated tables, with or without the names of the columns in their first line; there is no quoting."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from elmokit.tasks.examples import LabelledText, Place
from elmokit.tasks.readers.lines import Line, at_least_one, read_lines

LABELS = ("label", "labels", "gold_label", "class", "category")
TEXTS = ("text", "text_a", "sentence", "review", "question")


class Row(NamedTuple):
    """The cells asked for, none of them empty."""

    cells: list[str]
    place: Place


def read_table(path: Path, *, label: str | None = None, text: str | None = None) -> Iterator[LabelledText]:
    """A label and a text a line: columns by their names, or by their numbers from 0 where there are no names.

    If not said otherwise, by the names that are usual, and else the first column and the second.
    """
    names = ((label,) if label else LABELS, (text,) if text else TEXTS)
    rows = read_rows(path, names, unnamed=(label or "0", text or "1"))
    examples = (LabelledText(text, label, place) for (label, text), place in rows)
    return at_least_one(examples, path, "a label, a tab and a text a line")


def read_rows(path: Path, names: Sequence[Sequence[str]], *, unnamed: Sequence[str] = ()) -> Iterator[Row]:
    """The columns that have one of the names each; without names, those whose numbers are given."""
    lines = (line for line in read_lines(path) if line.text.strip())
    first = next(lines, None)
    if first is None:
        return
    header = first.text.split("\t")
    columns = [_find(header, choices) for choices in names]
    if None in columns:
        named = [header[column] for column in columns if column is not None]
        is_data = all(name.strip().isdigit() for name in named)  # a class may look like a column's number
        columns = _numbers(first, header, names, unnamed if is_data else ())
        yield _row(first, columns, len(header))
    for line in lines:
        yield _row(line, columns, len(header))


def _find(header: list[str], names: Sequence[str]) -> int | None:
    folded = [name.strip().lower() for name in header]
    return next((folded.index(name.lower()) for name in names if name.lower() in folded), None)


def _numbers(
    first: Line, header: list[str], names: Sequence[Sequence[str]], unnamed: Sequence[str]
) -> list[int | None]:
    known = [str(number) for number in range(len(header))]
    if not unnamed or not set(unnamed) <= set(known):
        expected = ", ".join(" or ".join(map(repr, choices)) for choices in names)
        raise first.place.error(f"found {header}: expected tab-separated columns, among them {expected}")
    return [int(number) for number in unnamed]


def _row(line: Line, columns: Sequence[int | None], width: int) -> Row:
    cells = line.text.split("\t", width - 1)  # a text in the last column may have tabs of its own
    if len(cells) < width:
        raise line.place.error(f"found {len(cells)} columns: expected {width} as in the first line, with tabs between")
    chosen = [cells[column] for column in columns if column is not None]
    if not all(cell.strip() for cell in chosen):
        raise line.place.error("an empty column: expected something in each")
    return Row(chosen, line.place)
