"""Labelled data from files, in the formats it is handed around in; .gz, .xz and .zst are unpacked as they are read."""

from collections.abc import Iterator
from pathlib import Path

from elmokit.errors import ConfigError
from elmokit.tasks.examples import LabelledPair, LabelledText, TaggedSentence
from elmokit.tasks.readers.brackets import read_trees
from elmokit.tasks.readers.columns import read_columns, read_conllu, read_coreference, read_roles
from elmokit.tasks.readers.lines import read_lines
from elmokit.tasks.readers.objects import read_objects, read_questions, read_snli
from elmokit.tasks.readers.senses import Inventory, gold_beside, read_inventory, read_senses
from elmokit.tasks.readers.tables import TREC_LINE, read_sick, read_table, read_trec
from elmokit.text.documents import ending

__all__ = [
    "Inventory",
    "gold_beside",
    "read_coreference",
    "read_inventory",
    "read_labelled",
    "read_pairs",
    "read_questions",
    "read_roles",
    "read_senses",
    "read_tagged",
]


def read_tagged(path: Path, *, column: str | int | None = None, words: int = 0) -> Iterator[TaggedSentence]:
    """CoNLL-U by the ending .conllu, with "upos" or "xpos"; else columns, with the number of the one that has the tags.

    If not said otherwise, they are universal parts of speech, or what the last column has.
    """
    if _is(path, ".conllu"):
        return read_conllu(path, column="upos" if column is None else str(column))
    try:
        number = -1 if column is None else int(column)
    except ValueError:
        raise ConfigError(
            f"column {column!r} is no number: {path} is not in CoNLL-U, its columns have no names"
        ) from None
    return read_columns(path, column=number, words=words)


def read_labelled(
    path: Path, *, label: str | None = None, text: str | None = None, fine: bool = False, phrases: bool = False
) -> Iterator[LabelledText]:
    """JSON lines by the ending; trees, TREC's questions and tables by how their first line looks.

    `label` and `text` name fields or columns; `fine` is for TREC's labels, `phrases` for all nodes of the trees.
    """
    jsonl = _is(path, ".jsonl")
    first = "" if jsonl else next((line.text.lstrip(" ") for line in read_lines(path, blank=False)), "")
    if first.startswith("(") and "\t" not in first:
        return read_trees(path, phrases=phrases)
    if phrases:
        raise ConfigError(f"{path}: phrases with labels of their own are in PTB trees alone, and these are none")
    if jsonl:
        return read_objects(path, label=label, text=text)
    if TREC_LINE.fullmatch(first):
        return read_trec(path, fine=fine)
    return read_table(path, label=label, text=text)


def read_pairs(path: Path) -> Iterator[LabelledPair]:
    """SNLI's JSON lines by the ending .jsonl; else SICK's table."""
    return read_snli(path) if _is(path, ".jsonl") else read_sick(path)


def _is(path: Path, wanted: str) -> bool:
    return ending(path)[0] == wanted
