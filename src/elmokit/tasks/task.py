"""What every task's module offers, and what it is given: the one contract between tasks and the training loop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from torch import Tensor

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import Place
from elmokit.tasks.settings import FitSettings
from elmokit.text.tokenizers import Tokenizer

Tokens = tuple[str, ...]
Scores = dict[str, float]
Kind = TypeVar("Kind")
PLACES = ("place", "path", "lines")  # an example's fields that say where it came from


class Item(NamedTuple):
    """An example made ready for a model."""

    example: Any
    sentences: tuple[Tokens, ...]
    """What is embedded of it: one sentence, a premise and a hypothesis, all sentences of a document."""
    extra: Any = None
    """What else the model wants to know of it, such as where the tokens stand in the text."""
    runs: int = 1
    """How often the model goes over the sentences: once for each predicate, say."""


class Inputs(NamedTuple):
    """The vectors of all sentences of a batch, in the order of its items."""

    vectors: Tensor
    """(S, T, D), zeros where a sentence has ended."""
    mask: Tensor
    """(S, T), True for a real token."""
    output: Tensor | None = None
    """(S, T, E) a second mix, to be put beside what the task's encoder gives."""


class Widths(NamedTuple):
    """What a model is built for."""

    input: int
    """D of `Inputs.vectors`."""
    output: int = 0
    """E of `Inputs.output`; 0 if there is none."""
    parts: tuple[tuple[int, int], ...] = ()
    """The layers of each embedder that stand side by side in D, and the width of one of them."""


class TaskModel(Protocol):
    """A torch module that learns from items and answers them."""

    def loss(self, inputs: Inputs, items: Sequence[Item]) -> Tensor:
        """The mean loss of a batch, a single number."""

    def predict(self, inputs: Inputs, items: Sequence[Item]) -> list[Any]:
        """For each item its example, with the model's answer where the gold one stood."""


class Task(Protocol):
    """The names in a task's module.

    It may have three more: `TRAINING`, the fields of FitSettings for which it has defaults of its own, `INPUTS`, the
    only InputSettings that it can be trained with, and `read_train`, where it can learn from other examples of a file
    than those that `read` gives.
    """

    @property
    def Settings(self) -> Callable[[], Any]:  # noqa: N802
        """A frozen dataclass with a default for every field: how examples are read, and what the model is like."""

    @property
    def Model(self) -> Callable[[Any, Sequence[str], Widths], Any]:  # noqa: N802
        """A TaskModel, built from the settings, the labels of the training data and the widths of its inputs."""

    def read(self, path: Path, settings: Any, /) -> Iterable[Any]:
        """The examples of a file."""

    def prepare(self, example: Any, cut: Tokenizer, /) -> Item:
        """Cut an example into sentences; done once, and also for examples without a gold answer."""

    def labels(self, example: Any, /) -> Iterable[tuple[str, Place]]:
        """Every label of a gold answer and where it stands; nothing if the task has no set of labels."""

    def score(self, gold: Sequence[Any], predicted: Sequence[Any], /) -> Scores:
        """How good predictions are, from 0 to 1 each; the first score is the one that training looks at."""

    def parse(self, values: Mapping[str, Any], cut: Tokenizer, /) -> Any:
        """An example without gold answer from a JSON object; a line of plain text comes as {"text": line}."""


def settings_of(task: Task, values: Mapping[str, Any]) -> Any:
    """The task's settings, each value known, of its type and in its range."""
    kind: Any = task.Settings
    known = msgspec.to_builtins(kind())
    if unknown := sorted(set(values) - set(known)):
        raise ConfigError(f"unknown setting {unknown[0]!r}: this task has {', '.join(known) or 'none'}")
    return checked(kind, values, "the task's settings")


def training_of(task: Task, values: Mapping[str, Any]) -> FitSettings:
    """The settings of the loop: these values, else the task's own defaults, else the general ones."""
    return checked(FitSettings, {**getattr(task, "TRAINING", {}), **values}, "the options")


def checked(kind: type[Kind], values: Mapping[str, Any], what: str) -> Kind:
    """A dataclass of values, each of its type and in its range."""
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{what} have a mistake: {error}") from None


def learn_labels(task: Task, examples: Iterable[Any]) -> tuple[str, ...]:
    """The labels of the training data, sorted."""
    return tuple(sorted({label for example in examples for label, _ in task.labels(example)}))


def check_labels(task: Task, examples: Iterable[Any], known: Sequence[str]) -> None:
    """Refuse a label that the training data lacks, and say where it stands."""
    labels = frozenset(known)
    for example in examples:
        for label, place in task.labels(example):
            if label not in labels:
                raise place.error(f"the label {label!r} does not occur in the training data: {_listed(known)}")


def words(values: Mapping[str, Any], cut: Tokenizer, *, text: str = "text", tokens: str = "tokens") -> Tokens:
    """The tokens that a JSON object gives, or those of the text that it gives instead."""
    if isinstance(given := values.get(tokens), list) and all(isinstance(token, str) for token in given):
        return tuple(given)
    if isinstance(given := values.get(text), str):
        return tuple(token.text for token in cut(given))
    raise DataError(f'expected a JSON object with "{text}", a string, or "{tokens}", a list of strings')


def two_texts(values: Mapping[str, Any], first: str, second: str) -> tuple[str, str]:
    """The texts of these names in a JSON object, or those of a plain line on both sides of a tab."""
    line = values.get("text")
    found: list[Any] = line.split("\t") if isinstance(line, str) else [values.get(first), values.get(second)]
    if len(found) != 2 or not all(isinstance(text, str) for text in found):
        raise DataError(
            f'expected a JSON object with "{first}" and "{second}", both strings, or a line with a tab between the two'
        )
    return found[0], found[1]


def shown(example: Any) -> dict[str, Any]:
    """An example as plain JSON values with their names, without the place it came from."""
    return {field.name: _plain(getattr(example, field.name)) for field in fields(example) if field.name not in PLACES}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _listed(labels: Sequence[str], most: int = 20) -> str:
    return f"known are {', '.join(labels[:most])}{' and others' if len(labels) > most else ''}"
