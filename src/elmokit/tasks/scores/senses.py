"""Word senses as Raganato et al. (2017) count them."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from elmokit.tasks.scores.f1 import F1

ALL = "ALL"


class Sensed(NamedTuple):
    """A word's part of speech, the sense given to it, if any, and its gold senses."""

    pos: str
    predicted: str | None
    gold: tuple[str, ...]


def sense_f1(words: Iterable[Sensed]) -> dict[str, F1]:
    """The F1 of all words and of each part of speech; one of several gold senses is enough."""
    correct, found, expected = Counter[str](), Counter[str](), Counter[str]()
    for pos, predicted, gold in words:
        for part in (ALL, pos):
            expected[part] += 1
            found[part] += predicted is not None
            correct[part] += predicted in gold
    return {part: F1.of_counts(correct[part], found[part], expected[part]) for part in expected}
