"""Words in gaps: how well a model predicts them from both sides, and the layer that learns to."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from elmokit.elmo import Elmo
from elmokit.errors import DataError
from elmokit.model.cloze import Cloze
from elmokit.progress import SILENCE, Progress
from elmokit.text.inputs import in_chunks
from elmokit.text.vocabulary import BOS, EOS

BATCH = 1024  # tokens a step, fewer where there is little text, so that there are
STEPS = 200  # steps
RATE = 0.002  # of Adam, falling to zero
WIDTH = 4  # times a direction's


class Gaps(NamedTuple):
    """Words, and what stands on either side of each."""

    before: Tensor  # (N, P), the forward state before the word
    after: Tensor  # (N, P), the backward state after it
    words: Tensor  # (N,), their ids


class ClozeScores(NamedTuple):
    """How well words in gaps are predicted; one that the vocabulary lacks is <UNK>."""

    perplexity: float
    first: float
    """Share of words that are the first guess."""
    reciprocal_rank: float
    """The mean of 1 / rank."""
    words: int


def iter_gaps(elmo: Elmo, sentences: Iterable[Sequence[str]], *, tokens: int = BATCH) -> Iterator[Gaps]:
    """Every word of the sentences as a gap, about so many at a time."""
    _, vocabulary = elmo.output_layer()
    for chunk in in_chunks(sentences, tokens):
        bounded = sorted(([BOS, *sentence, EOS] for sentence in chunk if sentence), key=len, reverse=True)
        if not bounded:
            continue
        forward, backward = elmo.run(bounded, gradients=False)[-1].chunk(2, dim=-1)  # (N + 2 a sentence, P)
        inner = torch.tensor([0 < place < len(one) - 1 for one in bounded for place in range(len(one))]).nonzero()[:, 0]
        ids = vocabulary.encode([word for one in bounded for word in one[1:-1]])
        yield Gaps(forward[inner - 1], backward[inner + 1], torch.from_numpy(ids).to(forward.device))


def train_cloze(
    elmo: Elmo,
    sentences: Iterable[Sequence[str]],
    *,
    tokens: int,
    seed: int = 0,
    autocast: bool = False,
    progress: Progress = SILENCE,
) -> Cloze:
    """The layer that joins both sides of a gap, learned from about so many tokens; the model stays as it is.

    With `autocast` products are computed in bfloat16.
    """
    softmax, _ = elmo.output_layer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        cloze = Cloze(elmo.config.projection, WIDTH * elmo.config.projection).to(elmo.device)
    optimizer = torch.optim.Adam(cloze.parameters(), lr=RATE)
    read = 0
    for gaps in iter_gaps(elmo, sentences, tokens=max(1, min(BATCH, tokens // STEPS))):
        for group in optimizer.param_groups:
            group["lr"] = RATE * max(0.0, 1 - read / tokens)
        optimizer.zero_grad()
        with torch.enable_grad(), torch.autocast(elmo.device.type, torch.bfloat16, enabled=autocast):
            loss = softmax.loss(cloze(gaps.before, gaps.after), gaps.words) / len(gaps.words)
            loss.backward()
        optimizer.step()
        read += len(gaps.words)
        progress.update("joining both directions", read, tokens, unit="tokens", note=f"loss {loss.item():.3f}")
    return cloze.eval().requires_grad_(False)


@torch.no_grad()
def cloze_scores(elmo: Elmo, sentences: Iterable[Sequence[str]]) -> ClozeScores:
    """How well the words of sentences are predicted, each from those around it."""
    loss = first = reciprocal = 0.0
    count = 0
    prior = None if elmo.prior is None else elmo.prior.to(elmo.device)
    for gaps in iter_gaps(elmo, sentences, tokens=256):
        scores = elmo.language_model.gap_scores(gaps.before, gaps.after, prior)  # (N, V)
        own = scores.gather(1, gaps.words[:, None])  # (N, 1)
        ranks = (scores > own).sum(dim=1) + 1
        loss += float((scores.logsumexp(dim=1) - own[:, 0]).sum())
        first += int((ranks == 1).sum())
        reciprocal += float((1 / ranks).sum())
        count += len(ranks)
    if not count:
        raise DataError("there is no text to predict words of")
    return ClozeScores(math.exp(min(700.0, loss / count)), first / count, reciprocal / count, count)
