"""Parts of a training step whose inner loops are compiled: the LSTM, the cross entropy and the maxima of filters.

They cover 32-bit weights on a CPU. Under autocast matrix products read and write bfloat16; all else stays in 32 bits.
"""

from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from elmokit.model.lstm_training import Bound

PRODUCTS = (torch.float32, torch.bfloat16)
CHUNK, LEAST_ROWS = 2**21, 512  # logits that exist at once; fewer rows of them make slow products


def kernels_for(weight: Tensor) -> ModuleType | None:
    """The compiled kernels, if they cover a layer with such a weight; else torch's own operations do the same."""
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or product_type() not in PRODUCTS:
        return None
    return _kernels()


@cache
def _kernels() -> ModuleType | None:
    try:
        from elmokit.model import kernels  # numba takes a second to load: inference must not wait for it
    except ImportError:
        return None
    return kernels


def product_type() -> torch.dtype:
    """What matrix products on a CPU read and write here."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32


def array(tensor: Tensor) -> Any:
    """The tensor's memory as the kernels see it, bfloat16 as its bits."""
    tensor = tensor.detach()
    return tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


class _Tape(NamedTuple):
    """What the forward run of an LSTM leaves to the backward run; n: in the type of products, the rest in 32 bits."""

    keep: Tensor  # (T, B)
    first_c: Tensor  # (B, D)
    inputs: Tensor  # n (T, B, input + P) the input and the last output side by side
    gates: Tensor  # (T, B, 4D) activated
    cells: Tensor  # (T, B, D)
    tanh_cells: Tensor  # (T, B, D)
    m: Tensor  # n (T, B, D) before the projection
    raw_outputs: Tensor  # (T, B, P) before their clip
    own: Tensor  # n (4D, input)
    recurrent: Tensor  # n (4D, P)
    projection: Tensor | None  # n (P, D)


Options = tuple[ModuleType, float, Bound | None, torch.dtype]  # kernels, clips of cells and outputs, type of products


class FusedLstmStream(Function):
    """What `LstmStream` computes; a cell without a clip has an infinite one."""

    @staticmethod
    def forward(ctx: Any, options: Options, *given: Any) -> tuple[Tensor, Tensor]:
        x, h, c, keep, weight, bias, projection = given
        (T, B, size), P, D = x.shape, h.shape[1], c.shape[1]
        *_, output_clip, products = options
        outputs = x.new_empty(T, B, P)
        tape = _Tape(
            keep=keep.reshape(T, B),
            first_c=c.contiguous(),
            inputs=x.new_empty(T, B, size + P, dtype=products),
            gates=x.new_empty(T, B, 4 * D),
            cells=x.new_empty(T, B, D),
            tanh_cells=x.new_empty(T, B, D),
            m=x.new_empty(T, B, D, dtype=products),
            raw_outputs=torch.empty_like(outputs) if output_clip else outputs,
            own=weight[:, :size].to(products).contiguous(),  # products with a part of a wider matrix are slower
            recurrent=weight[:, size:].to(products).contiguous(),
            projection=None if projection is None else projection.to(products),
        )
        tape.inputs[:, :, :size] = x
        from_input = x.flatten(0, 1).to(products) @ tape.own.t()  # (T * B, 4D)
        _run(options, tape, from_input.view(T, B, -1), bias, h, outputs)
        ctx.options = options
        ctx.save_for_backward(*tape)
        return outputs, tape.cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor, d_last_c: Tensor) -> tuple[Tensor | None, ...]:
        tape, (T, B, P) = _Tape(*ctx.saved_tensors), d_outputs.shape
        d_sums, d_c = torch.empty_like(tape.gates, dtype=tape.inputs.dtype), d_last_c.clone()
        d_raw = torch.empty_like(d_outputs, dtype=tape.inputs.dtype)
        d_h = _run_backward(ctx.options, tape, d_outputs, d_c, d_sums, d_raw)
        flat, narrow = d_sums.view(T * B, -1), d_raw.view(T * B, P)
        d_x = (flat @ tape.own).float().view(T, B, -1)  # (T, B, input)
        d_weight = (flat.t() @ tape.inputs.view(T * B, -1)).float()  # (4D, input + P)
        d_bias = (flat.new_ones(1, T * B) @ flat).float()[0]  # (4D,)
        d_projection = None if tape.projection is None else (narrow.t() @ tape.m.view(T * B, -1)).float()  # (P, D)
        return None, d_x, d_h, d_c, None, d_weight, d_bias, d_projection


def _run(options: Options, tape: _Tape, from_input: Tensor, bias: Tensor, h: Tensor, outputs: Tensor) -> None:
    """Fill the tape and the outputs, step by step."""
    c, columns, P = tape.first_c, tape.recurrent.t(), h.shape[1]
    kernels, cell_clip, output_clip, _ = options
    for t, sums in enumerate(from_input):
        last = tape.inputs[t, :, -P:].copy_(torch.mul(h, tape.keep[t, :, None]))
        sums.addmm_(last, columns)  # (B, 4D)
        written = (tape.gates[t], tape.cells[t], tape.tanh_cells[t], tape.m[t])
        kernels.lstm_forward(*map(array, (sums, bias, c, tape.keep[t])), cell_clip, *map(array, written))
        m, c = tape.m[t], tape.cells[t]
        h = tape.raw_outputs[t].copy_(m if tape.projection is None else m @ tape.projection.t())  # (B, P)
        if output_clip:
            h = output_clip.clip(h, out=outputs[t])


def _run_backward(
    options: Options, tape: _Tape, d_outputs: Tensor, d_c: Tensor, d_sums: Tensor, d_raw: Tensor
) -> Tensor:
    """Fill the gradients of gates' sums and of raw outputs; that of c becomes the first c's; gives the first h's."""
    kernels, cell_clip, output_clip, _ = options
    d_h = torch.zeros_like(d_outputs[0])
    for t in reversed(range(len(d_outputs))):
        d_h = d_outputs[t] + d_h  # (B, P)
        if output_clip:
            output_clip.backward_(d_h, tape.raw_outputs[t])
        d_raw[t] = d_h
        d_m = d_raw[t] if tape.projection is None else d_raw[t] @ tape.projection  # (B, D)
        given = (d_m, d_c, tape.gates[t], tape.tanh_cells[t], tape.cells[t - 1] if t else tape.first_c)
        kernels.lstm_backward(*map(array, given), cell_clip, array(d_sums[t]))
        d_h = (d_sums[t] @ tape.recurrent).float().mul_(tape.keep[t, :, None])  # (B, P)
    return d_h


def cross_entropy(
    kernels: ModuleType, h: Tensor, weight: Tensor, bias: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What `plain_cross_entropy` gives, and its gradients of h, the weight and the bias."""
    products, V, loss = product_type(), len(bias), 0.0
    with torch.autocast("cpu", enabled=False):
        narrow, columns, targets = h.to(products), weight.to(products), targets.contiguous()
        d_h, d_weight, d_bias = torch.empty_like(h), torch.zeros_like(weight), torch.zeros_like(bias)
        rows, workspace = max(LEAST_ROWS, CHUNK // V), torch.empty_like(bias)
        buffer = torch.empty(min(len(h), rows), V, dtype=products)
        for start in range(0, len(h), rows):
            part, wanted = narrow[start : start + rows], targets[start : start + rows]
            logits = torch.mm(part, columns.t(), out=buffer[: len(part)])  # (n, V), their gradient from here on
            loss += kernels.softmax_gradient(*map(array, (logits, bias, wanted, d_bias, workspace)))
            d_h[start : start + rows] = logits @ columns
            d_weight += logits.t() @ part
    return h.new_tensor(loss), d_h, d_weight, d_bias


def maxima(kernels: ModuleType, sums: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum over the windows, (N, W, F) → (N, F), and the window that it stands in."""
    maximum = sums.new_empty(len(sums), sums.shape[2])
    window = torch.empty_like(maximum, dtype=torch.int32)
    kernels.maxima(*map(array, (sums, maximum, window)))
    return maximum, window


def maxima_backward(
    kernels: ModuleType, x: Tensor, weight: Tensor, window: Tensor, d_maximum: Tensor, d_x: Tensor
) -> Tensor:
    """Add to the gradient of the characters' vectors, (N, C, E); that of the filters, (count, E, width)."""
    rows = weight.transpose(1, 2).flatten(1).contiguous()  # (F, width * E), as the characters of a window stand
    d_rows = torch.zeros_like(rows)
    kernels.maxima_backward(*map(array, (x, rows, d_maximum.contiguous(), window, d_x, d_rows)))
    return d_rows.view(len(weight), -1, weight.shape[1]).transpose(1, 2).contiguous()
