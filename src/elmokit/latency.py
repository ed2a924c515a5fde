"""What `elmokit bench --latency` measures: how long a few sentences take, in a process for each number of threads."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from statistics import median, quantiles
from typing import NamedTuple

import torch

from elmokit.bench import Precision, Sentences, ready
from elmokit.progress import SILENCE, Progress

SHAPES = ((1, 20), (8, 20), (32, 20), (1, 5), (1, 100))  # sentences, tokens
LONGEST = max(tokens for _, tokens in SHAPES)
THREADS = (1, 2)
BEST_OF = 30  # calls of each, in which every word is known
SECONDS = 3.0  # fewer calls if they take longer
HEADER = "| precision | threads | sentences | tokens each | median | 95% within | best |\n|---|---|---|---|---|---|---|"


class Latency(NamedTuple):
    """How long one call took, in seconds, time after time."""

    name: str
    threads: int
    sentences: int
    tokens: int
    seconds: list[float]

    def row(self) -> str:
        """A line of the table."""
        values = median(self.seconds), quantiles(self.seconds, n=20)[-1], min(self.seconds)
        shown = " | ".join(f"{1000 * value:.2f} ms" for value in values)
        return f"| {self.name} | {self.threads} | {self.sentences} | {self.tokens} | {shown} |"


def measure_latency(
    model: str, precisions: list[Precision], words: list[str], *, progress: Progress = SILENCE
) -> Iterator[Latency]:
    """Every shape, precision and number of threads, as each is measured."""
    for threads in THREADS:
        with ProcessPoolExecutor(1, get_context("spawn"), torch.set_num_threads, (threads,)) as process:
            for precision, (sentences, tokens) in product(precisions, SHAPES):
                progress.message(f"elmokit {precision}: {threads} threads, {sentences} × {tokens} tokens")
                seconds = process.submit(call_again, model, precision, shaped(words, sentences, tokens)).result()
                yield Latency(precision, threads, sentences, tokens, seconds)


def shaped(words: list[str], sentences: int, tokens: int) -> Sentences:
    """So many sentences of so many tokens, of consecutive words."""
    enough = words * (1 + sentences * tokens // len(words))
    return [enough[number * tokens : (number + 1) * tokens] for number in range(sentences)]


def call_again(model: str, precision: Precision, sentences: Sentences) -> list[float]:
    """Seconds of each call, after one that makes all ready."""
    elmo = ready(model, precision)
    elmo.embed(sentences)
    return repeated(lambda: elmo.embed(sentences))


def repeated(call: Callable[[], object]) -> list[float]:
    """Seconds of each of at most BEST_OF calls, at least two."""
    seconds: list[float] = []
    while len(seconds) < 2 or (len(seconds) < BEST_OF and sum(seconds) < SECONDS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds
