"""Text to sentences of numbered words, in as many processes as are asked for."""

import os
import signal
from array import array
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ElmoError
from elmokit.pretrain.lexicon import BOS_ID, EOS_ID, UNK_ID
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import get_tokenizer
from elmokit.text.vocabulary import BOS, EOS, UNK

LONGEST_WORD = 256  # characters; no model reads as many of a word
LONGEST_SENTENCE = 10_000  # words; for text without any full stop
TASKS_A_WORKER = 4


class Task(NamedTuple):
    """A piece of text to cut, and what has to be known of it afterwards."""

    text: str
    part: int
    position: int


class Cut(NamedTuple):
    """Sentences end to end, each <S> word… </S>."""

    words: list[str]
    """The distinct words, in the order in which they come."""
    ids: NDArray[np.int32]
    """<S> is 0, </S> 1, <UNK> 2 and words[i] is i + 3."""


class Cutter:
    """Cuts text into sentences and words; each line is a paragraph, or a sentence if it is not to be split."""

    def __init__(self, tokenizer: str, *, split: bool) -> None:
        self.tokenize = get_tokenizer(tokenizer)
        self.split = split

    def cut(self, text: str) -> Cut:
        """The sentences of a text that have any words."""
        # The bounds' own names are no words: in a text they would end its sentence.
        known = {BOS: UNK_ID, EOS: UNK_ID, UNK: UNK_ID}
        ids = array("i")
        for sentence in self._sentences(text):
            words = [token.text for token in self.tokenize(sentence)]
            for start in range(0, len(words), LONGEST_SENTENCE):
                ids.append(BOS_ID)
                ids.extend([known.setdefault(word, len(known)) for word in words[start : start + LONGEST_SENTENCE]])
                ids.append(EOS_ID)
        return Cut([word[:LONGEST_WORD] for word in known][3:], np.array(ids, dtype=np.int32))

    def _sentences(self, text: str) -> Iterator[str]:
        for line in text.split("\n"):
            if not self.split:
                yield line
                continue
            for start, end in split_sentences(line):
                yield line[start:end]


def cut_in_order(tasks: Iterable[Task], cutter: Cutter, *, workers: int) -> Generator[tuple[Task, Cut]]:
    """Each task with its result, in order and with few of them waiting; one worker is this process itself."""
    if workers > 1:
        yield from _cut_in_processes(tasks, cutter, workers)
        return
    for task in tasks:
        yield task, cutter.cut(task.text)


def _cut_in_processes(tasks: Iterable[Task], cutter: Cutter, workers: int) -> Generator[tuple[Task, Cut]]:
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (cutter,))
    waiting: deque[tuple[Task, Future[Cut]]] = deque()
    try:
        for task in tasks:
            with _without_interrupts():
                waiting.append((task, pool.submit(_cut, task.text)))
            if len(waiting) > TASKS_A_WORKER * workers:
                yield _oldest(waiting)
        while waiting:
            yield _oldest(waiting)
    except BrokenProcessPool:
        raise ElmoError(
            "a process that cuts text has died: try fewer workers if memory ran out; "
            'a script of your own needs `if __name__ == "__main__":` around the call'
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _oldest(waiting: deque[tuple[Task, Future[Cut]]]) -> tuple[Task, Cut]:
    task, future = waiting.popleft()
    return task, future.result()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes started here do not hear Ctrl-C: this one does, after it, and ends them in good order."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_cutter: Cutter


def _start_worker(cutter: Cutter) -> None:
    global _cutter
    _cutter = cutter
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _cut(text: str) -> Cut:
    return _cutter.cut(text)
