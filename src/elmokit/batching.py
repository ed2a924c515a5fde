"""Many callers, one batch: calls of threads and coroutines that come within a few milliseconds are embedded together.

A sentence in a batch takes a fraction of what it takes alone, so a server answers more callers in less time.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from types import TracebackType

from elmokit.config import check_above_zero, check_at_least
from elmokit.elmo import Elmo
from elmokit.embedder import Layers, Sentence, Vectors
from elmokit.errors import DeadlineError, OverloadError

Answer = Future[list[Vectors]]


@dataclass(eq=False)
class Request:
    """One call that waits."""

    sentences: list[list[str]]
    layers: Layers
    deadline: float
    arrived: float = field(default_factory=time.monotonic)
    answer: Answer = field(default_factory=Future)

    @property
    def tokens(self) -> int:
        return sum(map(len, self.sentences)) + 2 * len(self.sentences)  # with their bounds


class Batcher:
    """Answers `embed` calls from any number of threads and coroutines, a batch at a time, until it is closed.

    A batch begins when its oldest call has waited for `window` seconds or `batch_tokens` have come together, at once if
    that was while another ran. More than `queue_tokens` do not wait: the call is refused with an OverloadError.
    `observe` is called with the sentences and the tokens of each batch before it runs.
    """

    def __init__(
        self,
        elmo: Elmo,
        *,
        window: float = 0.003,
        batch_tokens: int = 4096,
        queue_tokens: int = 262_144,
        observe: Callable[[int, int], None] | None = None,
    ) -> None:
        self.observe = observe
        self.elmo, self.window, self.batch_tokens, self.queue_tokens = elmo, window, batch_tokens, queue_tokens
        check_at_least(self, 0, "window")
        check_above_zero(self, "batch_tokens", "queue_tokens")
        self._waiting: deque[Request] = deque()
        self._tokens = 0  # of all that wait
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._work, name="elmokit batches", daemon=True)
        self._thread.start()

    def submit(
        self, sentences: Iterable[Sentence], *, layers: Layers = "average", timeout: float | None = None
    ) -> Answer:
        """The answer to come; its `cancel` takes the call back as long as its batch has not begun.

        A mistake in the sentences is raised here. Past its `timeout`, in seconds, a call is not begun any more: its
        answer is a DeadlineError.
        """
        self.elmo.embed([], layers=layers)  # refuses layers that there are not
        now = time.monotonic()
        request = Request(self.elmo.tokenize(sentences), layers, now + timeout if timeout is not None else float("inf"))
        with self._changed:
            if self._closed:
                raise OverloadError("the batcher is closed")
            if self._tokens + request.tokens > self.queue_tokens and self._waiting:
                raise OverloadError(f"{self._tokens:,} tokens wait already, of {self.queue_tokens:,}: try again later")
            self._waiting.append(request)
            self._tokens += request.tokens
            self._changed.notify()
        return request.answer

    def embed(
        self, sentences: Iterable[Sentence], *, layers: Layers = "average", timeout: float | None = None
    ) -> list[Vectors]:
        """What `Elmo.embed` gives, for a thread."""
        return self.submit(sentences, layers=layers, timeout=timeout).result()

    async def embed_async(
        self, sentences: Iterable[Sentence], *, layers: Layers = "average", timeout: float | None = None
    ) -> list[Vectors]:
        """What `Elmo.embed` gives, for a coroutine; if it is cancelled, so is the call."""
        return await asyncio.wrap_future(self.submit(sentences, layers=layers, timeout=timeout))

    @property
    def waiting_tokens(self) -> int:
        """Tokens of the calls that wait, with their bounds."""
        return self._tokens

    def close(self) -> None:
        """Take no more calls, answer those that wait, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def __enter__(self) -> "Batcher":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self) -> None:
        while batch := self._next_batch():
            now = time.monotonic()
            begun = [request for request in batch if request.answer.set_running_or_notify_cancel()]
            for request in begun:
                if request.deadline < now:
                    waited = 1000 * (now - request.arrived)
                    request.answer.set_exception(DeadlineError(f"the deadline passed: waited for {waited:.0f} ms"))
            in_time = [request for request in begun if request.deadline >= now]
            if self.observe and in_time:
                self.observe(sum(len(one.sentences) for one in in_time), sum(one.tokens for one in in_time))
            self._answer(in_time)

    def _next_batch(self) -> list[Request]:
        """The calls that have waited longest, as many as fit; none when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if not self._waiting:
                return []
            left = self._waiting[0].arrived + self.window - time.monotonic()
            self._changed.wait_for(lambda: self._tokens >= self.batch_tokens or self._closed, timeout=max(0.0, left))
            batch: list[Request] = []
            tokens = 0
            while self._waiting and (not batch or tokens + self._waiting[0].tokens <= self.batch_tokens):
                batch.append(self._waiting.popleft())
                tokens += batch[-1].tokens
            self._tokens -= tokens
            return batch

    def _answer(self, batch: list[Request]) -> None:
        """Embed calls that ask for the same layers together, and give each its own part."""
        for layers in dict.fromkeys(request.layers for request in batch):
            alike = [request for request in batch if request.layers == layers]
            try:
                vectors = iter(self.elmo.embed([each for one in alike for each in one.sentences], layers=layers))
            except Exception as error:  # noqa: BLE001  (each caller hears of it)
                for request in alike:
                    request.answer.set_exception(error)
            else:
                for request in alike:
                    request.answer.set_result([next(vectors) for _ in request.sentences])
