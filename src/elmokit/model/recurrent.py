"""Recurrent layers with a projection and clips, over packed sequences."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import ModelConfig

GATES = {"lstm": 4, "gru": 3}


class RecurrentLayer(nn.Module):
    """One direction of one layer.

    The matrix `weight` is (gates * D, input + P): what multiplies the input, then what multiplies the last output.
    Its gates are i, f, o, g for the LSTM (input, forget, output, candidate) and r, z, n for the GRU.
    """

    def __init__(self, input_size: int, config: ModelConfig) -> None:
        super().__init__()
        self.input_size = input_size
        self.cell, self.hidden, self.output_size = config.cell, config.hidden, config.projection
        self.cell_clip = config.cell_clip
        self.projection_clip = config.projection_clip if config.projected else None
        self.forget_bias = config.forget_bias
        rows = GATES[config.cell] * config.hidden
        self.weight = nn.Parameter(torch.empty(rows, input_size + config.projection))
        self.bias = nn.Parameter(torch.zeros(rows))
        self.candidate_bias = nn.Parameter(torch.zeros(config.hidden)) if config.cell == "gru" else None
        self.projection = nn.Parameter(torch.empty(config.projection, config.hidden)) if config.projected else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start as TensorFlow's LSTM cell does: Glorot's uniform range for the matrices, zero biases."""
        nn.init.xavier_uniform_(self.weight)
        if self.projection is not None:
            nn.init.xavier_uniform_(self.projection)

    def gate_bias(self) -> Tensor:
        """The bias with the forget gate's constant added."""
        if self.cell != "lstm" or not self.forget_bias:
            return self.bias
        constant = torch.zeros_like(self.bias)
        constant[self.hidden : 2 * self.hidden] = self.forget_bias
        return self.bias + constant

    def forward(
        self, inputs: Tensor, batch_sizes: Sequence[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The outputs, (N, P), and each sentence's last h, (B, P), and c, (B, D)."""
        gates = F.linear(inputs, self.weight[:, : self.input_size], self.gate_bias())  # (N, gates * D)
        recurrent = self.weight[:, self.input_size :]  # (gates * D, P)
        outputs, ended_h, ended_c = [], [], []
        for step in gates.split(list(batch_sizes)):
            running = len(step)
            ended_h.append(h[running:])
            ended_c.append(c[running:])
            h, c = self.step(step, recurrent, h[:running], c[:running])
            outputs.append(h)
        last_h, last_c = torch.cat([h, *reversed(ended_h)]), torch.cat([c, *reversed(ended_c)])
        return torch.cat(outputs), last_h, last_c

    def step(self, gates: Tensor, recurrent: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """One time step: the input's share of the gates and the last state in, the new state out."""
        if self.cell == "lstm":
            m, c = lstm_cell(gates + h @ recurrent.t(), c, self.cell_clip)
        else:
            assert self.candidate_bias is not None
            m = c = gru_cell(gates, h @ recurrent.t(), self.candidate_bias, c, self.cell_clip)
        if self.projection is None:
            return m, c
        return clip(m @ self.projection.t(), self.projection_clip), c


def lstm_cell(gates: Tensor, c: Tensor, cell_clip: float | None) -> tuple[Tensor, Tensor]:
    """c' = clip(f * c + i * g), m = o * tanh(c')."""
    i, f, o, g = gates.chunk(4, dim=-1)
    c = clip(f.sigmoid() * c + i.sigmoid() * g.tanh(), cell_clip)
    return o.sigmoid() * c.tanh(), c


def gru_cell(gates: Tensor, recurrent: Tensor, candidate_bias: Tensor, c: Tensor, cell_clip: float | None) -> Tensor:
    """c' = clip((1 - z) * n + z * c), n = tanh(x_n + r * (h_n + b))."""
    x_r, x_z, x_n = gates.chunk(3, dim=-1)
    h_r, h_z, h_n = recurrent.chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    return clip(torch.lerp(torch.tanh(x_n + r * (h_n + candidate_bias)), c, z), cell_clip)


def clip(x: Tensor, bound: float | None) -> Tensor:
    """X kept within plus or minus the bound."""
    return x if bound is None or math.isinf(bound) else x.clamp(-bound, bound)
