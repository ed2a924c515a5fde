"""SQuAD's exact match and F1, by the rules of its official evaluation."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from elmokit.tasks.scores.f1 import F1, share

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


class SquadScores(NamedTuple):
    """Means over all questions."""

    exact: float
    f1: float


def squad_scores(answers: Iterable[tuple[str, Sequence[str]]]) -> SquadScores:
    """A predicted answer and the gold ones a question, of which the one that suits it best counts."""
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
