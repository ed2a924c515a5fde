"""The bidirectional language model: token vectors in, a representation from every layer out."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.config import ModelConfig
from elmokit.model.recurrent import RecurrentLayer
from elmokit.model.tokens import TokenEncoder

Layer = TypeVar("Layer")
Drop = Callable[[Tensor], Tensor] | None
Stacks = tuple[list[RecurrentLayer], list[RecurrentLayer]]


class State(NamedTuple):
    """What the recurrent layers remember: directions × layers × sentences × width."""

    h: Tensor  # (2, L, B, P) the outputs that recur
    c: Tensor  # (2, L, B, D) the cells


class BiLM(nn.Module):
    """A token encoder shared by a stack of recurrent layers in each direction."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = TokenEncoder(config)
        # TensorFlow and this module agree on one width P for tokens and outputs, so residuals always fit
        self.forward_layers, self.backward_layers = (
            nn.ModuleList(RecurrentLayer(config.projection, config) for _ in range(config.layers)) for _ in range(2)
        )

    @property
    def stacks(self) -> Stacks:
        """The layers of the forward direction, then those of the backward one."""
        return cast(Stacks, (list(self.forward_layers), list(self.backward_layers)))

    def zero_state(self, sentences: int) -> State:
        weight, shape = next(self.parameters()), (2, self.config.layers, sentences)
        return State(weight.new_zeros(*shape, self.config.projection), weight.new_zeros(*shape, self.config.hidden))

    def forward(self, x: Tensor, lengths: Sequence[int], state: State | None = None) -> tuple[Tensor, State]:
        """The 2L + 1 vectors of every token as L + 1 layers, (L + 1, N, 2P), from token vectors, (N, P).

        h_k0 = [x_k; x_k] and h_kj = [forward h_kj; backward h_kj]. Sentences stand end to end, longest first; their
        boundary tokens count as tokens.
        """
        state, packing = state or self.zero_state(len(lengths)), pack(lengths, x.device)
        orders = packing.forward, packing.backward
        runs = zip(self.stacks, orders, state.h, state.c, strict=True)
        directions = [self._direction(x, stack, order, packing.batch_sizes, h, c) for stack, order, h, c in runs]
        layers, last = zip(*directions, strict=True)
        return torch.cat(layers, dim=-1), State(*map(torch.stack, zip(*last, strict=True)))

    def _direction(
        self, x: Tensor, stack: list[RecurrentLayer], order: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, State]:
        """One direction's layers, (L + 1, N, P), and its last state, (L, B, …)."""
        ends = []

        def run(level: int, layer: RecurrentLayer, x: Tensor) -> Tensor:
            output: Tensor
            output, *end = layer(x, batch_sizes, h[level], c[level])
            ends.append(end)
            return output

        outputs = run_stack(stack, x[order], run, residual=self.config.residual)
        layers = torch.stack([x, *(torch.empty_like(x).index_copy(0, order, output) for output in outputs)])
        return layers, State(*map(torch.stack, zip(*ends, strict=True)))


def run_stack(
    stack: Sequence[Layer], x: Tensor, run: Callable[[int, Layer, Tensor], Tensor], *, residual: bool, drop: Drop = None
) -> Iterator[Tensor]:
    """What each layer of one direction puts out: h_1 = layer_1(x), h_j = layer_j(h_j-1) + h_j-1.

    `run` computes a layer by its number: its clipped output recurs, what is added to it here does not. Dropout falls
    on a layer's input, and on what is added with it.
    """
    for level, layer in enumerate(stack):
        x = x if drop is None else drop(x)
        output = run(level, layer, x)
        x = output + x if residual and level > 0 else output
        yield x


class Packing(NamedTuple):
    """Sentences laid out time step by time step: where each packed row comes from among the flat tokens."""

    forward: Tensor  # (N,) flat index of each packed row, reading left to right
    backward: Tensor  # (N,) the same, reading each sentence from its own end
    batch_sizes: list[int]  # how many sentences are still running at each step
    last_rows: Tensor  # (B,) the packed row of each sentence's last step


def pack(lengths: Sequence[int], device: torch.device | str = "cpu", *, ends: bool = True) -> Packing:
    """Plan the time-major order of sentences that stand end to end, longest first; without `ends`, less a last step."""
    length = np.asarray(lengths, dtype=np.int64)
    if np.any(length[1:] > length[:-1]):
        raise ValueError("sentences must be sorted by falling length")
    start = np.cumsum(length) - length
    steps = length if ends else length - 1
    running = np.arange(steps.max(initial=0))[:, None] < steps  # (T, B)
    step, row = running.nonzero()
    batch_sizes = running.sum(axis=1)
    step_starts = np.cumsum(batch_sizes) - batch_sizes
    return Packing(
        forward=torch.from_numpy(start[row] + step).to(device),
        backward=torch.from_numpy(start[row] + length[row] - 1 - step).to(device),
        batch_sizes=batch_sizes.tolist(),
        last_rows=torch.from_numpy(step_starts[steps - 1] + np.arange(len(length))).to(device),
    )
