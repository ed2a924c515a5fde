"""How the training of a task goes: a live bar for a person, plain lines for a log."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.cli.progress import SECONDS_BETWEEN_LINES

if TYPE_CHECKING:
    from elmokit.tasks.report import Epoch


@contextmanager
def going_on(output: Path) -> Iterator[None]:
    """Say after Ctrl-C how to go on, if there is something to go on with."""
    try:
        yield
    except KeyboardInterrupt:
        if (output / "task.json").exists():
            print(
                f"{output} holds all whole epochs: the same command with --resume goes on from there", file=sys.stderr
            )
        raise


@contextmanager
def open_reporter() -> Iterator["LineReporter"]:
    """A bar where a person watches, else plain lines."""
    if not sys.stderr.isatty():
        yield LineReporter()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    texts = [TextColumn(text) for text in ("{task.description}", "{task.fields[note]}")]
    with Progress(texts[0], BarColumn(), texts[1], TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        yield BarReporter(bar)


class LineReporter:
    """Plain lines for a log."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def told(self, message: str) -> None:
        """Write a line."""
        print(message, file=sys.stderr, flush=True)

    def embedding(self, done: int, total: int) -> None:
        """Say how it goes, now and then."""
        self._now_and_then(f"computing layers: {done / total if total else 1:.0%} of {total:,} tokens")

    def stepped(self, epoch: int, done: int, total: int, loss: float) -> None:
        """Say how it goes, now and then."""
        self._now_and_then(f"epoch {epoch}: {done / total:.0%}, loss {loss:.4f}")

    def measured(self, epoch: "Epoch", best: "Epoch") -> None:
        """Say what an epoch has come to."""
        scores = ", ".join(f"{name} {score:.4f}" for name, score in epoch.scores.items())
        rank = "the best so far" if epoch is best else f"best {best.score:.4f} in epoch {best.number}"
        self.told(f"epoch {epoch.number}: loss {epoch.loss:.4f}, dev {scores} ({rank}), {epoch.seconds:,.0f} s")

    def _now_and_then(self, line: str) -> None:
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            self.told(line)


class BarReporter(LineReporter):
    """A live bar for a person."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self.bar, self.score = bar, ""
        self.row = bar.add_task("", note="")

    def told(self, message: str) -> None:
        """Write a line above the bar."""
        self.bar.console.print(message, highlight=False, markup=False)

    def embedding(self, done: int, total: int) -> None:
        """Move the bar."""
        self.bar.update(self.row, description="computing layers", completed=done, total=total, note="")

    def stepped(self, epoch: int, done: int, total: int, loss: float) -> None:
        """Move the bar."""
        note = f"loss {loss:.4f}{self.score}"
        self.bar.update(self.row, description=f"epoch {epoch}", completed=done, total=total, note=note)

    def measured(self, epoch: "Epoch", best: "Epoch") -> None:
        """Write what an epoch has come to, and keep the best score beside the bar."""
        super().measured(epoch, best)
        self.score = f"  dev {best.score:.4f}"
