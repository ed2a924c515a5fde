"""Which words go together, and which set one corpus apart from another: log-likelihood, PMI, log ratio."""

from collections import Counter
from collections.abc import Iterable
from math import erfc, log, log2, sqrt
from typing import Literal, NamedTuple, get_args

from elmokit.errors import ConfigError
from elmokit.lexicon.neighbors import check_k
from elmokit.lexicon.occurrences import is_wordlike, survey
from elmokit.lexicon.substitution import is_content_word
from elmokit.progress import SILENCE, Progress, tracked
from elmokit.text.corpus import Context

AssociationMeasure = Literal["log-likelihood", "pmi"]
KeynessMeasure = Literal["log-likelihood", "log-ratio"]


class Collocate(NamedTuple):
    """A word that stands near another more often than its frequency makes expect."""

    word: str
    near: int
    """How often it stands near it."""
    frequency: int
    """How often it stands anywhere in the corpus."""
    expected: float
    """Near it, if the words had nothing to do with each other."""
    log_likelihood: float
    pmi: float


class KeyWord(NamedTuple):
    """A word that is more frequent in one corpus than in another."""

    word: str
    frequency: int
    reference_frequency: int
    per_million: float
    reference_per_million: float
    log_likelihood: float
    log_ratio: float
    p_value: float
    """Of so high a log-likelihood by chance, for this one word; of many words some will be low by chance."""


def log_likelihood(both: int, first: int, second: int, total: int) -> float:
    """Dunning's (1993) G² of a two-by-two table: 2 sum O ln(O / E), E = row total * column total / total.

    `both` of the `first` and of the `second` are the same; all are among the `total`.
    """
    observed = (both, first - both, second - both, total - first - second + both)
    rows, columns = (first, first, total - first, total - first), (second, total - second, second, total - second)
    cells = zip(observed, rows, columns, strict=True)
    return 2 * sum(count * log(count * total / (row * column)) for count, row, column in cells if count)


def pointwise_mutual_information(both: int, first: int, second: int, total: int) -> float:
    """log2 of how many times as often they are together as chance has it (Church and Hanks, 1990)."""
    return log2(both * total / (first * second))


def find_collocations(
    word: str,
    corpus: Iterable[Context],
    *,
    k: int = 20,
    by: AssociationMeasure = "log-likelihood",
    window: int = 5,
    min_count: int = 3,
    content_words: bool = False,
    ignore_case: bool = False,
    progress: Progress = SILENCE,
) -> list[Collocate]:
    """The words that stand within so many tokens of a word, in its sentence, more often than chance has it.

    Counted are the tokens that are within the window of any occurrence, each once, and not the word itself.
    """
    check_k(k)
    _check_measure(by, get_args(AssociationMeasure))
    if window < 1:
        raise ConfigError(f"the window is {window} tokens: it must be at least 1")
    alike = str.casefold if ignore_case else str
    counts, near = Counter[str](), Counter[str]()
    for context in tracked(corpus, progress, "counting words", unit="sentences"):
        words = [alike(other) for other in context.words]
        counts.update(words)
        hits = [position for position, other in enumerate(words) if other == alike(word)]
        around = {at for hit in hits for at in range(max(0, hit - window), min(len(words), hit + window + 1))}
        near.update(words[at] for at in around if words[at] != alike(word))
    if not counts[alike(word)]:
        survey(corpus, progress=progress).check_words(word)
    wanted = is_content_word if content_words else is_wordlike
    total, size, found = counts.total() - counts.pop(alike(word)), near.total(), []
    for other, count in near.items():
        expected = size * counts[other] / total
        if count >= min_count and count > expected and wanted(other):
            table = count, size, counts[other], total
            scores = log_likelihood(*table), pointwise_mutual_information(*table)
            found.append(Collocate(other, count, counts[other], expected, *scores))
    return sorted(found, key=lambda one: (-getattr(one, by.replace("-", "_")), one.word))[:k]


def find_keyness(
    corpus: Iterable[Context],
    reference: Iterable[Context],
    *,
    k: int = 20,
    by: KeynessMeasure = "log-likelihood",
    min_count: int = 5,
    content_words: bool = False,
    ignore_case: bool = False,
    progress: Progress = SILENCE,
) -> list[KeyWord]:
    """The words that are more frequent in a corpus than in the reference, by share.

    Log-likelihood (Rayson and Garside, 2000) says how sure that is; the log ratio (Hardie, 2014), log2 of how many
    times as large the share is, how much. A word that the reference lacks counts as half a word there.
    """
    check_k(k)
    _check_measure(by, get_args(KeynessMeasure))
    sides = ((corpus, "the corpus"), (reference, "the reference"))
    here, there = (_counts(one, ignore_case, progress, f"counting {side}") for one, side in sides)
    sizes, wanted = (here.total(), there.total()), is_content_word if content_words else is_wordlike
    found = []
    for word, count in here.items():
        other = there[word]
        if count >= min_count and wanted(word) and count * sizes[1] > other * sizes[0]:
            score = log_likelihood(count, sizes[0], count + other, sum(sizes))
            ratio = log2((count / sizes[0]) / ((other or 0.5) / sizes[1]))
            shares = count / sizes[0] * 1e6, other / sizes[1] * 1e6
            found.append(KeyWord(word, count, other, *shares, score, ratio, erfc(sqrt(max(score, 0) / 2))))
    return sorted(found, key=lambda one: (-getattr(one, by.replace("-", "_")), one.word))[:k]


def _counts(corpus: Iterable[Context], ignore_case: bool, progress: Progress, stage: str) -> Counter[str]:
    counts = survey(corpus, progress=progress, stage=stage).counts
    if not ignore_case:
        return counts
    folded = Counter[str]()
    for word, count in counts.items():
        folded[word.casefold()] += count
    return folded


def _check_measure(by: str, known: tuple[str, ...]) -> None:
    if by not in known:
        raise ConfigError(f"unknown measure {by!r}: known are {', '.join(known)}")
