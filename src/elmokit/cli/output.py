"""What commands print of what they found: a sentence with its word in brackets, or JSON."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.answers import as_text

if TYPE_CHECKING:
    from elmokit.lexicon.occurrences import Occurrence

LONGEST_SHOWN = 100  # characters on either side of a word


def shown(found: "str | Occurrence") -> str:
    """A word, or a sentence with the word in brackets, shortened on both sides if it is long."""
    return found if isinstance(found, str) else found.context.bracketed(found.position, reach=LONGEST_SHOWN)


def print_json(found: Any, *, indent: int | None = 2) -> None:
    """Print what was found as JSON."""
    print(as_text(found, indent=indent, encoding=sys.stdout.encoding or "utf-8"), flush=True)


def check_output(path: Path | None) -> None:
    """Refuse a table that could not be written before any work is done."""
    if path is not None:
        from elmokit.lexicon.tables import check_table

        check_table(path.expanduser())


def write_rows(path: Path | None, found: Sequence[Any], *, columns: Sequence[str], **more: Any) -> None:
    """Write what was found as a table, a row each, if one is wanted; `more` stands in every row."""
    if path is not None:
        from elmokit.lexicon.tables import table_rows, write_table

        write_table(path, table_rows(found, **more), columns=columns)


def print_columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Print rows in columns, these of them to the right, whatever the width of their characters."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        blanks = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = (blanks[at] + cell if at in right else cell + blanks[at] for at, cell in enumerate(row))
        print("  ".join(cells).rstrip())
