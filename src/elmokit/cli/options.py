"""Options that several commands share; a field's docstring is its help."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from elmokit.config import set_value
from elmokit.errors import ConfigError
from elmokit.text.layout import Lines


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


def set_values(values: dict[str, Any], settings: Sequence[str] | None, *, example: str) -> dict[str, Any]:
    """The values with those of --set put in, each written as name=value."""
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: write it as name=value, such as {example}")
        set_value(values, name, value)
    return values
