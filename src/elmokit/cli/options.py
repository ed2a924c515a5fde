"""Options that several commands share; a field's docstring is its help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from elmokit.errors import ConfigError
from elmokit.text.layout import Lines


def _check_source(_: Any, path: Path) -> None:
    if str(path).startswith("-") and str(path) != "-":
        raise ConfigError(f"unknown option {path}: see --help for those there are")


Source = Annotated[Path, Parameter(allow_leading_hyphen=True, validator=_check_source)]
"""A text file or a folder of them, or - for standard input."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How text lies in its files."""

    lines: Lines = "auto"
    """What a line is: part of a wrapped text, whose paragraphs end at blank lines, one of the paragraphs, or one of the
    sentences; auto sees from each text whether it is wrapped."""
    split: Annotated[bool | None, Parameter(show=False)] = None
    """The older name: --no-split is --lines sentences."""

    @property
    def meaning(self) -> Lines:
        """What a line is."""
        return "sentences" if self.split is False else self.lines
