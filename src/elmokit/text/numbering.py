"""Text to sentences of numbered words, in as many processes as are asked for."""

import os
import signal
from array import array
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ElmoError
from elmokit.text.corpus import LONGEST_SENTENCE, iter_sentences
from elmokit.text.tokenizers import Tokenizer, get_tokenizer
from elmokit.text.vocabulary import BOS, EOS, UNK
from elmokit.text.word_counts import BOS_ID, EOS_ID, UNK_ID

LONGEST_WORD = 256  # characters; no model reads as many of a word
PIECES_A_WORKER = 4
BYTES_A_WORKER = 1_000_000  # a process takes a third of a second to start


class Piece(NamedTuple):
    """A piece of text, and what has to be known of it afterwards."""

    text: str
    part: int
    position: int


class NumberedText(NamedTuple):
    """Sentences end to end, each <S> word… </S>."""

    words: list[str]
    """The distinct words, in the order in which they come."""
    ids: NDArray[np.int32]
    """<S> is 0, </S> 1, <UNK> 2 and words[i] is i + 3."""


@dataclass(frozen=True)
class Numberer:
    """Splits text, one paragraph per line, into sentences, or takes its lines as they are, and numbers their words."""

    tokenizer: str
    split: bool = True

    def __call__(self, text: str) -> NumberedText:
        # The bounds' own names are no words: in a text they would end its sentence.
        known = {BOS: UNK_ID, EOS: UNK_ID, UNK: UNK_ID}
        ids = array("i")
        tokenize: Tokenizer = get_tokenizer(self.tokenizer)
        for sentence in iter_sentences(text, split=self.split):
            words = [token.text for token in tokenize(sentence)]
            for start in range(0, len(words), LONGEST_SENTENCE):
                ids.append(BOS_ID)
                ids.extend([known.setdefault(word, len(known)) for word in words[start : start + LONGEST_SENTENCE]])
                ids.append(EOS_ID)
        return NumberedText([word[:LONGEST_WORD] for word in known][3:], np.array(ids, dtype=np.int32))


def number_pieces(
    pieces: Iterable[Piece], numberer: Numberer, *, workers: int | None, size: int
) -> Generator[tuple[Piece, NumberedText]]:
    """Each piece with its numbers, in order and with few of them waiting; one worker is this process itself.

    There are as many workers as cores unless their number is given, but fewer if the size of all text, in bytes, is
    small.
    """
    get_tokenizer(numberer.tokenizer)  # an unknown one is refused here, not in every process
    workers = min(workers or _cores(), 1 + size // BYTES_A_WORKER)
    if workers > 1:
        yield from _number_in_processes(pieces, numberer, workers)
        return
    for piece in pieces:
        yield piece, numberer(piece.text)


def _number_in_processes(
    pieces: Iterable[Piece], numberer: Numberer, workers: int
) -> Generator[tuple[Piece, NumberedText]]:
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (numberer,))
    waiting: deque[tuple[Piece, Future[NumberedText]]] = deque()
    try:
        for piece in pieces:
            with _without_interrupts():
                waiting.append((piece, pool.submit(_number, piece.text)))
            if len(waiting) > PIECES_A_WORKER * workers:
                yield _oldest(waiting)
        while waiting:
            yield _oldest(waiting)
    except BrokenProcessPool:
        raise ElmoError(
            "a process that tokenizes text has died: try fewer workers if memory ran out; "
            'a script of your own needs `if __name__ == "__main__":` around the call'
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _oldest(waiting: deque[tuple[Piece, Future[NumberedText]]]) -> tuple[Piece, NumberedText]:
    piece, future = waiting.popleft()
    return piece, future.result()


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


_numberer: Numberer


def _start_worker(numberer: Numberer) -> None:
    global _numberer
    _numberer = numberer
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _number(text: str) -> NumberedText:
    return _numberer(text)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
