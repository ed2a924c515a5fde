"""How far long work has come, on standard error: a live bar for a person, plain lines for a log."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elmokit.progress import SILENCE, Progress, duration

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_DRAWINGS = 0.1


@contextmanager
def watched(name: str) -> Iterator[Progress]:
    """Progress of work on a corpus or file of that name; of several processes only the first has anything to show."""
    if os.environ.get("RANK", "0") != "0":
        yield SILENCE
    elif sys.stderr.isatty():
        with _bars() as bars:
            yield BarProgress(bars)
    else:
        lines = LineProgress(name)
        yield lines
        lines.finish()


class LineProgress:
    """A line every ten seconds at most, and a last one that says that it is done."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = self.last = time.monotonic()
        self.amount = ""

    def message(self, text: str, /) -> None:
        print(text, file=sys.stderr, flush=True)

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        self.amount = f"{done:,} {unit}".rstrip()
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            share = f"{done / total:.0%} of {total:,} {unit}".rstrip() if total else self.amount
            self.message(f"{self.name}: {stage}, {share}{note and f', {note}'}, {duration(self.last - self.start)}")

    def finish(self) -> None:
        """Say that it is done, if there was anything to do."""
        if self.amount:
            self.message(f"{self.name}: done, {self.amount}, {duration(time.monotonic() - self.start)}")


class BarProgress:
    """A bar a stage."""

    def __init__(self, bars: Any) -> None:
        self.bars = bars
        self.stages: dict[str, Any] = {}
        self.drawn = 0.0

    def message(self, text: str, /) -> None:
        self.bars.console.print(text, highlight=False, markup=False)

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        now = time.monotonic()
        if stage in self.stages and done != total and now - self.drawn < SECONDS_BETWEEN_DRAWINGS:
            return
        self.drawn = now
        if stage not in self.stages:
            self.stages[stage] = self.bars.add_task(stage, total=total, amount="", note="")
        amount = f"{done:,}/{total:,} {unit}" if total else f"{done:,} {unit}"
        self.bars.update(self.stages[stage], completed=done, total=total, amount=amount, note=note)


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    texts = [TextColumn(text) for text in ("{task.description}", "{task.fields[amount]}", "{task.fields[note]}")]
    return Bars(texts[0], BarColumn(), *texts[1:], TimeRemainingColumn(), console=Console(stderr=True))
