"""What a table tells of the documents of a corpus: dates, authors, whatever its columns are."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from elmokit.errors import DataError
from elmokit.text.documents import TextFile
from elmokit.text.packing import ending
from elmokit.text.tables import read_table

logger = logging.getLogger(__name__)
KEY = "document"


@dataclass(frozen=True)
class Metadata:
    """The fields of each document; it is found by its name in the corpus, its file's name, or that without endings."""

    name: str
    fields: tuple[str, ...]
    rows: dict[str, dict[str, str]] = field(repr=False)

    def of(self, document: str) -> dict[str, str]:
        """The fields of a document, all empty if the table lacks it."""
        found = (self.rows[key] for key in _keys(document) if key in self.rows)
        return next(found, dict.fromkeys(self.fields, ""))

    def check(self, files: Sequence[TextFile]) -> None:
        """Refuse a table that knows none of the files, and tell the logger of those that it lacks."""
        names = {*self.rows, *(key.rpartition(":")[0] for key in self.rows)}  # novels.jsonl:7 is of novels.jsonl
        missing = [file.name for file in files if names.isdisjoint(_keys(file.name))]
        if len(missing) == len(files):
            some = ", ".join(list(self.rows)[:3])
            raise DataError(f"{self.name} names none of the documents: it has {some} …, the corpus {missing[0]} …")
        if missing:
            some = ", ".join(missing[:3])
            logger.info(f"{self.name} lacks {len(missing)} of {len(files)} documents, such as {some}: no fields there")


def read_metadata(path: Path | str) -> Metadata:
    """A .csv or .tsv table with a column `document` and others, which are the fields."""
    table = read_table(path)
    table.check_columns(KEY)
    fields = tuple(column for column in table.columns if column != KEY)
    rows: dict[str, dict[str, str]] = {}
    for row in table.rows:
        if row[KEY] in rows:
            raise DataError(f"{table.name} has two rows for the document {row[KEY]!r}: remove one")
        rows[row[KEY]] = {name: row[name] for name in fields}
    return Metadata(table.name, fields, rows)


def _keys(document: str) -> list[str]:
    """What a document may be called: for texts/a.txt.gz also a.txt.gz and a."""
    name = PurePath(document).name
    return [document, name, name.removesuffix("".join(ending(Path(name))))]
