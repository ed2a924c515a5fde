"""The words that tell one sense from another: what stands around it more often than chance would have it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log, sqrt
from typing import NamedTuple

from elmokit.lexicon.corpus import is_wordlike
from elmokit.lexicon.occurrences import Occurrence

WINDOW = 10  # tokens on either side
PRIOR = 500.0  # words' worth of belief that a word is as frequent here as in the whole corpus


class TellingWord(NamedTuple):
    """A word and by how many standard errors it is more frequent here than there."""

    word: str
    score: float


def telling_words(
    inside: Iterable[Occurrence], outside: Iterable[Occurrence], corpus: Mapping[str, int]
) -> list[TellingWord]:
    """Words around the one group of occurrences rather than the other, the most telling first.

    The score is that of Monroe et al. (2008): the difference of log odds with the corpus as prior, over its standard
    error; small counts cannot make it large. Without another group the corpus itself is compared with.
    """
    here, there = _around(inside), _around(outside) or Counter(corpus)
    total = sum(corpus.values())
    sizes = here.total() + PRIOR, there.total() + PRIOR
    scores = [
        TellingWord(word, _score(here[word], there[word], PRIOR * corpus.get(word, 1) / total, sizes))
        for word in here
        if is_wordlike(word)
    ]
    return sorted((word for word in scores if word.score > 0), key=lambda word: (-word.score, word.word))


def _around(occurrences: Iterable[Occurrence]) -> Counter[str]:
    """The words near the occurrences, these themselves left out."""
    counts: Counter[str] = Counter()
    for context, position, _ in occurrences:
        words = context.words
        counts.update(words[max(0, position - WINDOW) : position] + words[position + 1 : position + 1 + WINDOW])
    return counts


def _score(here: int, there: int, prior: float, sizes: tuple[float, float]) -> float:
    odds = [log((count + prior) / (size - count - prior)) for count, size in zip((here, there), sizes, strict=True)]
    return (odds[0] - odds[1]) / sqrt(1 / (here + prior) + 1 / (there + prior))
