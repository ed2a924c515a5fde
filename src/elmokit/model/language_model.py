"""A biLM with the softmax it is trained with: both directions predict words."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from elmokit.config import ModelConfig
from elmokit.model.bilm import BiLM, State, run_stack
from elmokit.model.cloze import Cloze
from elmokit.model.dropout import dropout
from elmokit.model.recurrent import RecurrentLayer, plain_stream
from elmokit.model.softmax import make_softmax
from elmokit.model.threads import side_by_side

SOFTMAX, CLOZE = "softmax.", "cloze."
DRAWING = {"normal_", "uniform_", "kaiming_uniform_", "xavier_uniform_", "div", "__truediv__"}  # and scaling


class Step(NamedTuple):
    """What one direction reads in a step; (T, B) each."""

    indices: Tensor  # which of the step's distinct words stands where
    targets: Tensor  # the word to predict; -1 for none
    keep: Tensor | None  # 0 where the state starts from zero; None for never
    dropout: torch.Generator  # where dropout comes from
    samples: torch.Generator  # where the words of a sampled softmax come from


Steps = tuple[Step, Step]  # forward, backward


class Result(NamedTuple):
    """What one direction made of a step."""

    loss: float  # summed over its targets, in nats; of the sample, for a sampled softmax
    targets: int
    last: State  # the state to go on from, (L, B, …)
    gradients: tuple[Tensor, ...]  # of the words' vectors, unless frozen, of the direction's own weights, the softmax's


class LanguageModel(nn.Module):
    """The token encoder and the softmax are shared by the directions, the recurrent layers are not."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        with _Undrawn() if torch.empty(0).is_meta else nullcontext():
            self.bilm = BiLM(config)
            self.softmax = make_softmax(config.softmax, config.projection) if config.softmax else None
            self.cloze = Cloze(config.projection, config.cloze) if config.softmax and config.cloze else None

    @property
    def _parts(self) -> dict[str, nn.Module | None]:
        """What may stand beside the biLM, by the beginning of its weights' names on disk."""
        return {SOFTMAX: self.softmax, CLOZE: self.cloze}

    def weights(self) -> dict[str, Tensor]:
        """Every weight by the name it has on disk."""
        weights = self.bilm.state_dict()
        for prefix, part in self._parts.items():
            weights |= part.state_dict(prefix=prefix) if part is not None else {}
        return weights

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take over weights named as on disk, all of them."""
        for prefix, part in self._parts.items():
            if part is not None:
                own = {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}
                part.load_state_dict(own, assign=True)
        rest = {name: weight for name, weight in weights.items() if not name.startswith(tuple(self._parts))}
        self.bilm.load_state_dict(rest, assign=True)

    def loss(self, vectors: Tensor, steps: Steps, state: State, *, dropout: float = 0.0) -> Tensor:
        """The paper's joint objective, in nats, which torch differentiates as it stands:

        - sum_k (log p(t_k | t_1, …, t_k-1; Θx, Θforward, Θs) + log p(t_k | t_k+1, …, t_N; Θx, Θbackward, Θs))

        Both directions share the token encoder Θx, which made the vectors of the distinct words, (U, P), and the
        softmax Θs. A sampled softmax has the loss of its sample in place of the likelihood.
        """
        forward, _ = self.direction_loss(0, vectors, steps[0], state, dropout, plain=True)
        backward, _ = self.direction_loss(1, vectors, steps[1], state, dropout, plain=True)
        return forward + backward

    def direction_loss(
        self, direction: int, vectors: Tensor, step: Step, state: State, share: float, *, plain: bool
    ) -> tuple[Tensor, State]:
        """- sum_k log p(t_k | the words that this direction has read), and the state after the last, (L, B, …)."""
        assert self.softmax is not None
        drop, ends = partial(dropout, share=share, generator=step.dropout), []

        def run(level: int, layer: RecurrentLayer, x: Tensor) -> Tensor:
            stream = plain_stream if plain else layer.cell.stream
            output, h, c = stream(layer, x, state.h[direction, level], state.c[direction, level], step.keep)
            ends.append((h.detach().to(state.h.dtype), c.detach().to(state.c.dtype)))
            return output

        x = vectors[step.indices]  # (T, B, P)
        *_, top = run_stack(self.bilm.stacks[direction], x, run, residual=self.config.residual, drop=drop)
        real = step.targets >= 0
        loss = self.softmax.loss(drop(top)[real], step.targets[real], step.samples, plain=plain)
        return loss, State(*map(torch.stack, zip(*ends, strict=True)))

    def backpropagate(
        self, vectors: Tensor, steps: Steps, state: State, *, dropout: float, scale: float, autocast: bool = False
    ) -> tuple[list[Result], State]:
        """Gradients of scale * `loss` into every weight's `grad`, in its fast form: the directions side by side.

        With `autocast` the recurrent layers compute in bfloat16.
        """

        def run(direction: int) -> Result:
            own, step = vectors.detach().requires_grad_(vectors.requires_grad), steps[direction]
            learning = [*([own] if own.requires_grad else []), *self._weights_of(direction)]
            with torch.autocast(vectors.device.type, torch.bfloat16, enabled=autocast):
                loss, last = self.direction_loss(direction, own, step, state, dropout, plain=False)
                gradients = torch.autograd.grad(loss * scale, learning)
            return Result(loss.item(), int((step.targets >= 0).sum()), last, gradients)

        results = side_by_side([partial(run, direction) for direction in range(2)], gradients=True)
        if vectors.requires_grad:
            vectors.backward(results[0].gradients[0] + results[1].gradients[0])
        for direction, result in enumerate(results):
            own = result.gradients[1:] if vectors.requires_grad else result.gradients
            for weight, gradient in zip(self._weights_of(direction), own, strict=True):
                weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)
        return results, State(*map(torch.stack, zip(*(result.last for result in results), strict=True)))

    def _weights_of(self, direction: int) -> list[nn.Parameter]:
        """What a direction trains besides the token encoder; frozen weights are left out."""
        assert self.softmax is not None
        own = [weight for layer in self.bilm.stacks[direction] for weight in layer.parameters()]
        return [weight for weight in (*own, *self.softmax.parameters()) if weight.requires_grad]

    @torch.no_grad()
    def log_likelihoods(self, top: Tensor, ids: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
        """log p(t_k | t_1, …, t_k-1) and log p(t_k | t_k+1, …, t_N), (N - B,) each, of sentences with their bounds.

        `top`, (N, 2P), is their last layer, end to end, and `ids`, (N,), their words. The first token of a sentence is
        predicted backwards alone, the last forwards alone.
        """
        assert self.softmax is not None
        within = _within(lengths).to(ids.device)  # (N - 1,)
        forward, backward = _predicting(top, within)
        after = self.softmax.log_likelihood(forward, ids[1:][within])
        return after, self.softmax.log_likelihood(backward, ids[:-1][within])

    @torch.no_grad()
    def entropies(self, top: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The entropy of what each of these is predicted from, in nats, (N - B,) each."""
        assert self.softmax is not None
        forward, backward = _predicting(top, _within(lengths).to(top.device))
        return self.softmax.entropy(forward), self.softmax.entropy(backward)

    def gap_scores(self, before: Tensor, after: Tensor, prior: Tensor | None, *, share: float = 1.0) -> Tensor:
        """The logarithm of each word's probability in a gap but for a constant, (N, V).

        With a cloze layer:  log p(w | before, after) - (share - 1) log p̄(w)
        Without:             log p(w | before) + log p(w | after) - share log p̄(w)

        from the forward states before the gaps and the backward states after them, (N, P) each. p̄, the model's mean
        prediction, is the `prior`; without one nothing is taken off.
        """
        assert self.softmax is not None
        if self.cloze is None:
            joined = self.softmax.log_probabilities(before) + self.softmax.log_probabilities(after)
        else:
            joined, share = self.softmax.log_probabilities(self.cloze(before, after)), share - 1
        return joined if prior is None else joined.sub_(prior, alpha=share)


def _within(lengths: Sequence[int]) -> Tensor:
    """Which pairs of tokens side by side are of one sentence, (N - 1,)."""
    sentence = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))  # (N,)
    return sentence[1:] == sentence[:-1]


def _predicting(top: Tensor, within: Tensor) -> tuple[Tensor, Tensor]:
    """The states that predict the next token forwards, and the one before backwards, (N - B, P) each."""
    forward, backward = top.chunk(2, dim=-1)
    return forward[:-1][within], backward[1:][within]


class _Undrawn(TorchFunctionMode):
    """Leaves weights that are mere shapes as they are: drawing them would take two seconds to load torch's compiler."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function.__name__ in DRAWING:
            return args[0] if args else kwargs["tensor"]
        return (torch.empty if function is torch.randn else function)(*args, **kwargs)
