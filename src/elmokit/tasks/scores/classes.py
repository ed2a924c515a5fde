"""One label of several an item."""

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
    labels = set(gold) | set(predicted)
    return share(sum(_label_f1(label, gold, predicted).f1 for label in labels), len(labels))


def check_lengths(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Refuse to compare what is not of like length."""
    if len(gold) != len(predicted):
        raise DataError(f"{len(predicted)} predictions for {len(gold)} gold answers: expected as many")


def _label_f1(label: str, gold: Sequence[str], predicted: Sequence[str]) -> F1:
    correct = sum(ours == theirs == label for ours, theirs in zip(predicted, gold, strict=True))
    return F1.of_counts(correct, predicted.count(label), gold.count(label))
