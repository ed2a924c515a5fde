"""Semantic roles as CoNLL's scorer counts them."""

from collections.abc import Iterable

from elmokit.tasks.examples import LabelledSpan
from elmokit.tasks.scores.spans import SpanScores, score_spans

PREDICATE = "V"
CONTINUATION = "C-"
Spans = Iterable[LabelledSpan]
Argument = tuple[tuple[tuple[int, int], ...], str]


def role_f1(predicates: Iterable[tuple[Spans, Spans]]) -> SpanScores:
    """The F1 of arguments, given the gold and predicted spans of each predicate; the predicate itself does not count.

    A span and those that continue it (A1, C-A1) are one argument: right if all of it is.
    """
    return score_spans((_arguments(gold), _arguments(predicted)) for gold, predicted in predicates)


def _arguments(spans: Spans) -> list[Argument]:
    arguments: list[Argument] = []
    for start, end, label in sorted(spans):
        role = label.removeprefix(CONTINUATION)
        begun = [number for number, argument in enumerate(arguments) if argument[1] == role]
        if role != label and begun:
            pieces, _ = arguments[begun[-1]]
            arguments[begun[-1]] = (*pieces, (start, end)), role
        else:  # a continuation of nothing begins an argument
            arguments.append((((start, end),), role))
    return [argument for argument in arguments if argument[1] != PREDICATE]
