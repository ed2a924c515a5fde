"""The files of CoNLL-2012: documents of sentences, a word a line in at least twelve columns."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elmokit.errors import DataError
from elmokit.tasks.examples import Place
from elmokit.tasks.readers.lines import Line, fields, read_lines

ENDINGS = ("conll", "conll.gz", "conll.xz")
WORD = 3
FIRST_ROLES = 11
COREFERENCE = -1
FEWEST_COLUMNS = 12
_BEGIN = re.compile(r"#begin document \(?(?P<name>.*?)\)?(?:; part (?P<part>[0-9]+))?\s*")


class Row(NamedTuple):
    """The columns of a word."""

    cells: list[str]
    place: Place


class Rows(NamedTuple):
    """What stands between `#begin document` and `#end document`: a document, or a part of one."""

    name: str
    sentences: list[list[Row]]
    place: Place


def conll_files(path: Path) -> list[Path]:
    """The file itself, or all files under a folder whose names end in "conll"."""
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.name.endswith(ENDINGS) and file.is_file()]
    if not files:
        raise DataError(f"{path}: no file here ends in {', '.join(ENDINGS)}")
    return files


def is_conll2012(path: Path) -> bool:
    """Whether a file begins as those of CoNLL-2012 do."""
    first = next((line for line in read_lines(path) if line.text.strip()), None)
    return first is not None and _BEGIN.fullmatch(first.text) is not None


def read_documents(path: Path) -> Iterator[Rows]:
    """The documents of a file, one at a time."""
    document: Rows | None = None
    for line in read_lines(path):
        if found := _BEGIN.fullmatch(line.text):
            if document:
                raise line.place.error(f"a document begins: expected '#end document' for that of {document.place}")
            document = Rows(_name(found), [[]], line.place)
        elif document is None:
            if line.text.strip():
                raise line.place.error(f"found {line.text[:60]!r}: expected '#begin document (name); part 000'")
        elif line.text.startswith("#end document"):
            yield document._replace(sentences=[sentence for sentence in document.sentences if sentence])
            document = None
        else:
            _add(line, document.sentences)
    if document:
        raise document.place.error("the document does not end: expected '#end document' before the end of the file")


def _name(found: re.Match[str]) -> str:
    return f"{found['name']}, part {int(found['part'])}" if int(found["part"] or 0) else found["name"]


def _add(line: Line, sentences: list[list[Row]]) -> None:
    if not line.text.strip():
        sentences.append([])
        return
    row = Row(fields(line), line.place)
    width = len(sentences[-1][0].cells) if sentences[-1] else max(len(row.cells), FEWEST_COLUMNS)
    if len(row.cells) != width:
        raise line.place.error(f"found {len(row.cells)} columns: expected {width}")
    sentences[-1].append(row)
