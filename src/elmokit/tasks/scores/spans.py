"""Spans of tokens, written as tags: B-PER I-PER O, or B-PER E-PER S-LOC O; and semantic roles, which are spans too."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import LabelledSpan
from elmokit.tasks.scores.f1 import F1, check_lengths

Scheme = Literal["loose", "bio", "bioes"]
OUTSIDE = "O"
PREDICATE = "V"
CONTINUATION = "C-"
Argument = tuple[tuple[tuple[int, int], ...], str]


class SpanScores(NamedTuple):
    """Over all spans, and over those of each label."""

    all: F1
    labels: dict[str, F1]


def span_f1(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, scheme: Scheme = "loose"
) -> SpanScores:
    """The F1 of spans with the same bounds and label, sentence by sentence.

    Tags are read as conlleval does ("loose": an I- that follows nothing begins a span), or strictly by a scheme: then
    a span that breaks its rules is none.
    """
    check_lengths(gold, predicted)
    pairs = list(zip(gold, predicted, strict=True))
    for theirs, ours in pairs:
        check_lengths(theirs, ours)
    return score_spans((chunks(theirs, scheme=scheme), chunks(ours, scheme=scheme)) for theirs, ours in pairs)


def score_spans(pairs: Iterable[tuple[Iterable[tuple[object, ...]], Iterable[tuple[object, ...]]]]) -> SpanScores:
    """The same of spans given as tuples, gold and predicted, whose last item is the label."""
    expected, found, correct = Counter[str](), Counter[str](), Counter[str]()
    for gold, predicted in pairs:
        theirs, ours = set(gold), set(predicted)
        for counter, spans in ((expected, theirs), (found, ours), (correct, theirs & ours)):
            counter.update(str(span[-1]) for span in spans)
    labels = sorted(expected | found)
    by_label = {label: F1.of_counts(correct[label], found[label], expected[label]) for label in labels}
    return SpanScores(F1.of_counts(correct.total(), found.total(), expected.total()), by_label)


def role_f1(predicates: Iterable[tuple[Iterable[LabelledSpan], Iterable[LabelledSpan]]]) -> SpanScores:
    """The F1 of arguments as CoNLL's scorer counts them, given the gold and predicted spans of each predicate.

    A span and those that continue it (A1, C-A1) are one argument: right if all of it is. The predicate does not count.
    """
    return score_spans((_arguments(gold), _arguments(predicted)) for gold, predicted in predicates)


def chunks(tags: Sequence[str], *, scheme: Scheme = "loose") -> list[LabelledSpan]:
    """The spans that tags stand for."""
    if scheme == "bio":
        return [span for span in _loose(tags, "OBI") if tags[span.start][0] == "B"]
    if scheme == "bioes":
        return [span for span in _loose(tags, "OBIES") if _is_bioes(tags, span)]
    if scheme == "loose":
        return _loose(tags, "OBIES")
    raise ConfigError(f"there is no scheme {scheme!r} of tags: choose one of {', '.join(get_args(Scheme))}")


def to_bio(spans: Iterable[LabelledSpan], length: int) -> list[str]:
    """The tags of spans that do not overlap: B- at the head of each, I- on the rest."""
    tags = [OUTSIDE] * length
    for start, end, label in spans:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return tags


def to_bioes(spans: Iterable[LabelledSpan], length: int) -> list[str]:
    """The tags of spans that do not overlap, with E- at the end of each, and S- where it has one token alone."""
    tags = [OUTSIDE] * length
    for start, end, label in spans:
        inside = [f"B-{label}"] + [f"I-{label}"] * (end - start - 2) + [f"E-{label}"]
        tags[start:end] = inside if end - start > 1 else [f"S-{label}"]
    return tags


def _loose(tags: Sequence[str], prefixes: str) -> list[LabelledSpan]:
    spans = []
    start = 0
    for position, ((before, old), (prefix, label)) in enumerate(pairwise(_parts(tags, prefixes))):
        ends = before in "ES" or prefix in "BSO" or old != label
        if before != OUTSIDE and ends:
            spans.append(LabelledSpan(start, position, old))
        if before == OUTSIDE or ends:
            start = position
    return spans


def _parts(tags: Sequence[str], prefixes: str) -> list[tuple[str, str]]:
    """Prefixes and labels, with an O on either side."""
    parts = [(OUTSIDE, "")]
    for tag in tags:
        prefix, dash, label = tag.partition("-")
        if prefix not in prefixes or len(prefix) != 1 or bool(dash) == (prefix == OUTSIDE):
            raise DataError(f"the tag {tag!r} stands for no part of a span: expected O or a label after {prefixes[1:]}")
        parts.append((prefix, label))
    return [*parts, (OUTSIDE, "")]


def _is_bioes(tags: Sequence[str], span: LabelledSpan) -> bool:
    first, last = tags[span.start][0], tags[span.end - 1][0]
    return first == "S" if span.end - span.start == 1 else (first, last) == ("B", "E")


def _arguments(spans: Iterable[LabelledSpan]) -> list[Argument]:
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
