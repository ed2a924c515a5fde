"""SICK: a tab-separated table with sentence_A, sentence_B and entailment_judgment."""

from collections.abc import Iterator
from pathlib import Path

from elmokit.tasks.examples import LabelledPair
from elmokit.tasks.readers.lines import at_least_one
from elmokit.tasks.readers.tables import read_rows

JUDGMENTS = ("entailment_judgment", "entailment_label", "gold_label", "label")
COLUMNS = (("sentence_A", "sentence1"), ("sentence_B", "sentence2"), JUDGMENTS)


def read_sick(path: Path) -> Iterator[LabelledPair]:
    """The pairs and how the second follows from the first."""
    rows = read_rows(path, COLUMNS)
    examples = (LabelledPair(first, second, label, place) for (first, second, label), place in rows)
    return at_least_one(examples, path, "two sentences and a label a line")
