"""What was found as a table: .csv, .tsv or .parquet, with the same numbers as the JSON of it."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from elmokit.answers import plain
from elmokit.errors import ConfigError
from elmokit.files import replacing, writing
from elmokit.vectors import import_pyarrow

ROWS_A_GROUP = 8192
Cells = Mapping[str, Any]
"""A row: strings, whole numbers, numbers, true or false, or none, by the names of their columns."""
Write = Callable[[Sequence[Cells]], None]


def write_table(path: Path | str, rows: Iterable[Cells], *, columns: Sequence[str] = ()) -> int:
    """Write rows in the format of the ending, in bounded memory, and count them; it appears when it is complete.

    All have the columns of the first; `columns` are those of a table without any. A number is written with all its
    digits, so that it is read as the same number again.
    """
    path, rows, count = Path(path).expanduser(), iter(rows), 0
    check_table(path)
    group = list(islice(rows, ROWS_A_GROUP))
    names = tuple(group[0]) if group else tuple(columns)
    rows = chain(group, rows)
    with replacing(path) as new, writing(path), FORMATS[path.suffix](new, names, group) as write:
        while group := list(islice(rows, ROWS_A_GROUP)):
            write(group)
            count += len(group)
    return count


def table_row(found: Any, /, **more: Any) -> dict[str, Any]:
    """What was found as one row, after some more cells: the fields of its JSON, and in their place those of objects."""
    row = dict(more)
    for name, value in _cells(plain(found)):
        if name in row:
            raise ConfigError(f"two columns of the table would be named {name!r}: rename that of the metadata")
        row[name] = value
    return row


def table_rows(found: Iterable[Any], /, **more: Any) -> list[dict[str, Any]]:
    """Each of what was found as a row, for `write_table` and for the data frames of pandas and polars."""
    return [table_row(one, **more) for one in found]


def check_table(path: Path) -> None:
    """Raise at once what writing would raise in the end: a wrong ending, no permission, a missing folder or extra."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path}: unknown ending {path.suffix!r}: a table is written as {', '.join(FORMATS)}")
    if path.suffix == ".parquet":
        import_pyarrow()
    with replacing(path, keep=False):
        pass


def _cells(values: Cells) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        yield from _cells(value) if isinstance(value, dict) else [(name, value)]


@contextmanager
def _write_text(path: Path, names: Sequence[str], _: Sequence[Cells], *, delimiter: str) -> Iterator[Write]:
    shown = {True: "true", False: "false"}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)

        def write(rows: Sequence[Cells]) -> None:
            for row in rows:
                writer.writerow(shown[cell] if isinstance(cell, bool) else cell for cell in row.values())

        yield write


@contextmanager
def _write_parquet(path: Path, names: Sequence[str], first: Sequence[Cells]) -> Iterator[Write]:
    """The first rows tell the types; a column that has nothing in any of them is one of strings."""
    pyarrow, parquet = import_pyarrow()
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    kinds = {name: next((type(row[name]) for row in first if row[name] is not None), str) for name in names}
    schema = pyarrow.schema({name: types[kind] for name, kind in kinds.items()})
    with parquet.ParquetWriter(path, schema) as file:

        def write(rows: Sequence[Cells]) -> None:
            file.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows], schema=schema))

        yield write


FORMATS: dict[str, Callable[[Path, Sequence[str], Sequence[Cells]], AbstractContextManager[Write]]] = {
    ".csv": partial(_write_text, delimiter=","),
    ".tsv": partial(_write_text, delimiter="\t"),
    ".parquet": _write_parquet,
}
