"""How surprising each word of a sentence is, and how many words were expected more, in either direction and in both."""

from collections.abc import Iterator
from typing import NamedTuple, get_args

import numpy as np

from elmokit.elmo import Elmo
from elmokit.embedder import Sentence
from elmokit.lexicon.predictions import Scores, direction_scores, normalized, surprisal
from elmokit.lexicon.settings import Direction
from elmokit.lexicon.surroundings import Surroundings
from elmokit.text.vocabulary import BOS, EOS, UNK

TINY = float(np.finfo(np.float64).tiny)
POSITIONS = 16  # predicted at a time: three rows each, as long as the vocabulary


class Ranks(NamedTuple):
    """How many words, and one, were expected at least as much."""

    forward: int
    backward: int
    both: int


class RankedWord(NamedTuple):
    """How surprising a word is, in bits, from the words before it, after it, and from both as `substitutes` joins them.

    Of a word that the vocabulary lacks, `forward` and `backward` are those of <UNK>, as `surprisal` has them.
    """

    word: str
    forward: float
    backward: float
    forward_entropy: float  # of all words that could stand there
    backward_entropy: float
    known: bool
    both: float | None  # none, as the ranks, where the vocabulary lacks the word
    ranks: Ranks | None


class RankedSentence(NamedTuple):
    """The words of a sentence, and how surprising its bounds are, as `surprisal` has them."""

    words: tuple[RankedWord, ...]
    end: float
    begin: float


def rank_words(elmo: Elmo, sentence: Sentence) -> RankedSentence:
    """Each word of a sentence; a rank is among all words of the vocabulary but <S>, </S> and <UNK>."""
    measured = surprisal(elmo, sentence)
    _, vocabulary = elmo.output_layer()
    ids = vocabulary.encode([one.word for one in measured.words])
    found: list[RankedWord] = []
    for one, own, joined in zip(measured.words, ids, _probabilities(elmo, sentence), strict=True):
        both, ranks = None, None
        if one.known and one.word not in (BOS, EOS, UNK):
            both = float(-np.log2(max(joined[2][own], TINY)))
            ranks = Ranks(*(int((row > row[own]).sum()) + 1 for row in joined))
        found.append(RankedWord(*one, both, ranks))
    return RankedSentence(tuple(found), measured.end, measured.begin)


def _probabilities(elmo: Elmo, sentence: Sentence) -> Iterator[Scores]:
    """Of each token the probabilities of all words forwards, backwards and in both directions, (3, V)."""
    [around] = Surroundings(elmo).embed([elmo.tokens(sentence)], layers="top")  # (T, 2P)
    for first in range(0, len(around), POSITIONS):
        some = around[first : first + POSITIONS]
        scores = [direction_scores(elmo, some, direction=direction) for direction in get_args(Direction)]
        yield from normalized(np.stack(scores, axis=1))  # (3, V) each
