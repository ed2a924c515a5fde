"""Independent pieces of work, one core each."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import zip_longest
from threading import Barrier, local
from typing import TypeVar

import torch

T = TypeVar("T")
_own = local()  # of a thread of the pool: the pool
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h


def side_by_side(jobs: Iterable[Callable[[], T]], *, gradients: bool = False) -> list[T]:
    """The jobs' results, computed on as many threads as torch has been given, with or without gradients.

    Torch itself has all threads work at each operation: they wait for each other thousands of times a second, and go on
    waiting for a while after the last, so that even a single job has a thread of its own.
    """
    run, threads = partial(_run, gradients=gradients), torch.get_num_threads()
    return [run(job) for job in jobs] if threads == 1 else list(_pool(threads, os.getpid()).map(run, jobs))


def beside(jobs: Iterable[Callable[[], T]]) -> list[T]:
    """The results of short jobs, the first done here; what no other thread has begun by then is done here too."""
    first, *others = jobs
    threads = torch.get_num_threads()
    pool = _pool(threads, os.getpid()) if threads > 1 else getattr(_own, "pool", None)
    begun = [pool.submit(_run, job) for job in others] if pool else []
    results = [_run(first)]
    for job, future in zip_longest(others, begun):
        results.append(_run(job) if future is None or future.cancel() else future.result())
    return results


def _run(job: Callable[[], T], *, gradients: bool = False) -> T:
    with torch.inference_mode(not gradients):
        return job()


@lru_cache(maxsize=1)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001  (threads do not survive a fork)
    """So many threads, one core each; torch gives the number that was set last to every thread that begins later."""
    all_there = Barrier(threads)

    def take_one_core() -> None:
        torch.set_num_threads(1)
        torch.get_num_threads()  # at its first question a thread takes the number that was set last, by whomever
        _own.pool = pool

    pool = ThreadPoolExecutor(threads, "elmokit", initializer=take_one_core)
    list(pool.map(lambda _: all_there.wait(), range(threads)))
    torch.set_num_threads(threads)
    return pool


def keep_freed_memory() -> None:
    """Have the C library keep large freed blocks: else every step of training asks the system for fresh pages."""
    _set_malloc({M_MMAP_THRESHOLD: 1 << 25, M_TRIM_THRESHOLD: (1 << 31) - 1})


def share_freed_memory() -> None:
    """Have all threads take from two heaps: with one each, what one has freed is of no use to the others."""
    _set_malloc({M_ARENA_MAX: 2})


def _set_malloc(options: Mapping[int, int]) -> None:
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        for option, value in options.items():
            mallopt(option, value)
