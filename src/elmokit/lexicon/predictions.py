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
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.settings import Direction
from elmokit.lexicon.surroundings import Surroundings
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
    """Their logarithms but for a constant, (V,): of one direction, or of both as `LanguageModel.gap_scores` has them.

    <S>, </S> and <UNK> are at -inf.
    """
    if direction not in get_args(Direction):
        raise ConfigError(f"unknown direction {direction!r}: known are {', '.join(get_args(Direction))}")
    tokens = elmo.tokens(sentence)
    if position not in range(len(tokens)):
        raise DataError(f"there is no token {position}: the sentence has {len(tokens)}, counted from 0")
    [around] = Surroundings(elmo).embed([tokens], layers="top")  # (T, 2P)
    [found] = direction_scores(elmo, around[position : position + 1], direction=direction, share=share)
    return np.asarray(found)


def direction_scores(elmo: Elmo, around: Vectors, *, direction: Direction, share: float = 1.0) -> Scores:
    """The same of several positions, (T, V), from what stands around them, (T, 2P)."""
    softmax, vocabulary = elmo.output_layer()
    sides = torch.from_numpy(around).to(elmo.device)
    with torch.inference_mode():
        if direction == "both":
            found = gap_scores(elmo, sides, share=share)
        else:
            found = softmax.log_probabilities(sides.chunk(2, dim=-1)[direction == "backward"])
    scores: Scores = found.double().cpu().numpy()
    scores[:, vocabulary.encode([word for word in (BOS, EOS, UNK) if word in vocabulary])] = -np.inf
    return scores


def gap_scores(elmo: Elmo, around: Tensor, *, share: float = 1.0) -> Tensor:
    """What both directions say of gaps, (N, V), from what is around them, (N, 2P); that p̄ is missing is said once."""
    if elmo.prior is None and elmo.language_model.cloze is None:
        _report_no_prior(elmo.source)
    prior = None if elmo.prior is None else elmo.prior.to(around)
    before, after = around.chunk(2, dim=-1)
    return elmo.language_model.gap_scores(before, after, prior, share=share)


def normalized(scores: Scores) -> Scores:
    """exp of the scores, (…, V), in such proportion that they sum to 1."""
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))
