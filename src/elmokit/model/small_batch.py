"""LSTM layers for one sentence or a few: a whole layer in one compiled call, on matrices laid out for it."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from elmokit.machine_code import load_kernel
from elmokit.model.linear import TINY, Precision
from elmokit.model.recurrent import RecurrentLayer

Kept = Literal["fp32", "fp16", "int8"]
KERNELS = "elmokit.model.small_batch_kernels"
COLUMNS = 512  # of a block, at most
FEWEST_COLUMNS = 64  # a matrix whose columns cannot be divided otherwise is one block
WINDOW_ROWS = 64  # whose input gates are computed at once
INT8_LEAST = 1 << 19  # weights of a layer; a smaller one is read from the nearest cache, and stays in fp32
NO_CLIP = 3e38
_PROTOTYPE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 17, ctypes.c_float, ctypes.c_float)


@cache
def kernel(kept: Kept) -> Any | None:
    """The compiled layer for weights that are kept so; None where it cannot be had."""
    return load_kernel(KERNELS, f"lstm_{kept}", _PROTOTYPE)


class Matrix(NamedTuple):
    """W', (K, N), in blocks of columns, and what each column is to be multiplied by."""

    blocks: Tensor  # (N / columns, K, columns)
    scales: Tensor  # (N,)

    @classmethod
    def of(cls, weight: Tensor, kept: Kept, factor: Tensor) -> "Matrix":
        """From W, (N, K), and a factor for each column, (N,)."""
        scales = torch.ones(len(weight))
        if kept == "int8":
            scales = weight.abs().amax(dim=1).clamp_min(TINY) / 127
            weight = (weight / scales[:, None]).round_().to(torch.int8)
        elif kept == "fp16":
            weight = weight.half()
        scales = scales * factor
        return cls(weight.unflatten(0, (-1, _columns(len(weight)))).transpose(1, 2).contiguous(), scales)


class SmallBatchLstm:
    """What `FastLstm` computes, in another order of additions: one pass over the weights for each step and sentence."""

    def __init__(self, layer: RecurrentLayer, precision: Precision) -> None:
        weight, kept = layer.weight.detach(), kept_as(layer, precision)
        halves, ones = torch.ones(len(weight)), torch.ones(layer.output_size)
        halves[: 3 * layer.hidden] /= 2  # sigmoid(x) = 1/2 + 1/2 tanh(x / 2)
        self.hidden, self.output_size = layer.hidden, layer.output_size
        self.bias = layer.gate_bias().detach() * halves
        self.input = Matrix.of(weight[:, : layer.input_size], kept, halves)
        self.recurrent = Matrix.of(weight[:, layer.input_size :], kept, halves)
        none = Matrix(torch.empty(0, layer.hidden, 1), ones)
        projected = layer.projection is not None
        self.projection = Matrix.of(layer.projection.detach(), kept, ones) if layer.projection is not None else none
        self.kernel: Any = kernel(kept)
        self.clips = layer.cell_clip or NO_CLIP, (layer.projection_clip or NO_CLIP) if projected else NO_CLIP

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], h: Tensor | None, c: Tensor, /) -> Tensor:
        x, batch, outer = x.contiguous(), batch_sizes[0], self.output_size
        window = max(batch, min(WINDOW_ROWS, len(x)))
        scratch = x.new_empty((window + batch) * 4 * self.hidden + batch * (self.hidden + outer))
        gates, recurred, m, projected = scratch.split(
            [window * 4 * self.hidden, batch * 4 * self.hidden, batch * self.hidden, batch * outer]
        )
        outputs, cells = x.new_empty(len(x), outer), c.contiguous()
        columns, projection_columns = self.input.blocks.shape[2], self.projection.blocks.shape[2]
        shape = [len(batch_sizes), len(x), batch, x.shape[1], self.hidden, outer, window, int(h is None)]
        numbers = torch.tensor([*shape, columns, len(self.projection.blocks), projection_columns])
        arrays = [numbers, torch.tensor(batch_sizes), x, *self.input, *self.recurrent, self.bias, *self.projection]
        arrays += [outputs if h is None else h.contiguous(), cells, gates, recurred, m, projected, outputs]
        self.kernel(*(array.data_ptr() for array in arrays), *self.clips)
        if cells is not c:
            c.copy_(cells)
        return outputs


def kept_as(layer: RecurrentLayer, precision: Precision) -> Kept:
    """How a layer's weights are kept: in 16 bits where none needs more, as none does that was stored so.

    Then every result is the same to the bit, and half as much is fetched at each step.
    """
    if precision == "int8" and layer.weight.numel() >= INT8_LEAST:
        return "int8"
    weights = [weight.detach() for weight in (layer.weight, layer.projection) if weight is not None]
    half = all(torch.equal(weight.half().float(), weight) for weight in weights)
    return "fp16" if half and kernel("fp16") is not None else "fp32"


def _columns(count: int) -> int:
    """Columns of a block: as many as divide them evenly."""
    even = max(number for number in range(1, min(count, COLUMNS) + 1) if count % number == 0)
    return even if even >= FEWEST_COLUMNS else count
