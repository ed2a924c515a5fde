"""A biLM with the softmax it is trained with: both directions predict words."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from elmokit.config import ModelConfig
from elmokit.model.bilm import BiLM, State
from elmokit.model.dropout import dropout
from elmokit.model.lstm_training import stream
from elmokit.model.recurrent import RecurrentLayer
from elmokit.model.softmax import AdaptiveSoftmax, FullSoftmax, make_softmax
from elmokit.model.threads import side_by_side

SOFTMAX = "softmax."
DRAWING = {"normal_", "uniform_", "kaiming_uniform_", "xavier_uniform_", "div", "__truediv__"}  # and scaling


class Step(NamedTuple):
    """What one direction reads in a step; (T, B) each."""

    places: Tensor
    """Which of the step's distinct words stands where."""
    targets: Tensor
    """The word to predict; -1 for none."""
    keep: Tensor | None
    """0 where the state starts from zero; None for never."""
    dropout: torch.Generator
    """Where dropout comes from."""
    samples: torch.Generator
    """Where the words of a sampled softmax come from."""


class Result(NamedTuple):
    """What one direction made of a step."""

    loss: float
    """Summed over its targets, in nats; of the sample, for a sampled softmax."""
    targets: int
    h: Tensor
    """(L, B, P) the state to go on from."""
    c: Tensor
    gradients: tuple[Tensor, ...]
    """Of the distinct words' vectors, then of the direction's own weights, then of the softmax's."""


class LanguageModel(nn.Module):
    """The token encoder and the softmax are shared by the directions, the recurrent layers are not."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        with _Undrawn() if torch.empty(0).is_meta else nullcontext():
            self.bilm = BiLM(config)
            self.softmax = _softmax(config)

    def weights(self) -> dict[str, Tensor]:
        """Every weight by the name it has on disk."""
        softmax = {} if self.softmax is None else self.softmax.state_dict(prefix=SOFTMAX)
        return self.bilm.state_dict() | softmax

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take over weights named as on disk, all of them."""
        if self.softmax is not None:
            own = {name.removeprefix(SOFTMAX): weight for name, weight in weights.items() if name.startswith(SOFTMAX)}
            self.softmax.load_state_dict(own, assign=True)
        rest = {name: weight for name, weight in weights.items() if not name.startswith(SOFTMAX)}
        self.bilm.load_state_dict(rest, assign=True)

    def backpropagate(
        self,
        vectors: Tensor,
        steps: tuple[Step, Step],
        state: State,
        *,
        dropout: float,
        scale: float,
        autocast: bool = False,
    ) -> tuple[list[Result], State]:
        """Gradients of scale * (forward + backward loss) into every weight's `grad`, the directions side by side.

        With `autocast` the recurrent layers compute in bfloat16.
        """

        def run(way: int) -> Result:
            with torch.autocast(vectors.device.type, torch.bfloat16, enabled=autocast):
                return self._direction(way, vectors.detach(), steps[way], state, dropout, scale)

        results = side_by_side([partial(run, way) for way in range(2)], gradients=True)
        if vectors.requires_grad:
            vectors.backward(results[0].gradients[0] + results[1].gradients[0])
        for way, result in enumerate(results):
            for weight, gradient in zip(self._weights_of(way), result.gradients[1:], strict=True):
                weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)
        return results, State(torch.stack([r.h for r in results]), torch.stack([r.c for r in results]))

    def _stack(self, way: int) -> Iterable[RecurrentLayer]:
        stack = self.bilm.backward_layers if way else self.bilm.forward_layers
        return (layer for layer in stack if isinstance(layer, RecurrentLayer))

    def _weights_of(self, way: int) -> list[nn.Parameter]:
        """What a direction trains besides the token encoder; frozen weights are left out."""
        assert self.softmax is not None
        own = [weight for layer in self._stack(way) for weight in layer.parameters()]
        return [weight for weight in (*own, *self.softmax.parameters()) if weight.requires_grad]

    def _direction(self, way: int, vectors: Tensor, step: Step, state: State, share: float, scale: float) -> Result:
        assert self.softmax is not None
        vectors.requires_grad_()
        drop = partial(dropout, share=share, generator=step.dropout)
        outputs, h, c = self._outputs(way, vectors[step.places], step.keep, state.h[way], state.c[way], drop)
        real = step.targets >= 0
        loss = self.softmax.loss(drop(outputs)[real], step.targets[real], step.samples)
        gradients = torch.autograd.grad(loss * scale, [vectors, *self._weights_of(way)])
        return Result(loss.item(), int(real.sum()), h, c, gradients)

    def _outputs(
        self, way: int, x: Tensor, keep: Tensor | None, h: Tensor, c: Tensor, drop: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The top layer, (T, B, P), and the state after the last step, without gradients."""
        ends = []
        for level, layer in enumerate(self._stack(way)):
            x = drop(x)
            output, end_h, end_c = stream(layer, x, h[level], c[level], keep)
            x = output + x if self.config.residual and level > 0 else output  # the residual is the dropped input
            ends.append((end_h.detach().to(h.dtype), end_c.detach().to(c.dtype)))
        return x, torch.stack([end[0] for end in ends]), torch.stack([end[1] for end in ends])


class _Undrawn(TorchFunctionMode):
    """Leaves weights that are mere shapes as they are: drawing them would take two seconds to load torch's compiler."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function.__name__ in DRAWING:
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs)


def _softmax(config: ModelConfig) -> FullSoftmax | AdaptiveSoftmax | None:
    if (softmax := config.softmax) is None:
        return None
    cutoffs = [cutoff for cutoff in softmax.cutoffs if cutoff < softmax.size]
    kind = "full" if softmax.kind == "adaptive" and not cutoffs else softmax.kind
    samples = min(softmax.samples, softmax.size - 1)
    return make_softmax(kind, softmax.size, config.projection, samples=samples, cutoffs=cutoffs)
