"""How training went: what is told on the way, and what is written down."""

from pathlib import Path
from typing import Protocol

import msgspec

from elmokit.errors import CheckpointError
from elmokit.tasks.inputs import MixReport
from elmokit.tasks.settings import FitSettings
from elmokit.tasks.task import Scores

REPORT = "report.json"


class Epoch(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over the training data."""

    number: int
    loss: float
    """The mean over batches."""
    rate: float
    """Of learning."""
    scores: Scores
    """On the dev data; the first is the one that counts."""
    mixes: list[MixReport]
    seconds: float

    @property
    def score(self) -> float:
        """The one that counts."""
        return next(iter(self.scores.values()))


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of a training run that is worth keeping."""

    training: FitSettings
    train_examples: int
    dev_examples: int
    sample: float
    """The share of the training data that was learned from."""
    parameters: int
    """Those that may learn."""
    embedders: list[str]
    """Their names; mixes tell them by number."""
    epochs: list[Epoch]
    best: int
    """The number of the epoch whose weights are kept."""
    seconds: float


class Reporter(Protocol):
    """Is told how training goes."""

    def told(self, message: str, /) -> None:
        """Something that a user should know."""

    def embedding(self, done: int, total: int, /) -> None:
        """Tokens whose layers have been computed ahead."""

    def stepped(self, epoch: int, done: int, total: int, loss: float, /) -> None:
        """Examples of an epoch that have been learned from, and the mean loss so far."""

    def measured(self, epoch: Epoch, best: Epoch, /) -> None:
        """After an epoch; the best one may be itself."""


class Silence:
    """A reporter that keeps everything to itself."""

    def told(self, message: str, /) -> None:
        """Nothing."""

    def embedding(self, done: int, total: int, /) -> None:
        """Nothing."""

    def stepped(self, epoch: int, done: int, total: int, loss: float, /) -> None:
        """Nothing."""

    def measured(self, epoch: Epoch, best: Epoch, /) -> None:
        """Nothing."""


def read_report(folder: Path) -> Report:
    """The report in a task's folder."""
    path = folder / REPORT
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: cannot be read as the report of a finished run: {error}") from None


def best_of(epochs: list[Epoch]) -> Epoch:
    """The first epoch with the highest score; the last one while all score 0."""
    best = max(epochs, key=lambda epoch: epoch.score)
    return best if best.score > 0 else epochs[-1]


def stalls(epochs: list[Epoch]) -> int:
    """How many times two epochs in a row brought no new best score."""
    best, waited, count = 0.0, 0, 0
    for epoch in epochs:
        if epoch.score > best or not best:
            best, waited = epoch.score, 0
            continue
        waited += 1
        count += waited % 2 == 0
    return count
