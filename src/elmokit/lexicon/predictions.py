"""What a language model expects of a sentence: how probable each word is at a position, how surprising those there."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from math import log
from typing import NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmokit.elmo import Elmo
from elmokit.embedder import Sentence, Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.settings import Direction
from elmokit.text.vocabulary import BOS, EOS, UNK

Scores = NDArray[np.float64]
logger = logging.getLogger(__name__)
DARKEST = 20.0  # bits; nothing is drawn darker


class WordSurprisal(NamedTuple):
    """How surprising a word is, and how open it was what would come, in bits."""

    word: str
    forward: float  # after what stands before it
    backward: float  # before what stands after it
    forward_entropy: float  # of what could stand there, after what stands before it
    backward_entropy: float
    known: bool  # whether it is in the vocabulary; if not, it is <UNK> that is predicted


@dataclass(frozen=True)
class SentenceSurprisal:
    """How surprising each word of a sentence is, and its bounds, in bits."""

    words: tuple[WordSurprisal, ...]
    end: float  # that the sentence ends where it does, read forwards
    begin: float  # that it begins where it does, read backwards

    def _repr_html_(self) -> str:
        """Each word, the darker the more surprising after those before it; pointing at it shows its numbers."""
        parts = []
        for one in self.words:
            shade = f"rgba(213, 94, 0, {min(one.forward / DARKEST, 1):.2f})"
            look = f"padding: 0 2px; background: {shade}" + ("" if one.known else "; border-bottom: 1px dotted")
            told = f"forward {one.forward:.1f} bits, backward {one.backward:.1f} bits{'' if one.known else ', unknown'}"
            parts.append(f'<span style="{look}" title="{told}">{escape(one.word)}</span>')
        return f'<p style="line-height: 2">{" ".join(parts)}</p>'


@cache
def _report_no_prior(model: str) -> None:
    logger.info(
        f"{model}: no mean prediction is kept with it, so frequent words are favoured: fine-tune it, or a newer one"
    )


def surprisal(elmo: Elmo, sentence: Sentence) -> SentenceSurprisal:
    """- log2 p(word) in both directions, and the entropy - sum_w p(w) log2 p(w) before it; the sentence is by itself.

    The mean of the first over the words and the bound of a direction is the base 2 logarithm of its perplexity.
    """
    [found] = surprisals(elmo, [sentence])
    return found


def surprisals(elmo: Elmo, sentences: Iterable[Sentence]) -> Iterator[SentenceSurprisal]:
    """What `surprisal` says of each of the sentences, in order and in bounded memory."""
    _, vocabulary = elmo.output_layer()
    for words, *found in elmo.log_likelihoods(sentences, entropies=True):
        bits = [np.asarray(one, np.float64) / sign / log(2) for one, sign in zip(found, (-1, -1, 1, 1), strict=True)]
        forward, backward, before, after = (one.tolist() for one in bits)  # T + 1 each
        each = zip(words, forward, backward[1:], before, after[1:], strict=False)
        measured = tuple(WordSurprisal(*one, one[0] in vocabulary) for one in each)
        yield SentenceSurprisal(measured, end=forward[-1], begin=backward[0])


def position_probabilities(elmo: Elmo, sentence: Sentence, position: int, *, direction: Direction = "both") -> Scores:
    """The probability of every word of the vocabulary at one position of a sentence, (V,)."""
    return normalized(position_scores(elmo, sentence, position, direction=direction))


def position_scores(
    elmo: Elmo, sentence: Sentence, position: int, *, direction: Direction = "both", share: float = 1.0
) -> Scores:
    """Their logarithms but for a constant, (V,): log p(w | before) + log p(w | after) - share * log p̄(w).

    p̄ is the model's mean prediction; of one direction alone nothing is taken off. <S>, </S> and <UNK> are at -inf.
    """
    if direction not in get_args(Direction):
        raise ConfigError(f"unknown direction {direction!r}: known are {', '.join(get_args(Direction))}")
    _, forward, backward = elmo.predictions(sentence, positions=[position])
    [found] = joined_scores(elmo, forward, backward, direction=direction, share=share)
    return np.asarray(found)


def joined_scores(
    elmo: Elmo, forward: Vectors, backward: Vectors, *, direction: Direction, share: float = 1.0
) -> Scores:
    """The same of several positions, (T, V), from the log probabilities of both directions there, (T, V) each."""
    sides = {"forward": torch.from_numpy(forward).double(), "backward": torch.from_numpy(backward).double()}
    joined = join_sides(elmo, *sides.values(), share=share) if direction == "both" else sides[direction]
    scores: Scores = joined.numpy()
    _, vocabulary = elmo.output_layer()
    scores[:, vocabulary.encode([word for word in (BOS, EOS, UNK) if word in vocabulary])] = -np.inf
    return scores


def join_sides(elmo: Elmo, forward: Tensor, backward: Tensor, *, share: float = 1.0) -> Tensor:
    """What both directions say of a gap, (…, V), from their log probabilities; that p̄ is missing is said once."""
    joined = forward + backward
    if elmo.prior is None:
        _report_no_prior(elmo.source)
        return joined
    return joined.sub_(elmo.prior.to(joined), alpha=share)


def normalized(scores: Scores) -> Scores:
    """exp of the scores, (…, V), in such proportion that they sum to 1."""
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))
