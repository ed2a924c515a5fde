"""How well a model predicts text: exact, over the full softmax, each sentence from a zero state."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmokit.elmo import Elmo
from elmokit.embedder import Sentence
from elmokit.errors import DataError
from elmokit.text.numbering import BOS_ID


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
    for tokens, before, after in elmo.log_likelihoods(sentences):
        forward += before.sum(dtype=np.float64)
        backward += after.sum(dtype=np.float64)
        targets += len(before)
        unknown += sum(token not in (elmo.vocabulary or ()) for token in tokens)
    if not targets:
        raise DataError("there is no text to measure the perplexity of")
    return Perplexity(math.exp(-forward / targets), math.exp(-backward / targets), targets, unknown)


def sentences_of(ids: NDArray[np.int32], words: tuple[str, ...], *, tokens: int | None = None) -> Iterable[list[str]]:
    """The sentences of a stream of ids as words without their bounds, up to about so many tokens."""
    starts = np.flatnonzero(ids[:tokens] == BOS_ID).tolist()
    ends = [*starts[1:], None]
    for start, end in zip(starts, ends, strict=True):
        sentence = ids[start:end]
        if end is None:  # the last one may go on past the tokens asked for
            following = np.flatnonzero(sentence[1:] == BOS_ID)
            sentence = sentence[: following[0] + 1] if len(following) else sentence
        yield [words[number] for number in sentence[1:-1]]
