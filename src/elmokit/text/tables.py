"""Tables that people give: .csv and .tsv files with the names of their columns in the first line."""

import csv
import io
from pathlib import Path
from typing import NamedTuple

from elmokit.errors import DataError

DELIMITERS = ",;\t"  # of .csv; some countries' spreadsheets write semicolons


class Table(NamedTuple):
    """The names of the columns, and for each row its cells by these."""

    name: str
    columns: tuple[str, ...]
    rows: list[dict[str, str]]

    def check_columns(self, *wanted: str) -> None:
        """Refuse a table that lacks a column."""
        for column in wanted:
            if column not in self.columns:
                raise DataError(f"{self.name} has no column {column!r}: it has {', '.join(self.columns)}")


def read_table(path: Path | str) -> Table:
    """A .csv file, whose cells may be quoted, or a .tsv file, whose are not; UTF-8."""
    path = Path(path).expanduser()
    if path.suffix not in (".csv", ".tsv"):
        raise DataError(f"{path}: unknown ending {path.suffix!r}: a table is read from .csv or .tsv")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start:,} is not UTF-8: save the table as UTF-8") from None
    first = text.partition("\n")[0]
    delimiter = "\t" if path.suffix == ".tsv" else max(DELIMITERS, key=first.count)
    lines = io.StringIO(text, newline="")  # a quoted cell may hold any kind of line end
    if path.suffix == ".tsv":
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from None
    return _table(path, rows)


def _table(path: Path, lines: list[tuple[int, list[str]]]) -> Table:
    if not lines:
        raise DataError(f"{path}: empty: the first line should name the columns")
    columns = tuple(cell.strip() for cell in lines[0][1])
    if len(set(columns)) < len(columns) or not all(columns):
        raise DataError(f"{path}, line 1: every column needs a name of its own, found {', '.join(columns)}")
    for number, cells in lines[1:]:
        if len(cells) != len(columns):
            found = f"{len(cells)} cells, where line 1 names {len(columns)} columns"
            raise DataError(f"{path}, line {number}: {found}")
    return Table(str(path), columns, [dict(zip(columns, cells, strict=True)) for _, cells in lines[1:]])
