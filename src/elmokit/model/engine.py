"""The biLM made fast for inference on a CPU: what `BiLM` computes, in fewer and larger steps."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from elmokit.model.bilm import BiLM, State
from elmokit.model.fast_tokens import FastTokens
from elmokit.model.linear import Linear, Precision, make_linear
from elmokit.model.packing import Packing, pack
from elmokit.model.recurrent import RecurrentLayer
from elmokit.model.threads import side_by_side

WINDOW_ROWS = 256  # rows whose input gates are computed at once: enough for full speed, and memory stays bounded


class FastLstm(NamedTuple):
    """One layer in one direction; the candidate's weights are doubled, for tanh(x) = 2 sigmoid(2x) - 1."""

    layer: RecurrentLayer
    input: Linear
    recurrent: Linear
    bias: Tensor
    projection: Linear | None

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], h: Tensor, c: Tensor) -> Tensor:
        """The outputs, (N, P); c, (B, D), becomes each sentence's last cell, and h its last output."""
        outputs = x.new_empty(len(x), self.layer.output_size)
        done = 0
        for steps in _windows(batch_sizes):
            gates = self.input(x[done : done + sum(steps)], self.bias)  # (rows, 4D)
            for step in gates.split(steps):
                end = done + len(step)
                h[: len(step)] = self._step(step, h[: len(step)], c[: len(step)], out=outputs[done:end])
                done = end
        return outputs

    def _step(self, gates: Tensor, h: Tensor, c: Tensor, *, out: Tensor) -> Tensor:
        """One time step; torch's sigmoid is several times as fast as its tanh."""
        gates = self.recurrent.add_to(gates, h).sigmoid_()
        i, f, o, g = gates.chunk(4, dim=-1)
        c.mul_(f).addcmul_(i, g, value=2).sub_(i)
        if self.layer.cell_clip is not None:
            c.clamp_(-self.layer.cell_clip, self.layer.cell_clip)
        m = torch.mul(c, 2, out=g).sigmoid_().mul_(2).sub_(1).mul_(o)
        if self.projection is None:
            return out.copy_(m)
        if self.layer.projection_clip is None:
            return out.copy_(self.projection(m))
        return torch.clamp(self.projection(m), -self.layer.projection_clip, self.layer.projection_clip, out=out)


class PlainLayer(NamedTuple):
    """A layer run as the module itself runs it, with the state kept in place."""

    layer: RecurrentLayer

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], h: Tensor, c: Tensor) -> Tensor:
        """The outputs, (N, P); h and c become each sentence's last."""
        outputs: Tensor
        outputs, last_h, last_c = self.layer(x, batch_sizes, h, c)
        h.copy_(last_h)
        c.copy_(last_c)
        return outputs


FastLayer = FastLstm | PlainLayer


class Prepared(NamedTuple):
    """The weights made ready, and which weights they were made from."""

    versions: list[tuple[int, int]]
    tokens: FastTokens
    stacks: tuple[list[FastLayer], list[FastLayer]]


class Engine:
    """Runs a biLM without gradients, both directions at once, one thread each."""

    def __init__(self, bilm: BiLM, precision: Precision = "fp32") -> None:
        self.bilm, self.precision = bilm, precision
        self._prepared: Prepared | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_prepared": None}  # packed weights are made again where they are needed

    @property
    def versions(self) -> list[tuple[int, int]]:
        """Changes whenever a weight does."""
        return [(weight.data_ptr(), weight._version) for weight in self.bilm.parameters()]

    @property
    def prepared(self) -> Prepared:
        """The weights made ready: at first use, and again after they were trained."""
        versions = self.versions
        if self._prepared is None or self._prepared.versions != versions:
            self._prepared = None
            stacks = (self._stack(self.bilm.forward_layers), self._stack(self.bilm.backward_layers))
            self._prepared = Prepared(versions, FastTokens(self.bilm.tokens, self.precision), stacks)
        return self._prepared

    def _stack(self, layers: nn.ModuleList) -> list[FastLayer]:
        return [_fast(layer, self.precision) for layer in layers if isinstance(layer, RecurrentLayer)]

    def layers(self, x: Tensor, lengths: Sequence[int], state: State | None = None) -> tuple[Tensor, State]:
        """What `BiLM.forward` gives."""
        config = self.bilm.config
        packing = pack(lengths)
        state = state or self.bilm.zero_state(len(lengths))
        last = State(state.h.clone(), state.c.clone())
        outputs = x.new_empty(config.layers + 1, len(x), 2, config.projection)
        outputs[0] = x[:, None]
        stacks = self.prepared.stacks
        side_by_side(partial(self._run, stacks[way], way, packing, outputs, last) for way in range(2))
        return outputs.flatten(2), last

    def _run(self, stack: list[FastLayer], way: int, packing: Packing, outputs: Tensor, state: State) -> None:
        """One direction, from layer 0 of the outputs into the layers above; the state becomes the last one."""
        order = packing.backward if way else packing.forward
        x = outputs[0, order, way]  # (N, P)
        for level, layer in enumerate(stack):
            output = layer(x, packing.batch_sizes, state.h[way, level], state.c[way, level])
            x = output.add_(x) if self.bilm.config.residual and level > 0 else output
            outputs[level + 1, :, way].index_copy_(0, order, x)


def _windows(batch_sizes: Sequence[int]) -> Iterator[list[int]]:
    """Consecutive steps of about so many rows in all."""
    steps: list[int] = []
    for size in batch_sizes:
        if steps and sum(steps) + size > WINDOW_ROWS:
            yield steps
            steps = []
        steps.append(size)
    if steps:
        yield steps


def _fast(layer: RecurrentLayer, precision: Precision) -> FastLayer:
    if layer.cell != "lstm":
        return PlainLayer(layer)
    candidate = slice(3 * layer.hidden, None)
    weight, bias = layer.weight.detach().clone(), layer.gate_bias().detach().clone()
    weight[candidate] *= 2
    bias[candidate] *= 2
    return FastLstm(
        layer,
        make_linear(weight[:, : layer.input_size], precision),
        make_linear(weight[:, layer.input_size :], precision),
        bias,
        None if layer.projection is None else make_linear(layer.projection.detach(), precision),
    )
