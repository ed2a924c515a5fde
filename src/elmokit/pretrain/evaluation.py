"""How well a model predicts text: exact, over the full softmax, each sentence from a zero state."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from elmokit.elmo import Elmo
from elmokit.errors import CheckpointError, DataError
from elmokit.text.inputs import batch_by_tokens, in_chunks
from elmokit.text.numbering import BOS_ID
from elmokit.text.vocabulary import BOS, EOS

BATCH_TOKENS = 4096
CHUNK_TOKENS = 16 * BATCH_TOKENS


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


def perplexity(elmo: Elmo, sentences: Iterable[list[str]]) -> Perplexity:
    """The perplexity of tokenized sentences, in memory that does not grow with their number."""
    if elmo.language_model.softmax is None or elmo.vocabulary is None:
        raise CheckpointError(f"{elmo.source}: the model has no softmax, so it cannot predict words")
    totals = np.zeros(4)
    for chunk in in_chunks(sentences, CHUNK_TOKENS):
        for batch in batch_by_tokens([len(tokens) + 2 for tokens in chunk], BATCH_TOKENS):
            totals += _batch(elmo, [[BOS, *chunk[i], EOS] for i in batch])
    forward, backward, targets, unknown = totals
    if not targets:
        raise DataError("there is no text to measure the perplexity of")
    return Perplexity(math.exp(-forward / targets), math.exp(-backward / targets), int(targets), int(unknown))


def _batch(elmo: Elmo, batch: list[list[str]]) -> NDArray[np.float64]:
    """Log likelihood forward and backward, targets, unknown words."""
    softmax, vocabulary = elmo.language_model.softmax, elmo.vocabulary
    assert softmax is not None
    assert vocabulary is not None
    words = [word for tokens in batch for word in tokens]
    ids = torch.from_numpy(vocabulary.encode(words)).to(elmo.device)  # (N,)
    top = elmo.run(batch, gradients=False)[-1]  # (N, 2P)
    first = torch.tensor([word is BOS for word in words], device=elmo.device)
    within = ~first[1:]  # whether a token follows the one before it in its sentence
    before, after = top[:-1, : elmo.config.projection][within], top[1:, elmo.config.projection :][within]
    forward = softmax.log_likelihood(before, ids[1:][within]).double().sum().item()
    backward = softmax.log_likelihood(after, ids[:-1][within]).double().sum().item()
    unknown = sum(word not in vocabulary for word in words)
    return np.array([forward, backward, int(within.sum()), unknown])


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
