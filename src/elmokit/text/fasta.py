"""FASTA files of proteins or other sequences: a record is a document, a residue a token."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from elmokit.errors import DataError

ENDINGS = (".fasta", ".fa", ".faa")
LONGEST = 1 << 20  # residues; a longer sequence is read in pieces
_NO_RESIDUES = re.compile(r"[\s\d*.-]+")  # numbers, the stop of a translation, the gaps of an alignment
_NO_LETTERS = re.compile(r"[^A-Z]")


class Record(NamedTuple):
    """A sequence, or a piece of a very long one."""

    name: str
    """The first word after ">"."""
    text: str
    """Its residues in capitals with blanks between them, so that every tokenizer finds one token each."""


def read_records(lines: Iterable[str], place: str) -> Iterator[Record]:
    """The sequences that have any residues; the place is the file, for errors."""
    name, residues = None, ""
    for number, line in enumerate(lines, 1):
        if line.startswith((">", ";")) or len(residues) > LONGEST:
            if name is not None and residues:
                yield Record(name, " ".join(residues))
            residues = ""
        if line.startswith(">"):
            name = (line[1:].split() or [""])[0]
        elif not line.startswith(";") and (found := _NO_RESIDUES.sub("", line).upper()):
            if name is None:
                raise DataError(f"{place}, line {number}: a sequence without a name: a FASTA record begins with '>'")
            if wrong := _NO_LETTERS.search(found):
                raise DataError(f"{place}, line {number}: {wrong[0]!r} is no residue: is it a FASTA file?")
            residues += found
    if name is not None and residues:
        yield Record(name, " ".join(residues))
