"""How well a model predicts text: exact, over the full softmax, each sentence from a zero state."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmokit.elmo import Elmo
from elmokit.embedder import Sentence
from elmokit.errors import DataError
from elmokit.text.numbering import BOS_ID
from elmokit.text.vocabulary import BOS, EOS

PIECE = 1000  # tokens that are read at one place of a corpus, of many such
LEAST_LOG = -40.0  # of a probability that is zero, or nearly


@dataclass(frozen=True)
class Perplexity:
    """exp of the mean negative log likelihood; </S> is predicted too, and <S> backwards."""

    forward: float
    backward: float
    targets: int
    """Words predicted in each direction."""
    unknown: int
    """Tokens that the vocabulary lacks, and that count as <UNK>."""

    @property
    def average(self) -> float:
        """exp of the mean of both directions' losses, as the original reports it."""
        return math.sqrt(self.forward * self.backward)


def perplexity(elmo: Elmo, sentences: Iterable[Sentence]) -> Perplexity:
    """The perplexity of sentences, in memory that does not grow with their number."""
    forward = backward = 0.0
    targets = unknown = 0
    for tokens, before, after, *_ in elmo.log_likelihoods(sentences):
        forward += before.sum(dtype=np.float64)
        backward += after.sum(dtype=np.float64)
        targets += len(before)
        unknown += sum(token not in (elmo.vocabulary or ()) for token in tokens)
    if not targets:
        raise DataError("there is no text to measure the perplexity of")
    return Perplexity(math.exp(-forward / targets), math.exp(-backward / targets), targets, unknown)


@torch.no_grad()
def mean_prediction(elmo: Elmo, sentences: Iterable[Sequence[str]]) -> Tensor:
    """log p̄(w), (V,): the probability that both directions give a word, averaged over all tokens of running text.

    p(w | before) p(w | after) counts a word's frequency twice; divided by p̄(w) it does so once. Counts of the corpus
    do not serve: a model's predictions of rare words are flatter.
    """
    softmax, vocabulary = elmo.output_layer()
    total, count = torch.zeros(len(vocabulary), dtype=torch.float64), 0
    for tokens in sentences:
        forward, backward = elmo.run([[BOS, *tokens, EOS]], gradients=False)[-1].chunk(2, dim=-1)  # (T + 2, P) each
        for states in (forward[:-2], backward[2:]):
            total += softmax.log_probabilities(states).exp().sum(dim=0).cpu()
            count += len(states)
    if not count:
        raise DataError("there is no text to average predictions over")
    return (total / count).log().clamp(min=LEAST_LOG).float()


def spread_sentences(ids: NDArray[np.int32], words: tuple[str, ...], *, tokens: int) -> Iterator[list[str]]:
    """Sentences from all over a stream of ids, of about so many tokens."""
    pieces = max(1, min(tokens, len(ids)) // PIECE)
    for start in range(0, len(ids), max(1, len(ids) // pieces)):
        yield from sentences_of(ids[start:], words, tokens=PIECE)


def sentences_of(ids: NDArray[np.int32], words: tuple[str, ...], *, tokens: int | None = None) -> Iterable[list[str]]:
    """The sentences of a stream of ids as words without their bounds, up to about so many tokens."""
    starts = np.flatnonzero(ids[:tokens] == BOS_ID).tolist()
    ends = [*starts[1:], None] if starts else []
    for start, end in zip(starts, ends, strict=True):
        sentence = ids[start:end]
        if end is None:  # the last one may go on past the tokens asked for
            following = np.flatnonzero(sentence[1:] == BOS_ID)
            sentence = sentence[: following[0] + 1] if len(following) else sentence
        yield [words[number] for number in sentence[1:-1]]
