"""Recurrent layers with a projection and clips: the formulas of each cell, and beside them its fast forms."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import ModelConfig
from elmokit.model.fused import FusedLstmStream, kernels_for, product_type
from elmokit.model.linear import Precision, make_linear
from elmokit.model.lstm_training import LstmStream, bound

Outputs = tuple[Tensor, Tensor, Tensor]  # and the last h and c
WINDOW_ROWS = 256  # rows whose input gates are computed at once: enough for full speed, and memory stays bounded


class RecurrentLayer(nn.Module):
    """One direction of one layer.

    The matrix `weight` is (gates * D, input + P): what multiplies the input, then what multiplies the last output.
    """

    def __init__(self, input_size: int, config: ModelConfig) -> None:
        super().__init__()
        self.cell = CELLS[config.cell]
        self.input_size, self.hidden, self.output_size = input_size, config.hidden, config.projection
        self.cell_clip = config.cell_clip
        self.projection_clip = config.projection_clip if config.projected else None
        self.forget_bias = config.forget_bias
        rows = len(self.cell.gates) * config.hidden
        self.weight = nn.Parameter(torch.empty(rows, input_size + config.projection))
        self.bias = nn.Parameter(torch.zeros(rows))
        # within the reach of a reset gate the last output has a bias of its own
        self.candidate_bias = nn.Parameter(torch.zeros(config.hidden)) if "reset" in self.cell.gates else None
        self.projection = nn.Parameter(torch.empty(config.projection, config.hidden)) if config.projected else None
        nn.init.xavier_uniform_(self.weight)  # as TensorFlow's LSTM cell starts, with zero biases
        if self.projection is not None:
            nn.init.xavier_uniform_(self.projection)

    def gate_bias(self) -> Tensor:
        """The bias with the forget gate's constant added."""
        if "forget" not in self.cell.gates or not self.forget_bias:
            return self.bias
        constant = self.bias.new_zeros(len(self.cell.gates), self.hidden)
        constant[self.cell.gates.index("forget")] = self.forget_bias
        return self.bias + constant.flatten()

    def forward(self, inputs: Tensor, batch_sizes: Sequence[int], h: Tensor, c: Tensor) -> Outputs:
        """The outputs, (N, P), and each sentence's last h, (B, P), and c, (B, D), over packed sentences."""
        gates, recurrent = self.input_gates(inputs), self.weight[:, self.input_size :]
        outputs, ended_h, ended_c = [], [], []
        for step in gates.split(list(batch_sizes)):
            running = len(step)
            ended_h.append(h[running:])
            ended_c.append(c[running:])
            h, c = self.step(step, recurrent, h[:running], c[:running])
            outputs.append(h)
        last_h, last_c = torch.cat([h, *reversed(ended_h)]), torch.cat([c, *reversed(ended_c)])
        return torch.cat(outputs), last_h, last_c

    def input_gates(self, inputs: Tensor) -> Tensor:
        """The input's share of the gates, (..., gates * D), of all steps at once."""
        return F.linear(inputs, self.weight[:, : self.input_size], self.gate_bias())

    def step(self, gates: Tensor, recurrent: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """h' = clip(W_P m), or m without a projection, and c'; m and c' are the cell's."""
        m, c = self.cell.step(self, gates, h @ recurrent.t(), c)
        if self.projection is None:
            return m, c
        return clip(m @ self.projection.t(), self.projection_clip), c


def lstm_step(layer: RecurrentLayer, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """m = o * tanh(c') with c' = clip(f * c + i * g), from the input's and the last output's share of the gates."""
    i, f, o, g = (x + h).chunk(4, dim=-1)
    c = clip(f.sigmoid() * c + i.sigmoid() * g.tanh(), layer.cell_clip)
    return o.sigmoid() * c.tanh(), c


def gru_step(layer: RecurrentLayer, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """m = c' = clip((1 - z) * n + z * c) with n = tanh(x_n + r * (h_n + b))."""
    x_r, x_z, x_n = x.chunk(3, dim=-1)
    h_r, h_z, h_n = h.chunk(3, dim=-1)
    assert layer.candidate_bias is not None
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = torch.tanh(x_n + r * (h_n + layer.candidate_bias))
    c = clip(torch.lerp(n.to(c.dtype), c, z.to(c.dtype)), layer.cell_clip)  # gates are of 16 bits under autocast
    return c, c


def clip(x: Tensor, bound: float | None) -> Tensor:
    """The values kept within plus or minus the bound."""
    return x if bound is None or math.isinf(bound) else x.clamp(-bound, bound)


def plain_stream(layer: RecurrentLayer, x: Tensor, h: Tensor, c: Tensor, keep: Tensor | None = None) -> Outputs:
    """The outputs, (T, B, P), the last h, (B, P), and the last c, (B, D), of a layer over x, (T, B, input).

    `keep`, (T, B), is 0 where a sentence begins, so that its step starts from a zero state, and 1 elsewhere.
    """
    recurrent, outputs = layer.weight[:, layer.input_size :], []
    for gates, kept in zip(layer.input_gates(x), _kept(x, keep), strict=True):
        h, c = layer.step(gates, recurrent, h * kept, c * kept)
        outputs.append(h)
    return torch.stack(outputs), h, c


def lstm_stream(layer: RecurrentLayer, x: Tensor, h: Tensor, c: Tensor, keep: Tensor | None = None) -> Outputs:
    """`plain_stream` for an LSTM, as one function with a backward run of its own; under autocast, of 16 bits."""
    given: tuple[Tensor | None, ...] = (x, h, c, _kept(x, keep), layer.weight, layer.gate_bias(), layer.projection)
    if kernels := kernels_for(layer.weight):
        options = kernels, layer.cell_clip or math.inf, bound(layer.projection_clip, torch.float32), product_type()
        with torch.autocast("cpu", enabled=False):
            wide = (None if part is None else part.float() for part in given)
            outputs, last_c = FusedLstmStream.apply(options, *wide)  # type: ignore[no-untyped-call]
        return outputs, outputs[-1], last_c
    device = x.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else layer.weight.dtype
    clips = bound(layer.cell_clip, dtype), bound(layer.projection_clip, dtype)
    narrowed = (None if part is None else part.to(dtype) for part in given)
    outputs, last_c = LstmStream.apply(clips, *narrowed)  # type: ignore[no-untyped-call]
    return outputs, outputs[-1], last_c


def _kept(x: Tensor, keep: Tensor | None) -> Tensor:
    """What the state before each step is multiplied by, (T, B, 1)."""
    return x.new_ones(*x.shape[:2], 1) if keep is None else (keep != 0).to(x.dtype)[:, :, None]


# The outputs, (N, P), from x, batch sizes, h, (B, P), None for zeros, and c, (B, D), which becomes each sentence's last
FastLayer = Callable[[Tensor, Sequence[int], Tensor | None, Tensor], Tensor]


def plain_layer(layer: RecurrentLayer, _precision: Precision) -> FastLayer:
    """The layer run as the module itself runs it; there is no int8 for it."""

    def run(x: Tensor, batch_sizes: Sequence[int], h: Tensor | None, c: Tensor) -> Tensor:
        outputs: Tensor
        outputs, _, last_c = layer(x, batch_sizes, c.new_zeros(len(c), layer.output_size) if h is None else h, c)
        c.copy_(last_c)
        return outputs

    return run


class FastLstm:
    """An LSTM in terms that need the fewest operations a step.

    Torch's sigmoid is several times as fast as its tanh, so tanh(x) is 2 sigmoid(2x) - 1: the candidate's weights and
    the cells are kept doubled, which is exact, and -m = o - 2 o sigmoid(2c) is projected by minus the projection.
    """

    def __init__(self, layer: RecurrentLayer, precision: Precision) -> None:
        candidate = slice(3 * layer.hidden, None)
        weight, bias = layer.weight.detach().clone(), layer.gate_bias().detach().clone()
        weight[candidate] *= 2
        bias[candidate] *= 2
        self.output_size, self.bias = layer.output_size, bias
        self.doubled_clip = 2 * (layer.cell_clip or math.inf)
        self.projection_clip = layer.projection_clip or math.inf
        self.input = make_linear(weight[:, : layer.input_size], precision)
        self.recurrent = make_linear(weight[:, layer.input_size :], precision)
        projection = layer.projection
        self.minus_projection = None if projection is None else make_linear(-projection.detach(), precision)

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], h: Tensor | None, c: Tensor, /) -> Tensor:
        outputs = x.new_empty(len(x), self.output_size)
        c.mul_(2)
        done = 0
        if h is None:
            done = batch_sizes[0]
            h = self._first_step(x[:done], c, out=outputs[:done])
        for steps in _windows(batch_sizes[1:] if done else batch_sizes):
            gates = self.input(x[done : done + sum(steps)], self.bias)  # (rows, 4D)
            for step in gates.split(steps):
                running = len(step)
                gates_now = self.recurrent.add_to(step, h[:running])
                h = self._step(gates_now, c[:running], out=outputs[done : done + running])
                done += running
        c.div_(2)
        return outputs

    def _first_step(self, x: Tensor, doubled: Tensor, *, out: Tensor) -> Tensor:
        """From a zero state; sentences that all begin with the same token, <S>, are one as yet."""
        rows = 1 if bool((x == x[0]).all()) else len(x)
        self._step(self.input(x[:rows], self.bias), doubled[:rows], out=out[:rows])
        if rows < len(x):
            out[1:], doubled[1 : len(x)] = out[0], doubled[0]
        return out

    def _step(self, gates: Tensor, doubled: Tensor, *, out: Tensor) -> Tensor:
        """One time step of the sentences still running; the new outputs."""
        i, f, o, g = gates.sigmoid_().chunk(4, dim=-1)
        doubled.mul_(f).addcmul_(i, g, value=4).sub_(i, alpha=2).clamp_(-self.doubled_clip, self.doubled_clip)
        minus_m = torch.addcmul(o, o, torch.sigmoid(doubled, out=g), value=-2, out=g)
        if self.minus_projection is None:
            return torch.neg(minus_m, out=out)
        return torch.clamp(self.minus_projection(minus_m), -self.projection_clip, self.projection_clip, out=out)


def _windows(batch_sizes: Sequence[int]) -> Iterator[list[int]]:
    """Consecutive steps of about WINDOW_ROWS rows in all."""
    steps: list[int] = []
    for size in batch_sizes:
        if steps and sum(steps) + size > WINDOW_ROWS:
            yield steps
            steps = []
        steps.append(size)
    if steps:
        yield steps


class Cell(NamedTuple):
    """What a kind of recurrent cell needs."""

    gates: tuple[str, ...]  # blocks of D rows in a layer's weights, in this order
    step: Callable[[RecurrentLayer, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # the formula
    stream: Callable[[RecurrentLayer, Tensor, Tensor, Tensor, Tensor | None], Outputs]
    """`plain_stream` in the form that training runs."""
    fast: Callable[[RecurrentLayer, Precision], FastLayer]
    """`RecurrentLayer.forward` in the form that inference on a CPU runs."""


CELLS: dict[Literal["lstm", "gru"], Cell] = {
    "lstm": Cell(("input", "forget", "output", "candidate"), lstm_step, lstm_stream, FastLstm),
    "gru": Cell(("reset", "update", "candidate"), gru_step, plain_stream, plain_layer),
}
