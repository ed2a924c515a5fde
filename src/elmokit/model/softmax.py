"""Output layers p(word | h): full, sampled, adaptive; the two directions of a language model share one."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

from elmokit.config import SoftmaxConfig
from elmokit.errors import ConfigError, DataError
from elmokit.model import fused
from elmokit.model.fused import kernels_for

Generator = torch.Generator | None
CHUNK = 2**21  # logits that exist at once: about the speed of all at once, or better
LEAST_ROWS = 64  # fewer at once and the weights are read too often for a large vocabulary


class FullSoftmax(nn.Module):
    """softmax(W h + b)."""

    def __init__(self, vocabulary_size: int, width: int) -> None:
        super().__init__()
        if vocabulary_size < 1 or width < 1:
            raise ConfigError(f"a softmax has at least one word and width 1: not {vocabulary_size} and {width}")
        self.weight = nn.Parameter(torch.randn(vocabulary_size, width) / math.sqrt(width))  # as bilm-tf starts it
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def loss(self, h: Tensor, targets: Tensor, generator: Generator = None, *, plain: bool = False) -> Tensor:  # noqa: ARG002
        """The negative log likelihood of the targets, (N,), after h, (N, P): in nats, summed, to be differentiated."""
        _check_targets(targets, len(self.bias))
        return _cross_entropy(h, self.weight, self.bias, targets, plain=plain)

    @torch.no_grad()
    def log_likelihood(self, h: Tensor, targets: Tensor) -> Tensor:
        """The exact log probability of each target, (N,), without gradients and never all N × V at once."""
        _check_targets(targets, len(self.bias))
        result = h.new_empty(len(h))
        for rows in _chunks(len(h), len(self.bias)):
            logits = F.linear(h[rows], self.weight, self.bias)  # (n, V)
            result[rows] = logits.gather(1, targets[rows, None]).squeeze(1) - logits.logsumexp(dim=1)
        return result

    @torch.no_grad()
    def entropy(self, h: Tensor) -> Tensor:
        """- sum_w p(w | h) log p(w | h), in nats, (N,): how open it is what comes; never all N × V at once."""
        result = h.new_empty(len(h))
        for rows in _chunks(len(h), len(self.bias)):
            log_p = self.log_probabilities(h[rows])  # (n, V)
            result[rows] = -(log_p.exp() * log_p).sum(dim=1)
        return result

    def log_probabilities(self, h: Tensor) -> Tensor:
        """The log probability of every word, (N, V), for a few rows."""
        return F.linear(h, self.weight, self.bias).log_softmax(dim=-1)


class SampledSoftmax(FullSoftmax):
    """A full softmax trained on the target against a sample of the words, as bilm-tf does.

    The sample is log-uniform, so words must be numbered by falling frequency. The loss is not a likelihood and its
    exponential not a perplexity: `log_likelihood` is exact.
    """

    def __init__(self, vocabulary_size: int, width: int, samples: int) -> None:
        super().__init__(vocabulary_size, width)
        if not 1 <= samples < vocabulary_size:
            raise ConfigError(f"samples is {samples}: it goes from 1 to below the vocabulary's size, {vocabulary_size}")
        self.samples = samples

    def loss(self, h: Tensor, targets: Tensor, generator: Generator = None, *, plain: bool = False) -> Tensor:
        """Cross entropy of w_k h + b_k - log E(k), E the expected count in the sample, over the target and the sample.

        One sample is drawn for all rows, on the CPU. Where the target itself was drawn, that drawing does not count.
        """
        _check_targets(targets, len(self.bias))
        drawn, tries = draw_sample(len(self.bias), self.samples, generator)
        drawn = drawn.to(h.device)
        words, sizes = torch.cat([drawn, targets]), [len(drawn), len(targets)]  # (S + N,)
        correction = log_expected_count(words, tries, len(self.bias)).to(self.bias)
        weight, own_weight = F.embedding(words, self.weight).split(sizes)  # (S, P), (N, P)
        bias, own_bias = (self.bias[words] - correction).split(sizes)  # (S,), (N,)
        own = (h * own_weight).sum(dim=-1) + own_bias  # (N,)
        index = torch.searchsorted(drawn, targets)
        found = drawn[index.clamp(max=len(drawn) - 1)] == targets
        return _cross_entropy(h, weight, bias, torch.where(found, index, len(drawn)), own, plain=plain)


class AdaptiveSoftmax(nn.Module):
    """p(word) = p_head(word) for words before the first cutoff, else p_head(cluster) * p_cluster(word).

    Words are numbered by falling frequency; each cluster of rarer words has a narrower input (Grave et al., 2017).
    """

    def __init__(self, vocabulary_size: int, width: int, cutoffs: Sequence[int]) -> None:
        super().__init__()
        if not cutoffs or list(cutoffs) != sorted({*cutoffs}) or not 1 <= cutoffs[0] <= cutoffs[-1] < vocabulary_size:
            limit = f"they rise from at least 1 to below the vocabulary's size, {vocabulary_size}"
            raise ConfigError(f"cutoffs are {list(cutoffs)}: {limit}")
        self.edges = (*cutoffs, vocabulary_size)
        self.head = FullSoftmax(cutoffs[0] + len(cutoffs), width)
        sizes = [high - low for low, high in zip(self.edges, self.edges[1:], strict=False)]
        widths = [max(1, width // 2 ** (level + 1)) for level in range(len(sizes))]
        self.projections = nn.ModuleList(nn.Linear(width, narrow, bias=False) for narrow in widths)
        self.tails = nn.ModuleList(FullSoftmax(*shape) for shape in zip(sizes, widths, strict=True))

    def loss(self, h: Tensor, targets: Tensor, generator: Generator = None, *, plain: bool = False) -> Tensor:
        _check_targets(targets, self.edges[-1])
        loss = self.head.loss(h, self._head_targets(targets), generator, plain=plain)
        for tail, _, narrow, indices in self._parts(h, targets):  # even without rows: every weight gets a gradient
            loss = loss + tail.loss(narrow, indices, generator, plain=plain)
        return loss

    @torch.no_grad()
    def log_likelihood(self, h: Tensor, targets: Tensor) -> Tensor:
        _check_targets(targets, self.edges[-1])
        result = self.head.log_likelihood(h, self._head_targets(targets))
        for tail, rows, narrow, indices in self._parts(h, targets):
            result[rows] += tail.log_likelihood(narrow, indices)
        return result

    @torch.no_grad()
    def entropy(self, h: Tensor) -> Tensor:
        """That of the head, and those of the clusters by their probabilities: H = H_head + sum_c p(c) H_c."""
        result = self.head.entropy(h)
        for level, (project, tail) in enumerate(zip(self.projections, self.tails, strict=True)):
            cluster = torch.full((len(h),), self.edges[0] + level, device=h.device)
            result += self.head.log_likelihood(h, cluster).exp() * cast(FullSoftmax, tail).entropy(project(h))
        return result

    def log_probabilities(self, h: Tensor) -> Tensor:
        words, *clusters = self.head.log_probabilities(h).split([self.edges[0]] + [1] * len(self.tails), dim=-1)
        tails = zip(clusters, self.projections, self.tails, strict=True)
        rare = [cluster + cast(FullSoftmax, tail).log_probabilities(project(h)) for cluster, project, tail in tails]
        return torch.cat([words, *rare], dim=-1)

    def _head_targets(self, targets: Tensor) -> Tensor:
        """The word itself, or after the frequent words the number of its cluster."""
        cluster = torch.bucketize(targets, torch.tensor(self.edges[:-1], device=targets.device), right=True)
        return torch.where(cluster == 0, targets, self.edges[0] + cluster - 1)

    def _parts(self, h: Tensor, targets: Tensor) -> Iterator[tuple[FullSoftmax, Tensor, Tensor, Tensor]]:
        """For each cluster: its softmax, the rows whose target is in it, their narrow input, their targets' indices."""
        ranges = zip(self.edges, self.edges[1:], strict=False)
        for (low, high), project, tail in zip(ranges, self.projections, self.tails, strict=True):
            rows = ((targets >= low) & (targets < high)).nonzero().squeeze(1)
            yield cast(FullSoftmax, tail), rows, project(h[rows]), targets[rows] - low


Softmax = FullSoftmax | AdaptiveSoftmax


def make_softmax(config: SoftmaxConfig, width: int) -> Softmax:
    """The output layer for a direction's outputs of this width."""
    cutoffs = [cutoff for cutoff in config.cutoffs if cutoff < config.size]
    if config.kind == "adaptive" and cutoffs:
        return AdaptiveSoftmax(config.size, width, cutoffs)
    if config.kind == "sampled":
        return SampledSoftmax(config.size, width, min(config.samples, config.size - 1))
    return FullSoftmax(config.size, width)


class DrawnWords(NamedTuple):
    """Distinct words, and how many draws it took to find them."""

    words: Tensor  # (S,) in rising order
    tries: int


def draw_sample(vocabulary_size: int, samples: int, generator: Generator = None) -> DrawnWords:
    """Draw words k with P(k) = log((k + 2) / (k + 1)) / log(V + 1) until so many are distinct, as TensorFlow does."""
    draws = np.empty(0, dtype=np.int64)
    words, first = draws, draws
    while len(words) < samples:
        uniform = torch.rand(max(2 * samples, len(draws)), generator=generator, dtype=torch.float64)
        more = torch.exp(uniform * math.log(vocabulary_size + 1)).long() - 1
        draws = np.concatenate([draws, more.clamp_(max=vocabulary_size - 1).numpy()])
        words, first = np.unique(draws, return_index=True)
    tries = int(np.partition(first, samples - 1)[samples - 1]) + 1
    return DrawnWords(torch.from_numpy(words[first < tries]), tries)


def log_expected_count(words: Tensor, tries: int, vocabulary_size: int) -> Tensor:
    """log(1 - (1 - P(k))^tries): how likely so many draws find the word, in double precision."""
    p = torch.log1p(1 / (words.double() + 1)) / math.log(vocabulary_size + 1)
    return torch.log(-torch.expm1(tries * torch.log1p(-p)))


def _cross_entropy(
    h: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, own: Tensor | None = None, *, plain: bool
) -> Tensor:
    if plain:
        return plain_cross_entropy(h, weight, bias, targets, own)
    loss: Tensor = _CrossEntropy.apply(h.to(weight.dtype), weight, bias, targets, own)  # type: ignore[no-untyped-call]
    return loss


def plain_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, own: Tensor | None = None) -> Tensor:
    """- sum_n log softmax(W h_n + b)[target_n]; targets are rows of the weight.

    With `own`, (N,), the targets' own logits stand in one more column, and `targets` says which row of the weight each
    must not meet: that of the target itself, or one past the end for none.
    """
    logits, V = F.linear(h, weight, bias), len(bias)  # (N, V)
    if own is not None:
        itself = targets[:, None] == torch.arange(V, device=h.device)
        logits = torch.cat([logits.masked_fill(itself, -math.inf), own[:, None]], dim=1)  # (N, V + 1)
        targets = torch.full_like(targets, V)
    return F.cross_entropy(logits, targets, reduction="sum")


class _CrossEntropy(Function):
    """`plain_cross_entropy` and its gradients in one go, chunk by chunk, so that never all N × V logits exist."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, own: Tensor | None) -> Tensor:
        if own is None and (kernels := kernels_for(weight)):
            loss, *gradients = fused.cross_entropy(kernels, h, weight, bias, targets)
            ctx.save_for_backward(*gradients, None)
            return loss
        V, loss = len(bias), h.new_zeros(())
        d_h, d_weight, d_bias = torch.empty_like(h), torch.zeros_like(weight), torch.zeros_like(bias)
        d_own = None if own is None else torch.empty_like(own)
        chunks = _chunks(len(h), V)
        buffer = h.new_empty(len(h[chunks[0]]) if chunks else 0, V if own is None else V + 1)
        for rows in chunks:
            logits = buffer[: len(h[rows])]
            torch.addmm(bias, h[rows], weight.t(), out=logits[:, :V])
            columns = targets[rows, None]
            if own is not None:
                logits.scatter_(1, columns, -math.inf)
                logits[:, V] = own[rows]
                columns = torch.full_like(columns, V)
            loss += _into_gradient_(logits, columns)
            if d_own is not None:
                d_own[rows] = logits[:, V]
            torch.mm(logits[:, :V], weight, out=d_h[rows])
            d_weight.addmm_(logits[:, :V].t(), h[rows])
            d_bias += logits[:, :V].sum(dim=0)
        ctx.save_for_backward(d_h, d_weight, d_bias, d_own)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        d_h, d_weight, d_bias, d_own = ctx.saved_tensors
        return d_h * d_loss, d_weight * d_loss, d_bias * d_loss, None, None if d_own is None else d_own * d_loss


def _into_gradient_(logits: Tensor, columns: Tensor) -> Tensor:
    """Turn the logits into softmax minus target, the gradient of the cross entropy, which is returned summed."""
    own = logits.gather(1, columns)  # (n, 1)
    top = logits.amax(dim=1, keepdim=True)
    total = logits.sub_(top).exp_().sum(dim=1, keepdim=True)
    logits.mul_(total.reciprocal()).scatter_add_(1, columns, -torch.ones_like(own))
    return (total.log() + top - own).sum()


def _chunks(n: int, classes: int) -> list[slice]:
    rows = max(LEAST_ROWS, CHUNK // classes)
    return [slice(start, start + rows) for start in range(0, n, rows)]


def _check_targets(targets: Tensor, size: int) -> None:
    wrong = targets[(targets < 0) | (targets >= size)]
    if len(wrong):
        raise DataError(f"target {int(wrong[0])} is no word of the vocabulary: its ids go from 0 to {size - 1}")
