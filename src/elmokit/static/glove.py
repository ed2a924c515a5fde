"""GloVe: J = Σ f(X_ij) (v_i·u_j + b_i + c_j − log X_ij)² over all X_ij > 0, by AdaGrad as in the original.

f(x) = (x / x_max)^alpha below x_max, else 1. A record is a step of its own: the gradient of f · difference² / 2 times
the learning rate, divided by the root of 1 and the squares of all such products before. A record of a symmetric X is
two steps, (i, j) and (j, i). Threads share the weights without locks.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elmokit.embedder import Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.progress import SILENCE, Progress
from elmokit.static.cooccurrence import Cooccurrences, Records, count_cooccurrences
from elmokit.static.corpus import Text
from elmokit.static.embedders import StaticVectors
from elmokit.static.kernels import adagrad, compiled, run_together, weighted_squares
from elmokit.static.settings import GloveSettings

CHUNK = 1 << 15  # records that stay together while their order changes from epoch to epoch
LANES = 8  # numbers a wide register holds; vectors are filled up with zeros, which stay zeros


class Epoch(NamedTuple):
    """How far training is after a pass over all records."""

    number: int
    """From 1."""
    loss: float
    """J of the weights as they are now."""
    cost: float
    """The mean of f · difference² / 2 as met on the way, which is what the original program prints."""


class Glove:
    """Weights in training."""

    def __init__(self, cooccurrences: Cooccurrences, settings: GloveSettings) -> None:
        self.cooccurrences, self.settings = cooccurrences, settings
        width = -(-settings.dimensions // LANES) * LANES
        self.state = np.zeros((2, cooccurrences.words, 2, width + 1), dtype=np.float32)
        self.state[:, :, 1] = 1
        numbers = np.random.default_rng(settings.seed).random((*self.biases.shape, settings.dimensions + 1)) - 0.5
        numbers /= settings.dimensions + 1
        self.vectors_and_contexts[...], self.biases[...] = numbers[..., :-1], numbers[..., -1]
        parts = cooccurrences.parts
        self.chunks = [part[start : start + CHUNK] for part in parts for start in range(0, len(part), CHUNK)]
        self.pairs = cooccurrences.pairs
        self.epochs = 0

    @property
    def vectors_and_contexts(self) -> Vectors:
        """v and u, (2, V, D)."""
        return self.state[:, :, 0, : self.settings.dimensions]

    @property
    def biases(self) -> Vectors:
        """b and c, (2, V)."""
        return self.state[:, :, 0, -1]

    def train(self, *, progress: Progress = SILENCE) -> Epoch:
        """One pass over all records."""
        kernel, settings = compiled(adagrad), self.settings
        options = self.cooccurrences.symmetric, settings.x_max, settings.alpha, settings.learning_rate
        order = np.random.default_rng((settings.seed, self.epochs)).permutation(len(self.chunks))
        chunks = [self.chunks[number] for number in order]
        records, before = sum(map(len, chunks)), self.epochs

        def report(done: int) -> None:
            progress.update("training", before * records + done, settings.epochs * records, unit="records")

        met = self._over(chunks, lambda chunk: kernel(chunk, self.state, *options), report)
        self.epochs += 1
        return Epoch(self.epochs, self.loss(), met / self.pairs)

    def loss(self) -> float:
        """J of the weights as they are."""
        kernel, settings = compiled(weighted_squares), self.settings
        options = self.cooccurrences.symmetric, settings.x_max, settings.alpha
        return self._over(self.chunks, lambda chunk: kernel(chunk, self.state, *options))

    def vectors(self) -> Vectors:
        """v + u, or v alone."""
        v, u = self.vectors_and_contexts
        return np.array(v + u if self.settings.add_contexts else v)

    def _over(
        self, chunks: list[Records], work: Callable[[Records], float], report: Callable[[int], None] | None = None
    ) -> float:
        """The sum of what the work gives for all chunks, which the threads share."""
        threads = self.settings.threads
        sums = [0.0] * threads

        def job(number: int) -> Iterator[int]:
            done = 0
            for chunk in chunks[number::threads]:
                sums[number] += work(chunk)
                done += len(chunk)
                yield done

        run_together([job(number) for number in range(threads)], report)
        return sum(sums)


def train_glove(
    text: Text,
    settings: GloveSettings = GloveSettings(),
    *,
    counts: Sequence[Path] = (),
    progress: Progress = SILENCE,
) -> StaticVectors:
    """Count the text and train on the counts; the loss of every epoch is reported.

    `counts` are the files of shards, all of them, that `write_counts` wrote of the same text.
    """
    cooccurrences = count_cooccurrences(text, settings, counts=counts, progress=progress)
    if not cooccurrences.parts:
        raise DataError("no two words of the vocabulary stand near each other: is every line one word?")
    glove = Glove(cooccurrences, settings)
    for _ in range(settings.epochs):
        epoch = glove.train(progress=progress)
        if not np.isfinite(epoch.loss):
            raise ConfigError(f"training diverged in epoch {epoch.number}: lower learning_rate")
        progress.message(f"epoch {epoch.number}: J {epoch.loss:,.1f}, mean cost on the way {epoch.cost:.6f}")
    return StaticVectors(text.words, glove.vectors())
