"""The LSTM layer in training, as one autograd function: what `recurrent.lstm_step` computes, over T steps."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

aten = torch.ops.aten


class Bound(NamedTuple):
    """A clip; as with torch.clamp, its gradient passes at the bound itself: below the next number."""

    value: float
    next: float

    def clip(self, x: Tensor, *, out: Tensor) -> Tensor:
        return torch.clamp(x, -self.value, self.value, out=out)

    def backward_(self, gradient: Tensor, x: Tensor) -> None:
        aten.hardtanh_backward.grad_input(gradient, x, -self.next, self.next, grad_input=gradient)


def bound(value: float | None, dtype: torch.dtype) -> Bound | None:
    """The clip to ± value; None for none."""
    if value is None or math.isinf(value):
        return None
    number, infinity = torch.tensor([value, math.inf], dtype=dtype)
    return Bound(value, torch.nextafter(number, infinity).item())


class _Weights(NamedTuple):
    recurrent: Tensor  # (4D, P)
    projection: Tensor | None  # (P, D)
    cell_clip: Bound | None
    output_clip: Bound | None


class _Tape(NamedTuple):
    """What the forward run leaves to the backward run; raw is before a clip, and the same tensor if there is none."""

    keep: Tensor  # (T, B, 1)
    first_c: Tensor  # (B, D)
    inputs: Tensor  # (T, B, input + P) the input and the last output side by side
    gates: Tensor  # (T, B, 4D) activated
    raw_cells: Tensor  # (T, B, D)
    cells: Tensor  # (T, B, D)
    tanh_cells: Tensor  # (T, B, D)
    m: Tensor  # (T, B, D) before the projection
    raw_outputs: Tensor  # (T, B, P)
    outputs: Tensor  # (T, B, P)


class LstmStream(Function):
    """x, (T, B, input), h, (B, P), c, (B, D), keep, (T, B, 1), and the weights in; outputs, (T, B, P), and last c out.

    The state before a step is multiplied by `keep`, which is 0 or 1.
    """

    @staticmethod
    def forward(ctx: Any, clips: tuple[Bound | None, Bound | None], *given: Any) -> tuple[Tensor, Tensor]:
        x, h, c, keep, weight, bias, projection = given
        (T, B, size), P, D = x.shape, h.shape[1], c.shape[1]
        own, recurrent, doubled_bias = map(_candidate_doubled, (weight[:, :size], weight[:, size:], bias))
        weights = _Weights(recurrent, projection, *clips)
        cells, m = x.new_empty(T, B, D), x.new_empty(T, B, D)
        outputs = m if projection is None else x.new_empty(T, B, P)
        tape = _Tape(
            keep=keep,
            first_c=c,
            inputs=x.new_empty(T, B, size + P),
            gates=x.new_empty(T, B, 4 * D),
            raw_cells=torch.empty_like(cells) if weights.cell_clip else cells,
            cells=cells,
            tanh_cells=torch.empty_like(cells),
            m=m,
            raw_outputs=torch.empty_like(outputs) if weights.output_clip else outputs,
            outputs=outputs,
        )
        tape.inputs[:, :, :size] = x
        torch.addmm(doubled_bias, x.flatten(0, 1), own.t(), out=tape.gates.view(-1, 4 * D))  # the input's share
        step, row, _ = (keep == 0).nonzero(as_tuple=True)  # where a sentence begins, the forget gate will be 0,
        tape.gates[step, row, D : 2 * D] = -math.inf  # whatever is added to this, and so is every gradient through it
        _run(tape, weights, h)
        ctx.clips = clips
        ctx.save_for_backward(weight, projection, *tape)
        return tape.outputs, tape.cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Tensor, d_last_c: Tensor) -> tuple[Tensor | None, ...]:
        weight, projection, *saved = ctx.saved_tensors
        tape = _Tape(*saved)
        T, B, P = d_outputs.shape
        weights = _Weights(weight[:, -P:], projection, *ctx.clips)
        d_gates, d_raw_outputs, d_h, d_c = _run_backward(tape, weights, d_outputs, d_last_c)
        d_gates = d_gates.view(T * B, -1)  # (T * B, 4D)
        d_x = d_gates @ weight[:, :-P]  # (T * B, input)
        d_weight = d_gates.t() @ tape.inputs.view(T * B, -1)  # (4D, input + P)
        d_bias = d_gates.new_ones(T * B) @ d_gates  # (4D,) three times as fast as their sum
        d_raw = d_raw_outputs.view(T * B, P)
        d_projection = None if projection is None else d_raw.t() @ tape.m.view(T * B, -1)  # (P, D)
        return None, d_x.view(T, B, -1), d_h, d_c, None, d_weight, d_bias, d_projection


def _candidate_doubled(weight: Tensor) -> Tensor:
    """The weights with those of the candidate doubled: torch's sigmoid is several times as fast as its tanh.

    They are copied to stand close together: products with a part of a wider matrix are a quarter slower.
    """
    doubled = weight.clone(memory_format=torch.contiguous_format)
    doubled[len(weight) // 4 * 3 :] *= 2
    return doubled


def _run(tape: _Tape, weights: _Weights, h: Tensor) -> None:
    """Fill the tape, step by step."""
    c, P = tape.first_c, h.shape[1]
    recurrent = weights.recurrent.t()  # (P, 4D)
    one = c.new_ones(())
    minus_one = -one
    for t in range(len(tape.gates)):
        last = torch.mul(h, tape.keep[t], out=tape.inputs[t, :, -P:])
        gates = tape.gates[t].addmm_(last, recurrent)  # (B, 4D)
        i, f, o, g = gates.sigmoid_().chunk(4, dim=-1)
        torch.add(minus_one, g, alpha=2, out=g)  # tanh(x) = 2 sigmoid(2x) - 1
        c = torch.mul(f, c, out=tape.raw_cells[t]).addcmul_(i, g)  # (B, D)
        if weights.cell_clip:
            c = weights.cell_clip.clip(c, out=tape.cells[t])
        h = torch.mul(o, _tanh(c, one, out=tape.tanh_cells[t]), out=tape.m[t])  # (B, D)
        if weights.projection is not None:
            h = torch.mm(h, weights.projection.t(), out=tape.raw_outputs[t])  # (B, P)
        if weights.output_clip:
            h = weights.output_clip.clip(h, out=tape.outputs[t])


def _run_backward(tape: _Tape, weights: _Weights, d_outputs: Tensor, d_last_c: Tensor) -> tuple[Tensor, ...]:
    """The gradients of gates before they were activated, of raw outputs, h and c; sums over steps are left to do."""
    D = tape.cells.shape[2]
    d_gates, d_raw_outputs = torch.empty_like(tape.gates), torch.empty_like(tape.outputs)
    d_h, d_c, d_m = torch.zeros_like(d_outputs[0]), d_last_c.clone(), torch.empty_like(d_last_c)
    for t in reversed(range(len(tape.gates))):
        d_h = torch.add(d_outputs[t], d_h, out=d_raw_outputs[t])  # (B, P)
        if weights.output_clip:
            weights.output_clip.backward_(d_h, tape.raw_outputs[t])
        d_m = d_h if weights.projection is None else torch.mm(d_h, weights.projection, out=d_m)  # (B, D)
        i, f, o, g = tape.gates[t].chunk(4, dim=-1)
        d_i, d_f, d_o, d_g = d_gates[t].chunk(4, dim=-1)
        torch.mul(d_m, tape.tanh_cells[t], out=d_o)
        d_c.addcmul_(_tanh_backward_(d_m, tape.tanh_cells[t]), o)
        if weights.cell_clip:
            weights.cell_clip.backward_(d_c, tape.raw_cells[t])
        torch.mul(d_c, g, out=d_i)
        torch.mul(d_c, tape.cells[t - 1] if t else tape.first_c, out=d_f)
        torch.mul(d_c, i, out=d_g)
        d_sigmoids = d_gates[t, :, : 3 * D]
        aten.sigmoid_backward.grad_input(d_sigmoids, tape.gates[t, :, : 3 * D], grad_input=d_sigmoids)
        _tanh_backward_(d_g, g)
        d_c.mul_(f)
        d_h = torch.mm(d_gates[t], weights.recurrent).mul_(tape.keep[t])  # (B, P)
    return d_gates, d_raw_outputs, d_h, d_c


def _tanh(x: Tensor, one: Tensor, *, out: Tensor) -> Tensor:
    """tanh(x) = 1 - 2 sigmoid(-2x)."""
    return torch.sub(one, torch.mul(x, -2, out=out).sigmoid_(), alpha=2, out=out)


def _tanh_backward_(gradient: Tensor, result: Tensor) -> Tensor:
    aten.tanh_backward.grad_input(gradient, result, grad_input=gradient)
    return gradient
