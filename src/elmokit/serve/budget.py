"""What requests share: memory, and threads for what cannot be batched. Both are refused rather than exceeded."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from elmokit.errors import OverloadError
from elmokit.serve.refusals import RefusedError

T = TypeVar("T")
MEGABYTE = 1 << 20


class Memory:
    """So many bytes for all requests under way and their answers."""

    def __init__(self, megabytes: int) -> None:
        self.most, self.used = megabytes * MEGABYTE, 0

    @contextmanager
    def share(self) -> Iterator["Share"]:
        """What one request takes, until it has been answered."""
        share = Share(self)
        try:
            yield share
        finally:
            self.used -= share.held


class Share:
    """The bytes that one request holds."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.held = memory, 0

    def take(self, size: int) -> None:
        """Hold so many more bytes."""
        most = self.memory.most
        if self.held + size > most:
            needs = f"this request and its answer would take {(self.held + size) / MEGABYTE:,.0f} MB"
            raise RefusedError(
                413, f"{needs}, the limit is {most // MEGABYTE:,} MB: ask for less at once, or for base64"
            )
        if self.memory.used + size > most:
            raise RefusedError(429, f"the limit of {most // MEGABYTE:,} MB for all requests is reached: try again")
        self.memory.used += size
        self.held += size


class Workers:
    """A few threads for what is computed one question at a time, and a bounded queue before them."""

    def __init__(self, *, threads: int, most: int) -> None:
        self.most, self.count = most, 0
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(threads, "elmokit studies")

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """The function's result; one that has begun goes on even if nobody waits for it any more."""
        with self._lock:
            if self.count >= self.most:
                raise OverloadError(f"{self.count} questions are answered or wait already, of {self.most}: try again")
            self.count += 1
        try:
            future = self._pool.submit(function, *arguments)
        except RuntimeError:
            self.count -= 1
            raise RefusedError(503, "the server is ending") from None
        future.add_done_callback(self._done)
        return await asyncio.wrap_future(future)

    def _done(self, _: Future[Any]) -> None:
        with self._lock:
            self.count -= 1

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        self._pool.shutdown(cancel_futures=True)
