"""How far long work has come: a live bar in a terminal or a notebook, plain lines for a log, on standard error."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import escape
from typing import Any

from elmokit.progress import SILENCE, Progress, duration
from elmokit.translation import translate

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_DRAWINGS = 0.1


@contextmanager
def watched(name: str) -> Iterator[Progress]:
    """Progress of work on a corpus or file of that name; of several processes only the first has anything to show."""
    if os.environ.get("RANK", "0") != "0":
        yield SILENCE
    elif in_notebook():
        bars = NotebookProgress()
        yield bars
        bars.finish()
    elif sys.stderr.isatty():
        with _bars() as drawn:
            yield BarProgress(drawn)
    else:
        lines = LineProgress(name)
        yield lines
        lines.finish()


def shown(progress: Progress | bool, name: str) -> AbstractContextManager[Progress]:
    """What `progress=` means: True shows it here, False does not, and anything else is told itself."""
    if isinstance(progress, bool):
        return watched(name) if progress else nullcontext(SILENCE)
    return nullcontext(progress)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class LineProgress:
    """A line every ten seconds at most, and a last one that says that it is done."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = self.last = time.monotonic()
        self.amount = ""

    def message(self, text: str, /) -> None:
        self._write(translate(text))

    def _write(self, *parts: str) -> None:
        sys.stderr.write(f"{translate(', ').join(filter(None, parts))}\n")
        sys.stderr.flush()

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        self.amount = _amount(done, unit)
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            of = translate("{share} of {total}")
            share = of.format(share=f"{done / total:.0%}", total=_amount(total, unit)) if total else self.amount
            begin = f"{self.name}{translate(': ')}{translate(stage)}"
            self._write(begin, share, translate(note), translate(duration(self.last - self.start)))

    def finish(self) -> None:
        """Say that it is done, if there was anything to do."""
        if self.amount:
            begin = f"{self.name}{translate(': ')}{translate('done')}"
            self._write(begin, self.amount, translate(duration(time.monotonic() - self.start)))


class BarProgress:
    """A bar a stage."""

    def __init__(self, bars: Any) -> None:
        self.bars = bars
        self.stages: dict[str, Any] = {}
        self.drawn = 0.0

    def message(self, text: str, /) -> None:
        self.bars.console.print(translate(text), highlight=False, markup=False)

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        now = time.monotonic()
        if stage in self.stages and done != total and now - self.drawn < SECONDS_BETWEEN_DRAWINGS:
            return
        self.drawn = now
        if stage not in self.stages:
            self.stages[stage] = self.bars.add_task(translate(stage), total=total, amount="", note="")
        amount = f"{done:,}/{_amount(total, unit)}" if total else _amount(done, unit)
        self.bars.update(self.stages[stage], completed=done, total=total, amount=amount, note=translate(note))


class NotebookProgress:
    """A bar a stage below a notebook's cell, drawn anew in its place."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.lines: dict[str, tuple[str, str]] = {}  # by stage, as text and as HTML
        self.drawn = 0.0
        self.handle: Any = None

    def message(self, text: str, /) -> None:
        told = translate(text)
        self.lines[f"message {len(self.lines)}"] = told, escape(told)
        self._draw()

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        amount = f"{done:,}/{_amount(total, unit)}" if total else _amount(done, unit)
        seconds, name = time.monotonic() - self.start, translate(stage)
        text = translate(", ").join(filter(None, (amount, translate(note), translate(duration(seconds)))))
        bar = f'<progress value="{done}" max="{total}"></progress> ' if total else ""
        self.lines[stage] = f"{name}{translate(': ')}{text}", f"{escape(name)} {bar}{escape(text)}"
        if done == total or time.monotonic() - self.drawn >= SECONDS_BETWEEN_DRAWINGS:
            self._draw()

    def finish(self) -> None:
        """Draw what was told last, if anything was."""
        if self.lines:
            self._draw()

    def _draw(self) -> None:
        from IPython.display import display

        self.drawn = time.monotonic()
        plain, html = ("\n".join(lines) for lines in zip(*self.lines.values(), strict=True))
        shown = {"text/plain": plain, "text/html": f"<div style='white-space: pre-line'>{html}</div>"}
        if self.handle is None:
            self.handle = display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)


def _amount(number: int, unit: str) -> str:
    return translate(f"{number:,} {unit}") if unit else f"{number:,}"


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    texts = [TextColumn(text) for text in ("{task.description}", "{task.fields[amount]}", "{task.fields[note]}")]
    return Bars(texts[0], BarColumn(), *texts[1:], TimeRemainingColumn(), console=Console(stderr=True))
