"""How good predictions are, as the fields that set the tasks count it; every value is from 0 to 1."""

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import LabelledSpan

ALL = "ALL"
OUTSIDE, PREDICATE, CONTINUATION = "O", "V", "C-"
Scheme = Literal["loose", "bio", "bioes"]
TagLists = Sequence[Sequence[str]]
Argument = tuple[tuple[tuple[int, int], ...], str]
Clusters = Sequence[Collection[Hashable]]
Overlap = tuple[list[int], list[int], dict[tuple[int, int], int]]
"""Sizes of gold and predicted clusters, and how many mentions two of them have in common, where there are any."""
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


class F1(NamedTuple):
    """How much of what was found is right, and how much of what is right was found."""

    precision: float
    recall: float

    @classmethod
    def of_counts(cls, correct: float, found: float, expected: float) -> "F1":
        return cls(_share(correct, found), _share(correct, expected))

    @property
    def f1(self) -> float:
        """2 P R / (P + R)."""
        return _share(2 * self.precision * self.recall, self.precision + self.recall)


class SquadScores(NamedTuple):
    """Means over all questions."""

    exact: float
    f1: float


class SpanScores(NamedTuple):
    """Over all spans, and over those of each label."""

    all: F1
    labels: dict[str, F1]


class CoreferenceScores(NamedTuple):
    """The three measures."""

    muc: F1
    b_cubed: F1
    ceaf_e: F1

    @property
    def average(self) -> float:
        """The mean of the three F1, which CoNLL ranks by."""
        return sum(score.f1 for score in self) / len(self)


def accuracy(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The share of labels that are right."""
    _check_lengths(gold, predicted)
    return _share(sum(ours == theirs for ours, theirs in zip(predicted, gold, strict=True)), len(gold))


def macro_f1(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """The mean of the F1 of all labels that occur in either."""
    _check_lengths(gold, predicted)
    expected, found = Counter(gold), Counter(predicted)
    correct = Counter(theirs for theirs, ours in zip(gold, predicted, strict=True) if theirs == ours)
    labels = expected | found
    return _share(sum(F1.of_counts(correct[one], found[one], expected[one]).f1 for one in labels), len(labels))


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
        common = [(Counter(words) & Counter(choice)).total() for choice in choices]
        pairs = zip(common, choices, strict=True)
        exact += words in choices
        overlap += max((F1.of_counts(shared, len(words), len(choice)).f1 for shared, choice in pairs), default=0.0)
        count += 1
    return SquadScores(_share(exact, count), _share(overlap, count))


def normalise(answer: str) -> list[str]:
    """The words of an answer in lower case, without ASCII punctuation and then without articles."""
    return _ARTICLE.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def span_f1(gold: TagLists, predicted: TagLists, *, scheme: Scheme = "loose") -> SpanScores:
    """The F1 of spans with the same bounds and label, sentence by sentence.

    Tags are read as conlleval does ("loose": an I- that follows nothing begins a span), or strictly by a scheme: then
    a span that breaks its rules is none.
    """
    _check_lengths(gold, predicted)
    pairs = list(zip(gold, predicted, strict=True))
    for theirs, ours in pairs:
        _check_lengths(theirs, ours)
    return _score_spans((chunks(theirs, scheme=scheme), chunks(ours, scheme=scheme)) for theirs, ours in pairs)


def role_f1(predicates: Iterable[tuple[Iterable[LabelledSpan], Iterable[LabelledSpan]]]) -> SpanScores:
    """The F1 of arguments as CoNLL's scorer counts them, given the gold and predicted spans of each predicate.

    A span and those that continue it (A1, C-A1) are one argument: right if all of it is. The predicate does not count.
    """
    return _score_spans((_arguments(gold), _arguments(predicted)) for gold, predicted in predicates)


def _score_spans(pairs: Iterable[tuple[Iterable[tuple[object, ...]], Iterable[tuple[object, ...]]]]) -> SpanScores:
    """The F1 of spans given as tuples, gold and predicted, whose last item is the label."""
    expected, found, correct = Counter[str](), Counter[str](), Counter[str]()
    for gold, predicted in pairs:
        theirs, ours = set(gold), set(predicted)
        for counter, spans in ((expected, theirs), (found, ours), (correct, theirs & ours)):
            counter.update(str(span[-1]) for span in spans)
    labels = sorted(expected | found)
    by_label = {label: F1.of_counts(correct[label], found[label], expected[label]) for label in labels}
    return SpanScores(F1.of_counts(correct.total(), found.total(), expected.total()), by_label)


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


def chunks(tags: Sequence[str], *, scheme: Scheme = "loose") -> list[LabelledSpan]:
    """The spans that tags stand for: B-PER I-PER O, or B-PER E-PER S-LOC O."""
    if scheme == "bio":
        return [span for span in _loose(tags, "OBI") if tags[span.start][0] == "B"]
    if scheme == "bioes":
        ends = ((span, tags[span.start][0] + tags[span.end - 1][0]) for span in _loose(tags, "OBIES"))
        return [span for span, both in ends if both == ("SS" if span.end - span.start == 1 else "BE")]
    if scheme == "loose":
        return _loose(tags, "OBIES")
    raise ConfigError(f"there is no scheme {scheme!r} of tags: choose one of {', '.join(get_args(Scheme))}")


def _loose(tags: Sequence[str], prefixes: str) -> list[LabelledSpan]:
    parts = [(OUTSIDE, "")]
    for tag in tags:
        prefix, dash, label = tag.partition("-")
        if prefix not in prefixes or len(prefix) != 1 or bool(dash) == (prefix == OUTSIDE):
            raise DataError(f"the tag {tag!r} stands for no part of a span: expected O or a label after {prefixes[1:]}")
        parts.append((prefix, label))
    spans, start = [], 0
    for position, ((before, old), (prefix, label)) in enumerate(pairwise([*parts, (OUTSIDE, "")])):
        ends = before in "ES" or prefix in "BSO" or old != label
        if before != OUTSIDE and ends:
            spans.append(LabelledSpan(start, position, old))
        if before == OUTSIDE or ends:
            start = position
    return spans


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


def coreference_scores(documents: Iterable[tuple[Clusters, Clusters]]) -> CoreferenceScores:
    """MUC, B³ and CEAF over entities, summed over documents as CoNLL's scorer does.

    A document is its gold and its predicted clusters of mentions.
    """
    overlaps = [_overlap(list(filter(None, gold)), list(filter(None, predicted))) for gold, predicted in documents]
    swapped = [(two, one, {(j, i): size for (i, j), size in shared.items()}) for one, two, shared in overlaps]
    muc, b_cubed = (F1(_recall(measure, swapped), _recall(measure, overlaps)) for measure in (_links, _mentions))
    matched = sum(map(_matched, overlaps))
    expected, found = (sum(len(overlap[side]) for overlap in overlaps) for side in (0, 1))
    return CoreferenceScores(muc, b_cubed, F1.of_counts(matched, found, expected))


def _overlap(gold: Clusters, predicted: Clusters) -> Overlap:
    theirs, ours = _owners(gold), _owners(predicted)
    shared = Counter((cluster, ours[mention]) for mention, cluster in theirs.items() if mention in ours)
    return [len(cluster) for cluster in gold], [len(cluster) for cluster in predicted], shared


def _owners(clusters: Clusters) -> dict[Hashable, int]:
    owners = {mention: number for number, cluster in enumerate(clusters) for mention in cluster}
    if len(owners) != sum(map(len, clusters)):
        raise DataError("a mention is in two clusters, or twice in one: expected each once")
    return owners


def _recall(measure: Callable[..., tuple[float, float]], overlaps: list[Overlap]) -> float:
    counted = [measure(*one) for one in overlaps]
    return _share(sum(found for found, _ in counted), sum(expected for _, expected in counted))


def _links(gold: list[int], _: list[int], shared: dict[tuple[int, int], int]) -> tuple[float, float]:
    """MUC: links of the gold clusters that are left when the predicted ones divide them, and links in all."""
    return sum(shared.values()) - len(shared), sum(size - 1 for size in gold)


def _mentions(gold: list[int], _: list[int], shared: dict[tuple[int, int], int]) -> tuple[float, float]:
    """B³: for each mention the share of its gold cluster that is predicted with it, and mentions in all."""
    return sum(size * size / gold[cluster] for (cluster, _), size in shared.items()), sum(gold)


def _matched(overlap: Overlap) -> float:
    """CEAF-e: clusters, each matched with one at most, by φ4 = 2 |G ∩ P| / (|G| + |P|)."""
    gold, predicted, shared = overlap
    met = (sorted({pair[side] for pair in shared}) for side in (0, 1))
    rows, columns = ({cluster: number for number, cluster in enumerate(clusters)} for clusters in met)
    gains = np.zeros((len(rows), len(columns)))
    for (one, two), size in shared.items():
        gains[rows[one], columns[two]] = 2 * size / (gold[one] + predicted[two])
    return largest_assignment(gains)


def largest_assignment(gains: NDArray[np.float64]) -> float:
    """The largest sum of gains (N, M) of which no two share a row or a column, by the Hungarian method.

    Each row gets a column along the shortest path to one that is free.
    """
    costs = -gains if gains.shape[0] <= gains.shape[1] else -gains.T  # (N, M), N <= M
    rows, none = costs.shape  # the last column is none: every row sets out from there
    row_of = np.full(none + 1, -1)
    row_prices, column_prices = np.zeros(rows), np.zeros(none + 1)
    for new in range(rows):
        row_of[none], column = new, none
        distances, before = np.full(none, np.inf), np.full(none, none)
        passed = np.zeros(none + 1, dtype=bool)
        while row_of[column] >= 0:
            passed[column] = True
            row = row_of[column]
            reduced = costs[row] - row_prices[row] - column_prices[:-1]  # (M,)
            nearer = ~passed[:-1] & (reduced < distances)
            distances[nearer], before[nearer] = reduced[nearer], column
            open_distances = np.where(passed[:-1], np.inf, distances)
            column = int(open_distances.argmin())
            step = open_distances[column]
            row_prices[row_of[passed]] += step
            column_prices[passed] -= step
            distances -= step
        while column != none:
            row_of[column], column = row_of[before[column]], int(before[column])
    taken = np.flatnonzero(row_of[:none] >= 0)
    return 0.0 - float(costs[row_of[taken], taken].sum())


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0  # no part of nothing is 0


def _check_lengths(gold: Sequence[object], predicted: Sequence[object]) -> None:
    if len(gold) != len(predicted):
        raise DataError(f"{len(predicted)} predictions for {len(gold)} gold answers: expected as many")
