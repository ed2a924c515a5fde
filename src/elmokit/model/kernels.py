"""The inner loops of a training step that torch runs in many passes, each in one: compiled by numba.

Arrays that matrix products read and write hold float32, or bfloat16 as its bits in uint16: `_load` and `_store` tell
them apart. The machine code is kept beside this file, or in the user's cache folder. No kernel holds the interpreter's
lock.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic, overload

Array = Any
# Sums may be added up in any order, which lets the compiler use wide registers; infinities and NaN stay what they are.
OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "arcp", "nsz", "afn"}, "error_model": "numpy"}


def _inlined(function: Callable[..., Any]) -> Any:
    return numba.njit(function, inline="always", **OPTIONS)


def _compiled(kernel: Callable[..., Any]) -> Any:
    try:
        return numba.njit(kernel, nogil=True, cache=True, **OPTIONS)
    except RuntimeError:  # nowhere to write: compiled anew in every process
        return numba.njit(kernel, nogil=True, **OPTIONS)


def _bitcast(before: Any, after: Any, kind: Any) -> Any:
    """The same bits taken for a number of another type."""

    def typed(typing: Any, bits: Any) -> Any:  # noqa: ARG001
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            return builder.bitcast(args[0], kind)

        return after(before), build

    return intrinsic(typed)


_as_float = _bitcast(numba.types.uint32, numba.types.float32, ir.FloatType())
_as_bits = _bitcast(numba.types.float32, numba.types.uint32, ir.IntType(32))


def _load(number: Any) -> Any:
    """A number as float32."""


@overload(_load, inline="always")
def _load_either(number: Any) -> Any:
    def widen(number: Any) -> Any:
        return _as_float(np.uint32(number) << np.uint32(16))

    def take(number: Any) -> Any:
        return number

    return widen if number == numba.types.uint16 else take


def _store(array: Any, index: Any, number: Any) -> Any:
    """Write a float32 into an array of either kind."""


@overload(_store, inline="always")
def _store_either(array: Any, index: Any, number: Any) -> Any:  # noqa: ARG001
    def narrow(array: Any, index: Any, number: Any) -> Any:
        bits = _as_bits(np.float32(number))  # rounded to the nearest, ties to even
        bits = np.uint32(bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
        array[index] = np.uint16(bits >> np.uint32(16))

    def keep(array: Any, index: Any, number: Any) -> Any:
        array[index] = number

    return narrow if array.dtype == numba.types.uint16 else keep


@_inlined
def _tanh(x: Any) -> Any:
    """Eigen's quotient of polynomials, right to some 1e-7; it vectorises, libm's does not."""
    one = np.float32
    x = min(max(x, one(-9)), one(9))
    x2 = x * x
    p = x2 * one(-2.76076847742355e-16) + one(2.00018790482477e-13)
    p = x2 * p + one(-8.60467152213735e-11)
    p = x2 * p + one(5.12229709037114e-08)
    p = x2 * p + one(1.48572235717979e-05)
    p = x2 * p + one(6.37261928875436e-04)
    p = x2 * p + one(4.89352455891786e-03)
    q = x2 * one(1.19825839466702e-06) + one(1.18534705686654e-04)
    q = x2 * q + one(2.26843463243900e-03)
    q = x2 * q + one(4.89352518554385e-03)
    return x * p / q


@_inlined
def _sigmoid(x: Any) -> Any:
    half = np.float32(0.5)
    return half * _tanh(half * x) + half


@_inlined
def _exp(x: Any) -> Any:
    """exp of what is not above 0: a polynomial of x / 32, squared five times."""
    one = np.float32
    t = max(x, one(-60)) * one(1 / 32)
    e = t * one(1 / 720) + one(1 / 120)
    e = t * e + one(1 / 24)
    e = t * e + one(1 / 6)
    e = t * e + one(0.5)
    e = t * e + one(1)
    e = t * e + one(1)
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    return e * e


@_inlined
def _rank(x: Any) -> Any:
    """An integer that rises with the number: a maximum of integers is vectorised, one of floats is not."""
    bits = np.int32(_as_bits(np.float32(x)))
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@_inlined
def _ranked(rank: Any) -> Any:
    """The number of that rank."""
    return _as_float(np.uint32(np.int32(rank ^ ((rank >> np.int32(31)) & np.int32(0x7FFFFFFF)))))


@_compiled
def lstm_forward(
    sums: Array, bias: Array, before: Array, keep: Array, clip: float, gates: Array, cells: Array, tanh: Array, m: Array
) -> None:
    """One step: sums (B, 4D) and a bias become activated gates; cells, their tanh and m, (B, D), are written."""
    B, D = cells.shape
    bound = np.float32(clip)
    for b in range(B):
        kept = keep[b]
        s_i, s_f, s_o, s_g = sums[b, :D], sums[b, D : 2 * D], sums[b, 2 * D : 3 * D], sums[b, 3 * D :]
        b_i, b_f, b_o, b_g = bias[:D], bias[D : 2 * D], bias[2 * D : 3 * D], bias[3 * D :]
        i, f, o, g = gates[b, :D], gates[b, D : 2 * D], gates[b, 2 * D : 3 * D], gates[b, 3 * D :]
        c_before, c_now, t_now, m_now = before[b], cells[b], tanh[b], m[b]
        for d in range(D):
            a_i, a_f = _sigmoid(_load(s_i[d]) + b_i[d]), _sigmoid(_load(s_f[d]) + b_f[d]) * kept
            a_o, a_g = _sigmoid(_load(s_o[d]) + b_o[d]), _tanh(_load(s_g[d]) + b_g[d])
            c = a_f * c_before[d] + a_i * a_g
            c = min(max(c, -bound), bound)
            t = _tanh(c)
            i[d], f[d], o[d], g[d] = a_i, a_f, a_o, a_g
            c_now[d], t_now[d] = c, t
            _store(m_now, d, a_o * t)


@_compiled
def lstm_backward(d_m: Array, d_c: Array, gates: Array, tanh: Array, before: Array, clip: float, d_sums: Array) -> None:
    """One step back: from the gradients of m and of c, which becomes that of the step before, to that of the sums."""
    B, D = tanh.shape
    bound, one, none = np.float32(clip), np.float32(1), np.float32(0)
    for b in range(B):
        i, f, o, g = gates[b, :D], gates[b, D : 2 * D], gates[b, 2 * D : 3 * D], gates[b, 3 * D :]
        d_i, d_f, d_o, d_g = d_sums[b, :D], d_sums[b, D : 2 * D], d_sums[b, 2 * D : 3 * D], d_sums[b, 3 * D :]
        c_before, t_now, dm, dc = before[b], tanh[b], d_m[b], d_c[b]
        for d in range(D):
            t, a_m = t_now[d], _load(dm[d])
            k = dc[d] + a_m * o[d] * (one - t * t)
            raw = f[d] * c_before[d] + i[d] * g[d]
            k = k if abs(raw) <= bound else none  # beyond its bound a clip passes nothing on
            _store(d_o, d, a_m * t * o[d] * (one - o[d]))
            _store(d_i, d, k * g[d] * i[d] * (one - i[d]))
            _store(d_f, d, k * c_before[d] * f[d] * (one - f[d]))
            _store(d_g, d, k * i[d] * (one - g[d] * g[d]))
            dc[d] = k * f[d]


@_compiled
def softmax_gradient(logits: Array, bias: Array, columns: Array, d_bias: Array, row: Array) -> float:
    """Turn logits (N, V), still without bias, into softmax minus target, add its sum to d_bias; the cross entropy.

    `row`, (V,), is room to work in.
    """
    N, V = logits.shape
    loss = 0.0
    for n in range(N):
        given, target = logits[n], columns[n]
        highest = np.int32(-(2**31))
        for v in range(V):
            x = _load(given[v]) + bias[v]
            row[v] = x
            highest = max(highest, _rank(x))
        top, own = _ranked(highest), row[target]
        total = np.float32(0)
        for v in range(V):
            e = _exp(row[v] - top)
            row[v] = e
            total += e
        loss += np.log(total) + top - own
        scale = np.float32(1) / total
        for v in range(V):
            p = row[v] * scale
            _store(given, v, p)
            d_bias[v] += p
        _store(given, target, row[target] * scale - np.float32(1))
        d_bias[target] -= np.float32(1)
    return loss


@_compiled
def maxima(sums: Array, found: Array, windows: Array) -> None:
    """Each column's maximum over the windows of a word, and which window it is: (N, W, F) → (N, F) twice."""
    N, W, F = sums.shape
    for n in range(N):
        best, window = found[n], windows[n]
        first = sums[n, 0]
        for f in range(F):
            best[f] = first[f]
            window[f] = 0
        for w in range(1, W):
            row = sums[n, w]
            for f in range(F):
                higher = row[f] > best[f]
                best[f] = row[f] if higher else best[f]
                window[f] = np.int32(w) if higher else window[f]


@_compiled
def maxima_backward(x: Array, weight: Array, d_found: Array, windows: Array, d_x: Array, d_weight: Array) -> None:
    """Gradients of characters' vectors, (N, C * E), and filters, (F, width * E), through the chosen windows alone."""
    N, F = d_found.shape
    K = weight.shape[1]
    E = x.shape[2]
    for n in range(N):
        letters, d_letters = x[n].reshape(-1), d_x[n].reshape(-1)
        for f in range(F):
            d = d_found[n, f]
            if d == 0:
                continue
            start = windows[n, f] * E
            window, d_window = letters[start : start + K], d_letters[start : start + K]
            row, d_row = weight[f], d_weight[f]
            for k in range(K):
                d_row[k] += d * window[k]
                d_window[k] += d * row[k]
