"""Precision and recall, and both in one number."""

from typing import NamedTuple


class F1(NamedTuple):
    """How much of what was found is right, and how much of what is right was found."""

    precision: float
    recall: float

    @classmethod
    def of_counts(cls, correct: float, found: float, expected: float) -> "F1":
        """Both as shares."""
        return cls(share(correct, found), share(correct, expected))

    @property
    def f1(self) -> float:
        """2 P R / (P + R)."""
        return share(2 * self.precision * self.recall, self.precision + self.recall)


def share(part: float, whole: float) -> float:
    """A part of a whole, where no part of nothing is 0."""
    return part / whole if whole else 0.0
