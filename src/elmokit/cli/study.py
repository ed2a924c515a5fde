"""What the commands that study words share: which model reads which corpus, how far it is, and what is printed."""

import json as json_format
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit.cli.options import TextOptions
from elmokit.cli.progress import SECONDS_BETWEEN_LINES
from elmokit.config import TokenizerName

if TYPE_CHECKING:
    from elmokit.elmo import Elmo
    from elmokit.embedder import Layers
    from elmokit.lexicon.occurrences import Occurrence, Progress
    from elmokit.text.corpus import TextCorpus
    from elmokit.text.tokenizers import Tokenizer

Files = Annotated[list[Path], Parameter(negative="")]
SENTENCES_BETWEEN_UPDATES = 50
LONGEST_SHOWN = 100  # characters on either side of a word


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model reads, and how."""

    model: Annotated[str, Parameter(alias="-m")]
    """A model's folder or file."""
    tokenizer: TokenizerName | None = None
    """How text is cut into tokens; the model's own way unless given."""
    json: Annotated[bool, Parameter(negative="")] = False
    """Print JSON."""

    def load(self) -> tuple["Elmo", "Tokenizer"]:
        """The model and what cuts text for it."""
        from elmokit.elmo import load
        from elmokit.text.tokenizers import get_tokenizer

        elmo = load(self.model)
        return elmo, get_tokenizer(self.tokenizer) if self.tokenizer else elmo.tokenizer


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StudyOptions(ModelOptions, TextOptions):
    """Which model reads a corpus, and how."""

    layer: Annotated[str, Parameter(name=["--layer", "--layers"])] = "average"
    """average, top, or a layer's number; 0 is the context-free token vector."""

    @property
    def layers(self) -> "Layers":
        """The layer as `embed` takes it."""
        return int(self.layer) if self.layer.isdecimal() else self.layer  # type: ignore[return-value]

    def open(self, paths: Sequence[Path], tokenizer: "Tokenizer") -> "TextCorpus":
        """The corpus in files and folders."""
        from elmokit.text.corpus import open_corpus

        return open_corpus(paths, tokenizer, lines=self.meaning)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SenseOptions(StudyOptions):
    """The same, by the layer that tells senses apart best."""

    layer: Annotated[str, Parameter(name=["--layer", "--layers"])] = "top"
    """average, top, or a layer's number; 0 is the context-free token vector."""


@contextmanager
def meter() -> "Iterator[Progress]":
    """Report on standard error how many sentences have been read: a bar for a person, plain lines for a log."""
    if not sys.stderr.isatty():
        yield _LineMeter()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("sentences"), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")

        def show(done: int, total: int) -> None:
            if done % SENTENCES_BETWEEN_UPDATES == 0 or done == total:
                bar.update(task, completed=done, total=total)

        yield show


class _LineMeter:
    """A line now and then."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.last >= SECONDS_BETWEEN_LINES:
            print(f"{done:,} of {total:,} sentences", file=sys.stderr)
            self.last = now


def shown(found: "str | Occurrence") -> str:
    """A word, or a sentence with the word marked, cut on both sides if it is long."""
    return found if isinstance(found, str) else found.context.bracketed(found.position, reach=LONGEST_SHOWN)


def print_json(found: Any) -> None:
    """Print what was found as JSON."""
    print(json_format.dumps(_plain(found), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    """Dataclasses and named tuples as objects, arrays as lists; an occurrence without its vector."""
    from elmokit.lexicon.occurrences import Occurrence

    if isinstance(value, Occurrence):
        place = {"position": value.position, "document": value.context.document}
        return {"token": value.token, "sentence": value.context.text} | place
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value
