"""Precision, recall and F1, and what is counted item by item: classes, word senses, answers to questions."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from elmokit.errors import DataError

ALL = "ALL"
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


class F1(NamedTuple):
    """How much of what was found is right, and how much of what is right was found."""

    precision: float
    recall: float

    @classmethod
    def of_counts(cls, correct: float, found: float, expected: float) -> "F1":
        return cls(share(correct, found), share(correct, expected))

    @property
    def f1(self) -> float:
        """2 P R / (P + R)."""
        return share(2 * self.precision * self.recall, self.precision + self.recall)


class SquadScores(NamedTuple):
    """Means over all questions."""

    exact: float
    f1: float


def share(part: float, whole: float) -> float:
    """A part of a whole, where no part of nothing is 0."""
    return part / whole if whole else 0.0


def check_lengths(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Refuse to compare what is not of like length."""
    if len(gold) != len(predicted):
        raise DataError(f"{len(predicted)} predictions for {len(gold)} gold answers: expected as many")


def accuracy(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The share of labels that are right."""
    check_lengths(gold, predicted)
    return share(sum(ours == theirs for ours, theirs in zip(predicted, gold, strict=True)), len(gold))


def macro_f1(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The mean of the F1 of all labels that occur in either."""
    check_lengths(gold, predicted)
    expected, found = Counter(gold), Counter(predicted)
    correct = Counter(theirs for theirs, ours in zip(gold, predicted, strict=True) if theirs == ours)
    labels = expected | found
    return share(sum(F1.of_counts(correct[one], found[one], expected[one]).f1 for one in labels), len(labels))


def sense_f1(words: Iterable[tuple[str, str | None, Sequence[str]]]) -> dict[str, F1]:
    """The F1 of all words and of each part of speech, as Raganato et al. (2017) count it.

    A word is its part of speech, the sense given to it, if any, and its gold senses, one of which is enough.
    """
    correct, found, expected = Counter[str](), Counter[str](), Counter[str]()
    for pos, predicted, gold in words:
        for part in (ALL, pos):
            expected[part] += 1
            found[part] += predicted is not None
            correct[part] += predicted in gold
    return {part: F1.of_counts(correct[part], found[part], expected[part]) for part in expected}


def squad_scores(answers: Iterable[tuple[str, Sequence[str]]]) -> SquadScores:
    """SQuAD's exact match and F1, given a predicted answer and the gold ones per question; the best of these counts."""
    exact = overlap = 0.0
    count = 0
    for predicted, gold in answers:
        words, choices = normalise(predicted), [normalise(answer) for answer in gold]
        exact += words in choices
        overlap += max((_overlap(words, choice) for choice in choices), default=0.0)
        count += 1
    return SquadScores(share(exact, count), share(overlap, count))


def normalise(answer: str) -> list[str]:
    """The words of an answer in lower case, without ASCII punctuation and then without articles."""
    return _ARTICLE.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def _overlap(predicted: list[str], gold: list[str]) -> float:
    common = Counter(predicted) & Counter(gold)
    return F1.of_counts(common.total(), len(predicted), len(gold)).f1
