"""A model as every format reads and writes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from elmokit.config import ModelConfig
from elmokit.errors import CheckpointError
from elmokit.model.language_model import LanguageModel
from elmokit.text.vocabulary import Vocabulary

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Checkpoint:
    """Everything that makes a model."""

    config: ModelConfig
    weights: dict[str, Tensor]
    """Named as in `BiLM`, and `softmax.…` where there is one; float32."""
    vocabulary: Vocabulary | None
    source: str
    """The format and file it came from, for people to read."""


class Format(Protocol):
    """What a format's module offers to read."""

    NAME: str
    LAYOUT: str

    def recognises(self, path: Path, /) -> bool:
        """Whether this looks like a model of the format, judged by names alone."""

    def read(self, path: Path, /) -> Checkpoint:
        """The model, or a CheckpointError that says what is wrong with it."""


class WritableFormat(Format, Protocol):
    """What it offers if models are written in it too."""

    def check_writable(self, checkpoint: Checkpoint, /, *, half: bool) -> None:
        """Raise a CheckpointError if the format cannot hold the model."""

    def write(self, checkpoint: Checkpoint, folder: Path, /, *, half: bool) -> None:
        """Write the model's files into an empty folder."""


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight that a model of this config has."""
    with torch.device("meta"):
        return {name: tuple(weight.shape) for name, weight in LanguageModel(config).weights().items()}


def check_shapes(path: Path, found: Shapes, expected: Shapes, *, described_by: str) -> None:
    """Raise a CheckpointError that lists every weight missing, left over or of another shape."""
    problems = [f"'{name}' is missing" for name in expected if name not in found]
    problems += [f"'{name}' is not expected" for name in found if name not in expected]
    problems += [
        f"'{name}' is {_sizes(found[name])}, expected {_sizes(shape)}"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    if problems:
        raise CheckpointError(f"{path} does not match {described_by}: {'; '.join(problems)}. Is it from another model?")


def _sizes(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "a single number"
