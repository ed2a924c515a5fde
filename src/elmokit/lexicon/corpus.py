"""The words of a corpus, counted."""

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from elmokit.errors import DataError
from elmokit.text.corpus import Context

SPELLINGS_COMPARED = 50_000  # the most frequent words; comparing more would take seconds
LEAST_LIKENESS = 0.5  # two Chinese words of two characters that share one are as much alike


class Survey(NamedTuple):
    """What one reading of a corpus tells."""

    counts: Counter[str]
    """How often each word occurs."""
    sentences: int
    """Sentences that have any words."""

    def check_word(self, word: str) -> None:
        """Refuse a word that the corpus lacks, and offer near spellings."""
        if word in self.counts:
            return
        known = [known for known, _ in self.counts.most_common(SPELLINGS_COMPARED)]
        near = get_close_matches(word, known, n=5, cutoff=LEAST_LIKENESS)
        if near:
            raise DataError(f"the corpus has no word {word!r}; near spellings that it has: {', '.join(near)}")
        raise DataError(f"the corpus has no word {word!r}, nor one spelled nearly so")


def survey(corpus: Iterable[Context]) -> Survey:
    """Count a corpus; its words' counts are all that is kept."""
    counts: Counter[str] = Counter()
    sentences = 0
    for context in corpus:
        counts.update(context.words)
        sentences += 1
    if not sentences:
        raise DataError("the corpus holds no words")
    return Survey(counts, sentences)


def is_wordlike(token: str) -> bool:
    """Whether a token has a letter or digit: punctuation is no word to study."""
    return any(character.isalnum() for character in token)
