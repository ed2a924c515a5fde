"""One label of several an item."""

from collections import Counter
from collections.abc import Sequence

from elmokit.errors import DataError
from elmokit.tasks.scores.f1 import F1, share


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


def check_lengths(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Refuse to compare what is not of like length."""
    if len(gold) != len(predicted):
        raise DataError(f"{len(predicted)} predictions for {len(gold)} gold answers: expected as many")
