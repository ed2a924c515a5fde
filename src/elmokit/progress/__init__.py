"""What long work reports: one protocol; `drawing` shows it, where somebody asked to see it."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Is told how long work goes."""

    def message(self, text: str, /) -> None:
        """Something that a user should know, in one line."""

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        """How far a stage of the work has come: `done` of `total` units, if it is known how many there are."""


class Silence:
    """Progress that nobody watches."""

    def message(self, text: str, /) -> None:
        """Nothing."""

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        """Nothing."""


SILENCE = Silence()


def tracked(
    items: Iterable[T], progress: Progress, stage: str, total: int | None = None, /, *, unit: str
) -> Iterator[T]:
    """The items, each reported when it has been used."""
    for number, item in enumerate(items, 1):
        yield item
        progress.update(stage, number, total, unit=unit)


def counted(number: int, thing: str) -> str:
    """A number of things in words: 1 sentence, 2,000 sentences."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in words: 1 second, 45 seconds, 12 minutes, 3.4 hours."""
    if seconds < 120:
        return counted(round(seconds), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
