"""Independent pieces of work, one core each."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from threading import Barrier, local
from typing import TypeVar
from weakref import ref

import torch

T = TypeVar("T")
_own = local()
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h


def side_by_side(jobs: Iterable[Callable[[], T]], *, gradients: bool = False) -> list[T]:
    """The jobs' results, computed on as many threads as torch has been given, with or without gradients.

    Torch itself has all threads work at each operation: they wait for each other thousands of times a second, and go
    on waiting for a while after the last, so even a single job is better off on a thread with a core of its own. A job
    may divide itself in the same way: its first part is done where it is, and what no other thread has begun then too.
    """
    run, pool, waiting = partial(_run, gradients=gradients), _own_pool(), list(jobs)
    if pool is None:
        threads = torch.get_num_threads()
        return [run(job) for job in waiting] if threads == 1 else list(_pool(threads, os.getpid()).map(run, waiting))
    begun = [pool.submit(run, job) for job in waiting[1:]]
    results = [run(job) for job in waiting[:1]]
    for job, future in zip(waiting[1:], begun, strict=True):
        results.append(run(job) if future.cancel() else future.result())
    return results


def _run(job: Callable[[], T], *, gradients: bool = False) -> T:
    with torch.inference_mode(not gradients):
        return job()


def _own_pool() -> ThreadPoolExecutor | None:
    """That of this thread, if it is one of a pool's."""
    found = getattr(_own, "pool", None)
    return found() if found else None


@lru_cache(maxsize=1)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001  (threads do not survive a fork)
    """So many threads, one core each; torch gives the number that was set last to every thread that begins later."""
    all_there = Barrier(threads)

    def take_one_core() -> None:
        torch.set_num_threads(1)
        torch.get_num_threads()  # at its first question a thread takes the number that was set last, by whomever
        _own.pool = ref(pool)  # which ends its threads when nothing else refers to it

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
