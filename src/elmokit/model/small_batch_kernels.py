"""What numba compiles for `small_batch.py`: one layer in one direction, as a C function that touches no Python object.

Imported only where it has to be compiled; `machine_code.py` keeps the result.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic as numba_intrinsic

# Not "reassoc": eight products are added up before they join the sum, which rounds a third as much as one long chain.
FASTMATH = {"contract", "nsz", "arcp"}
carray: Any = numba.carray  # type: ignore[attr-defined]
intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = numba_intrinsic
njit: Callable[[Callable[..., Any]], Any] = numba.njit(fastmath=FASTMATH, error_model="numpy")
ZERO, HALF = np.float32(0), np.float32(0.5)
# Eigen's rational approximation, which TensorFlow runs: x P(x²) / Q(x²), as good as float32 up to the bound
TANH_BOUND = np.float32(7.90531110763549805)
P1, P3, P5 = np.float32(4.89352455891786e-03), np.float32(6.37261928875436e-04), np.float32(1.48572235717979e-05)
P7, P9 = np.float32(5.12229709037114e-08), np.float32(-8.60467152213735e-11)
P11, P13 = np.float32(2.00018790482477e-13), np.float32(-2.76076847742355e-16)
Q0, Q2 = np.float32(4.89352518554385e-03), np.float32(2.26843463243900e-03)
Q4, Q6 = np.float32(1.18534705686654e-04), np.float32(1.19825839466702e-06)


@intrinsic
def widened(_typing: Any, weight: Any) -> Any:
    """A weight as float32; 16 bits are those of a half-precision number."""

    def as_float(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        if weight == types.float32:
            return values[0]
        if weight == types.int8:
            return builder.sitofp(values[0], ir.FloatType())
        return builder.fpext(builder.bitcast(values[0], ir.HalfType()), ir.FloatType())

    return types.float32(weight), as_float


@njit
def clip(x: Any, bound: Any) -> Any:
    """x kept within plus or minus the bound; what is not a number stays so."""
    if x > bound:
        x = bound
    if x < -bound:
        x = -bound
    return x


@njit
def tanh(x: Any) -> Any:
    """x P(x²) / Q(x²)."""
    x = clip(x, TANH_BOUND)
    y = x * x
    p = x * (P1 + y * (P3 + y * (P5 + y * (P7 + y * (P9 + y * (P11 + y * P13))))))
    return p / (Q0 + y * (Q2 + y * (Q4 + y * Q6)))


@njit
def products(out: Any, x: Any, start: int, rows: int, weight: Any, turned: bool) -> None:
    """out[r] = x[start + r] · W, for so many rows r; W, (blocks, K, columns), lies in blocks of columns.

    A matrix larger than the cache is read from its other end every second time, where the cache still holds some of it.
    """
    blocks = len(weight)
    for number in range(blocks):
        block = blocks - 1 - number if turned else number
        for row in range(rows):
            for j in range(weight.shape[2]):
                out[row, block, j] = ZERO
        for half in range(rows // 2):
            add_two(out, 2 * half, x, start + 2 * half, weight, block)
        for row in range(rows - rows % 2, rows):
            add_one(out, row, x, start + row, weight, block)


@njit
def add_one(out: Any, row: int, x: Any, a: int, weight: Any, block: int) -> None:
    """Add one row's product with a block: eight rows of W in one pass over the sums."""
    _, inner, columns = weight.shape
    for eighth in range(inner // 8):
        k = 8 * eighth
        x0, x1, x2, x3 = x[a, k], x[a, k + 1], x[a, k + 2], x[a, k + 3]
        x4, x5, x6, x7 = x[a, k + 4], x[a, k + 5], x[a, k + 6], x[a, k + 7]
        for j in range(columns):
            out[row, block, j] += (
                x0 * widened(weight[block, k, j])
                + x1 * widened(weight[block, k + 1, j])
                + x2 * widened(weight[block, k + 2, j])
                + x3 * widened(weight[block, k + 3, j])
                + x4 * widened(weight[block, k + 4, j])
                + x5 * widened(weight[block, k + 5, j])
                + x6 * widened(weight[block, k + 6, j])
                + x7 * widened(weight[block, k + 7, j])
            )
    for k in range(inner - inner % 8, inner):
        for j in range(columns):
            out[row, block, j] += x[a, k] * widened(weight[block, k, j])


@njit
def add_two(out: Any, row: int, x: Any, a: int, weight: Any, block: int) -> None:
    """Add two rows' products with a block, in the order of `add_one`: eight rows of W, each loaded once for both."""
    _, inner, columns = weight.shape
    b = a + 1
    for eighth in range(inner // 8):
        k = 8 * eighth
        a0, a1, a2, a3 = x[a, k], x[a, k + 1], x[a, k + 2], x[a, k + 3]
        a4, a5, a6, a7 = x[a, k + 4], x[a, k + 5], x[a, k + 6], x[a, k + 7]
        b0, b1, b2, b3 = x[b, k], x[b, k + 1], x[b, k + 2], x[b, k + 3]
        b4, b5, b6, b7 = x[b, k + 4], x[b, k + 5], x[b, k + 6], x[b, k + 7]
        for j in range(columns):
            w0, w1 = widened(weight[block, k, j]), widened(weight[block, k + 1, j])
            w2, w3 = widened(weight[block, k + 2, j]), widened(weight[block, k + 3, j])
            w4, w5 = widened(weight[block, k + 4, j]), widened(weight[block, k + 5, j])
            w6, w7 = widened(weight[block, k + 6, j]), widened(weight[block, k + 7, j])
            out[row, block, j] += a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3 + a4 * w4 + a5 * w5 + a6 * w6 + a7 * w7
            out[row + 1, block, j] += b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3 + b4 * w4 + b5 * w5 + b6 * w6 + b7 * w7
    for k in range(inner - inner % 8, inner):
        for number in range(2):
            for j in range(columns):
                out[row + number, block, j] += x[a + number, k] * widened(weight[block, k, j])


@njit
def cell(gates: Any, row: int, recurrent: Any, number: int, scales: Any, c: Any, m: Any, cell_clip: Any) -> None:
    """m = o * tanh(c') with c' = clip(f * c + i * g), of one sentence.

    The scales and the bias of the gates i, f and o are halved, so that each of them is 1/2 + 1/2 tanh.
    """
    width = c.shape[1]
    for d in range(width):
        i = HALF + HALF * tanh(gates[row, 0, d] + scales[0, d] * recurrent[number, 0, d])
        f = HALF + HALF * tanh(gates[row, 1, d] + scales[1, d] * recurrent[number, 1, d])
        o = HALF + HALF * tanh(gates[row, 2, d] + scales[2, d] * recurrent[number, 2, d])
        g = tanh(gates[row, 3, d] + scales[3, d] * recurrent[number, 3, d])
        new = clip(f * c[number, d] + i * g, cell_clip)
        c[number, d] = new
        m[number, d] = o * tanh(new)


@njit
def scale(out: Any, row: int, values: Any, number: int, scales: Any, bound: Any) -> None:
    """out[row] = clip(values[number] * scales)."""
    for p in range(out.shape[1]):
        out[row, p] = clip(values[number, p] * scales[p], bound)


@njit
def clear(values: Any, rows: int) -> None:
    """Zeros in so many rows."""
    for row in range(rows):
        for gate in range(values.shape[1]):
            for d in range(values.shape[2]):
                values[row, gate, d] = ZERO


@njit
def add_bias(gates: Any, rows: int, scales: Any, bias: Any) -> None:
    """gates * scales + bias, in place."""
    for row in range(rows):
        for gate in range(gates.shape[1]):
            for d in range(gates.shape[2]):
                gates[row, gate, d] = gates[row, gate, d] * scales[gate, d] + bias[gate, d]


@njit
def whole_steps(sizes: Any, step: int, most: int) -> Any:
    """Rows of as many whole steps, from this one on, as have at most so many in all."""
    rows = sizes[step]
    for number in range(step + 1, len(sizes)):
        if rows + sizes[number] > most:
            break
        rows += sizes[number]
    return rows


@njit
def run_steps(
    sizes: Any, x: Any, out: Any, h: Any, c: Any, m: Any, gates: Any, by_gate: Any, recurred: Any,
    recurred_by_gate: Any, projected: Any, projected_flat: Any, weight: Any, scales: Any, bias: Any, recurrent: Any,
    recurrent_scales: Any, projection: Any, projection_scales: Any, zero: int, cell_clip: Any, projection_clip: Any,
) -> None:  # fmt: skip
    """All steps of `lstm`: the input's share of the gates a window at a time, then one step after the other."""
    done = ready = first = 0
    for step in range(len(sizes)):
        running, turned = sizes[step], step % 2 == 1
        if done == ready:
            ahead = whole_steps(sizes, step, len(gates))
            products(gates, x, done, ahead, weight, False)
            add_bias(by_gate, ahead, scales, bias)
            first, ready = done, done + ahead
        if step > 0:
            products(recurred, out, done - sizes[step - 1], running, recurrent, turned)
        elif zero == 0:
            products(recurred, h, 0, running, recurrent, turned)
        else:
            clear(recurred_by_gate, running)
        for number in range(running):
            cell(by_gate, done - first + number, recurred_by_gate, number, recurrent_scales, c, m, cell_clip)
        if len(projection):
            products(projected, m, 0, running, projection, turned)
            for number in range(running):
                scale(out, done + number, projected_flat, number, projection_scales, projection_clip)
        else:
            for number in range(running):
                scale(out, done + number, m, number, projection_scales, projection_clip)
        done += running


def lstm(
    numbers_at: Any, sizes_at: Any, x_at: Any, weight_at: Any, scales_at: Any, recurrent_at: Any,
    recurrent_scales_at: Any, bias_at: Any, projection_at: Any, projection_scales_at: Any, h_at: Any, c_at: Any,
    gates_at: Any, recurred_at: Any, m_at: Any, projected_at: Any, out_at: Any, cell_clip: Any, projection_clip: Any,
) -> None:  # fmt: skip
    """An LSTM over packed sentences; h, (B, P), is what recurs at first, unless it starts from zero.

    c, (B, D), becomes each sentence's last. Scratch arrays are read as blocks of columns, and as the four gates.
    """
    numbers = carray(numbers_at, 11)
    steps, rows, batch, inner, width = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    outer, window, zero = numbers[5], numbers[6], numbers[7]
    columns, projection_blocks, projection_columns = numbers[8], numbers[9], numbers[10]
    blocks = 4 * width // columns
    run_steps(
        carray(sizes_at, steps),
        carray(x_at, (rows, inner)),
        carray(out_at, (rows, outer)),
        carray(h_at, (batch, outer)),
        carray(c_at, (batch, width)),
        carray(m_at, (batch, width)),
        carray(gates_at, (window, blocks, columns)),
        carray(gates_at, (window, 4, width)),
        carray(recurred_at, (batch, blocks, columns)),
        carray(recurred_at, (batch, 4, width)),
        carray(projected_at, (batch, projection_blocks, projection_columns)),
        carray(projected_at, (batch, outer)),
        carray(weight_at, (blocks, inner, columns)),
        carray(scales_at, (4, width)),
        carray(bias_at, (4, width)),
        carray(recurrent_at, (blocks, outer, columns)),
        carray(recurrent_scales_at, (4, width)),
        carray(projection_at, (projection_blocks, width, projection_columns)),
        carray(projection_scales_at, outer),
        zero,
        cell_clip,
        projection_clip,
    )


def _compiled(weight: Any) -> Any:
    floats, weights, numbers = types.CPointer(types.float32), types.CPointer(weight), types.CPointer(types.int64)
    matrices = (weights, floats)
    arguments = (numbers, numbers, floats, *matrices, *matrices, floats, *matrices, *[floats] * 7)
    signature = types.void(*arguments, types.float32, types.float32)
    return numba.cfunc(signature, fastmath=FASTMATH, error_model="numpy")(lstm)


KERNELS: dict[str, Callable[[], Any]] = {
    "lstm_fp32": lambda: _compiled(types.float32),
    "lstm_fp16": lambda: _compiled(types.uint16),
    "lstm_int8": lambda: _compiled(types.int8),
}
