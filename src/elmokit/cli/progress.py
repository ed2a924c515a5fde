"""How far long work has come: a live bar for a person, plain lines for a log."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
SECONDS_BETWEEN_LINES = 10.0


def track(items: Iterable[T], *, unit: str) -> Iterator[T]:
    """Pass the items on and report on standard error how many went by, and how fast."""
    return _bar(items, unit) if sys.stderr.isatty() else _lines(items, unit)


def _bar(items: Iterable[T], unit: str) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.completed:,} {task.description}  {task.fields[rate]}")
    with Progress(SpinnerColumn(), text, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task(unit, total=None, rate="")
        for item in items:
            yield item
            task = progress.tasks[0]
            progress.update(bar, advance=1, rate=f"{task.speed or 0:,.0f}/s")


def _lines(items: Iterable[T], unit: str) -> Iterator[T]:
    start = last = time.monotonic()
    for number, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            print(f"{number:,} {unit}, {number / (now - start):,.0f}/s", file=sys.stderr)
            last = now
