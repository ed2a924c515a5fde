"""The inner loops of counting and of GloVe: plain functions that numba compiles when they are first needed.

They let go of the interpreter's lock, so that threads run them side by side.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import MissingExtraError

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
# A sum of products may be added up in any order: that is what lets the compiler use wide registers.
REORDERED = {"reassoc", "contract", "nsz"}


@cache
def compiled(kernel: Callable[..., Any]) -> Any:
    """The kernel in machine code; compiled anew in every process, for a cache on disk needs a folder to be trusted."""
    try:
        import numba
    except ImportError:
        raise MissingExtraError("GloVe needs numba", "static") from None
    return numba.njit(kernel, nogil=True, fastmath=REORDERED, error_model="numpy")


def run_together(jobs: Sequence[Iterable[int]], report: Callable[[int], None] | None) -> None:
    """Go through all jobs at once, a thread each; a job says after each step how far it is, and the sum is reported.

    An error in one, or Ctrl-C, stops the others after their step.
    """
    stop, done = Event(), [0] * len(jobs)

    def run(number: int) -> None:
        for steps in jobs[number]:
            done[number] = steps
            if stop.is_set():
                return
            if report:
                report(sum(done))

    with ThreadPoolExecutor(len(jobs)) as pool:
        try:
            list(pool.map(run, range(len(jobs))))
        except BaseException:
            stop.set()
            raise


def count_pairs(
    ids: NDArray[np.int32],
    begin: int,
    end: int,
    symmetric: bool,
    weights: Ints,
    rows: Ints,
    columns: Ints,
    table: Ints,
    buffer: Ints,
) -> tuple[int, int]:
    """Count the words from begin to end with those up to a window before them, in units of weights[distance].

    A pair (i, j), or (j, i) if that is the smaller and order does not matter, with j < columns[i] is added to
    table[rows[i] + j]; any other is put into the buffer as ((i * V + j) * window + distance − 1). Gives the first word
    not counted because the buffer is nearly full, or end, and how much of the buffer is used.
    """
    window, words = len(weights) - 1, len(columns)
    used = 0
    for index in range(begin, end):
        if used + window > len(buffer):
            return index, used
        second = np.int64(ids[index])
        if second < 0:
            continue
        for distance in range(1, window + 1):
            if index < distance:
                break
            first = np.int64(ids[index - distance])
            if first < 0:
                break
            i, j = (second, first) if symmetric and second < first else (first, second)
            if j < columns[i]:
                table[rows[i] + j] += weights[distance]
            else:
                buffer[used] = (i * words + j) * window + distance - 1
                used += 1
    return end, used


def sum_sorted(buffer: Ints, weights: Ints, sums: Ints) -> int:
    """Add up the weights of equal pairs of a sorted buffer; gives their number, with pairs and sums at the front."""
    window = len(weights) - 1
    last = -1
    for item in buffer:
        pair, distance = item // window, item % window + 1
        if last < 0 or buffer[last] != pair:
            last += 1
            buffer[last] = pair
            sums[last] = 0
        sums[last] += weights[distance]
    return last + 1


def adagrad(records: NDArray[Any], state: Floats, both: bool, x_max: float, alpha: float, rate: float) -> float:
    """A step for each record, two if it stands for both orders; the sum of f(x) · difference² / 2 as it was met.

    state (2, V, 2, D + 1) holds v and u with their biases last, and for each number the sum of its squared gradients.
    """
    width = state.shape[3] - 1
    total = 0.0
    for record in records:
        x = record["count"]
        log = np.float32(math.log(x))
        share = np.float32(1.0 if x >= x_max else (x / x_max) ** alpha)
        i, j = record["row"], record["column"]
        for _ in range(2 if both and i != j else 1):
            v, u = state[0, i, 0], state[1, j, 0]
            v_squares, u_squares = state[0, i, 1], state[1, j, 1]
            difference = v[width] + u[width] - log
            for d in range(width):
                difference += v[d] * u[d]
            step = share * difference
            total += 0.5 * step * difference
            step *= np.float32(rate)
            for d in range(width):
                to_v, to_u = step * u[d], step * v[d]
                v[d] -= to_v / math.sqrt(v_squares[d])
                u[d] -= to_u / math.sqrt(u_squares[d])
                v_squares[d] += to_v * to_v
                u_squares[d] += to_u * to_u
            v[width] -= step / math.sqrt(v_squares[width])
            u[width] -= step / math.sqrt(u_squares[width])
            v_squares[width] += step * step
            u_squares[width] += step * step
            i, j = j, i
    return total


def weighted_squares(records: NDArray[Any], state: Floats, both: bool, x_max: float, alpha: float) -> float:
    """The sum of f(x) · difference² over the records, for weights that stay as they are."""
    width = state.shape[3] - 1
    total = 0.0
    for record in records:
        x = record["count"]
        log = math.log(x)
        share = 1.0 if x >= x_max else (x / x_max) ** alpha
        i, j = record["row"], record["column"]
        for _ in range(2 if both and i != j else 1):
            v, u = state[0, i, 0], state[1, j, 0]
            product = np.float32(0)
            for d in range(width):
                product += v[d] * u[d]
            difference = product + v[width] + u[width] - log
            total += share * difference * difference
            i, j = j, i
    return total
