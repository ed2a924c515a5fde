"""Words to numbers: text is tokenized in as many processes as are asked for, and its words counted and ranked."""

import os
import signal
from array import array
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmokit.config import Tokenization
from elmokit.errors import DataError, ElmoError
from elmokit.files import parsing, replacing, writing
from elmokit.shards import Shard
from elmokit.text.corpus import LONGEST_SENTENCE, iter_sentences
from elmokit.text.languages import AUTO
from elmokit.text.tokenizers import Tokenizer, get_tokenizer
from elmokit.text.vocabulary import BOS, EOS, UNK

TRAIN, VALID = 0, 1
BOS_ID, EOS_ID, UNK_ID = SPECIAL_IDS = (0, 1, 2)
LONGEST_WORD = 256  # characters; no model reads as many of a word
PIECES_PER_WORKER = 4
SAMPLE = 10_000  # characters
BYTES_PER_WORKER = 1_000_000  # a process takes a third of a second to start


class Piece(NamedTuple):
    """A piece of text, and what has to be known of it afterwards."""

    text: str
    part: int
    """TRAIN or VALID."""
    position: int
    """Bytes read so far."""


class NumberedText(NamedTuple):
    """Sentences end to end, each <S> word… </S>."""

    words: list[str]
    """The distinct words, in the order in which they come."""
    ids: NDArray[np.int32]
    """<S> is 0, </S> 1, <UNK> 2 and words[i] is i + 3."""


@dataclass(frozen=True)
class Numberer:
    """Splits text, one paragraph per line, into sentences, or takes its lines as they are, and numbers their words."""

    tokenizer: Tokenization
    split: bool = True
    language: str = AUTO

    def __call__(self, text: str) -> NumberedText:
        # The bounds' own names are no words: in a text they would end its sentence.
        known = {BOS: UNK_ID, EOS: UNK_ID, UNK: UNK_ID}
        ids = array("i")
        tokenize: Tokenizer = get_tokenizer(self.tokenizer)
        for sentence in iter_sentences(text, split=self.split, language=self.language):
            words = [token.text for token in tokenize(sentence)]
            for start in range(0, len(words), LONGEST_SENTENCE):
                ids.append(BOS_ID)
                ids.extend([known.setdefault(word, len(known)) for word in words[start : start + LONGEST_SENTENCE]])
                ids.append(EOS_ID)
        return NumberedText([word[:LONGEST_WORD] for word in known][3:], np.array(ids, dtype=np.int32))


class RankedWords(NamedTuple):
    """All words in their final order."""

    words: list[str]
    """The first words as they were given, then the others by falling count in training."""
    counts: NDArray[np.int64]
    """(2, words): in training, held out."""
    ids: NDArray[np.int32]
    """The final id of each number that was handed out; <UNK> for a word that was forgotten."""
    forgotten: int
    """Tokens whose word was forgotten."""


class WordCounter:
    """Hands out numbers for words; beyond `limit` words the rarest are forgotten, so that memory stays bounded."""

    def __init__(self, first: Sequence[str], *, limit: int) -> None:
        self.first, self.limit = len(first), limit
        self._numbers = defaultdict(count(len(first)).__next__, zip(first, range(len(first)), strict=True))
        self._counts = np.zeros((2, max(2 * len(first), 1 << 10)), dtype=np.int64)  # (2, room)

    def add(self, words: Sequence[str], ids: NDArray[np.int32], part: int) -> NDArray[np.int32]:
        """Count ids that stand for <S>, </S>, <UNK>, words[0], words[1]…, and number them for the whole corpus."""
        numbers = np.array([*SPECIAL_IDS, *map(self._numbers.__getitem__, words)], dtype=np.int32)
        size, room = int(numbers.max()) + 1, self._counts.shape[1]
        if size > room:
            self._counts = np.pad(self._counts, ((0, 0), (0, max(size, 2 * room) - room)))
        np.add.at(self._counts[part], numbers, np.bincount(ids, minlength=len(numbers)))
        if len(self._numbers) - self.first > self.limit:
            self._forget()
        return numbers[ids]

    def ranked(self) -> RankedWords:
        """All words in their final order, ties by the word itself."""
        in_training = self._counts[TRAIN]
        entries = list(self._numbers.items())
        later = sorted(entries[self.first :], key=lambda entry: (-in_training[entry[1]], entry[0]))
        kept = [*entries[: self.first], *later]
        numbers = np.array([number for _, number in kept])
        ids = np.full(self._counts.shape[1], UNK_ID, dtype=np.int32)
        ids[numbers] = np.arange(len(kept))
        counts = self._counts[:, numbers]  # (2, words)
        forgotten = self._counts.sum(axis=1) - counts.sum(axis=1)  # (2,)
        counts[:, UNK_ID] += forgotten
        return RankedWords([word for word, _ in kept], counts, ids, int(forgotten.sum()))

    def _forget(self) -> None:
        """Drop the words seen once, then twice and so on, until a quarter of the limit is free."""
        seen = self._counts.sum(axis=0)
        least = 2
        while len(self._numbers) - self.first > self.limit * 3 // 4:
            rare = [word for word, number in self._numbers.items() if number >= self.first and seen[number] < least]
            for word in rare:
                del self._numbers[word]
            least += 1


def number_pieces(
    pieces: Iterable[Piece], numberer: Numberer, *, workers: int | None, size: int
) -> Generator[tuple[Piece, NumberedText]]:
    """Each piece with its numbers, in order and with few of them waiting; one worker is this process itself.

    There are as many workers as cores unless their number is given, but fewer if the size of all text, in bytes, is
    small.
    """
    tokenize = get_tokenizer(numberer.tokenizer)  # an unknown one is refused here, not in every process
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(workers or cores, 1 + size // BYTES_PER_WORKER)
    if workers == 1:
        yield from ((piece, numberer(piece.text)) for piece in pieces)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker)
    waiting: deque[tuple[Piece, Future[NumberedText]]] = deque()
    try:
        for number, piece in enumerate(pieces):
            if not number:
                tokenize(piece.text[:SAMPLE])  # what it has to say is said here: processes have no logger
            with _without_interrupts():
                waiting.append((piece, pool.submit(numberer, piece.text)))
            if len(waiting) > PIECES_PER_WORKER * workers:
                oldest, numbered = waiting.popleft()
                yield oldest, numbered.result()
        yield from ((piece, numbered.result()) for piece, numbered in waiting)
    except BrokenProcessPool:
        raise ElmoError(
            "a process that tokenizes text has died: try fewer workers if memory ran out; "
            'a script of your own needs `if __name__ == "__main__":` around the call'
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def write_numbers(path: Path, pieces: Iterable[Piece], numberer: Numberer, shard: Shard) -> None:
    """The numbers of a shard's pieces, every n-th of all, in a file: an array of words and one of ids for each."""
    with replacing(path) as partial, writing(path), partial.open("wb") as file:
        for index, piece in enumerate(pieces):
            if shard.takes(index):
                words, ids = numberer(piece.text)
                np.save(file, np.frombuffer("".join(f"{word}\n" for word in words).encode(), np.uint8))
                np.save(file, ids)


def read_numbers(pieces: Iterable[Piece], paths: Sequence[Path]) -> Generator[tuple[Piece, NumberedText]]:
    """Each piece with its numbers, from the files of all shards."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        for index, piece in enumerate(pieces):
            number = index % len(files)
            remedy = "Remove it, and give the same command again"
            with parsing(paths[number], "a shard of numbered words", kind=DataError, remedy=remedy):
                words, ids = np.load(files[number]), np.load(files[number])
            yield piece, NumberedText(words.tobytes().decode().split("\n")[:-1], ids)


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


def _start_worker() -> None:
    def end_with_parent() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
