"""A label and its text per line: tab-separated tables, SICK's pairs among them, and TREC's questions.

Tables have the names of the columns in their first line, or not; there is no quoting.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmokit.tasks.examples import LabelledPair, LabelledText, Place
from elmokit.tasks.readers.lines import Line, at_least_one, read_lines

LABELS = ("label", "labels", "gold_label", "class", "category")
TEXTS = ("text", "text_a", "sentence", "review", "question")
JUDGMENTS = ("entailment_judgment", "entailment_label", "gold_label", "label")
SICK_COLUMNS = (("sentence_A", "sentence1"), ("sentence_B", "sentence2"), JUDGMENTS)
TREC_LINE = re.compile(r"(?P<coarse>[A-Z]+):(?P<fine>[A-Za-z]+) (?P<question>.*\S.*)")


def read_table(path: Path, *, label: str | None = None, text: str | None = None) -> Iterator[LabelledText]:
    """A label and a text per line: columns by their names, or by their numbers from 0 where there are no names.

    If not said otherwise, by the names that are usual, and else the first column and the second.
    """
    names = ((label,) if label else LABELS, (text,) if text else TEXTS)
    rows = _rows(path, names, unnamed=(label or "0", text or "1"))
    examples = (LabelledText(text, label, place) for (label, text), place in rows)
    return at_least_one(examples, path, "a label, a tab and a text a line")


def read_sick(path: Path) -> Iterator[LabelledPair]:
    """The pairs of SICK's table, and how the second follows from the first."""
    examples = (
        LabelledPair(first, second, label, place) for (first, second, label), place in _rows(path, SICK_COLUMNS)
    )
    return at_least_one(examples, path, "two sentences and a label a line")


def read_trec(path: Path, *, fine: bool = False) -> Iterator[LabelledText]:
    """TREC's questions, `COARSE:fine question`, tokens already, with their 6 coarse or 50 fine labels."""
    examples = (_trec_example(line, fine=fine) for line in read_lines(path, blank=False))
    return at_least_one(examples, path, "COARSE:fine and a question a line")


def _trec_example(line: Line, *, fine: bool) -> LabelledText:
    found = TREC_LINE.fullmatch(line.text)
    if found is None:
        raise line.place.error(f"found {line.text[:60]!r}: expected COARSE:fine and a question")
    label = f"{found['coarse']}:{found['fine']}" if fine else found["coarse"]
    return LabelledText(tuple(token for token in found["question"].split(" ") if token), label, line.place)


def _rows(
    path: Path, names: Sequence[Sequence[str]], *, unnamed: Sequence[str] = ()
) -> Iterator[tuple[list[str], Place]]:
    """The columns that have one of the names each; without names, those whose numbers are given."""
    lines = read_lines(path, blank=False)
    first = next(lines, None)
    if first is None:
        return
    header = first.text.split("\t")
    columns = [_find(header, choices) for choices in names]
    if None in columns:
        named = [header[column] for column in columns if column is not None]
        is_data = all(name.strip().isdigit() for name in named)  # a class may look like a column's number
        columns = _numbers(first, header, names, unnamed if is_data else ())
        yield _cells(first, columns, len(header)), first.place
    for line in lines:
        yield _cells(line, columns, len(header)), line.place


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


def _cells(line: Line, columns: Sequence[int | None], width: int) -> list[str]:
    cells = line.text.split("\t", width - 1)  # a text in the last column may have tabs of its own
    if len(cells) < width:
        raise line.place.error(f"found {len(cells)} columns: expected {width} as in the first line, with tabs between")
    chosen = [cells[column] for column in columns if column is not None]
    if not all(cell.strip() for cell in chosen):
        raise line.place.error("an empty column: expected something in each")
    return chosen
