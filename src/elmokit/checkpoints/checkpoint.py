"""A model as every format reads and writes it, and the vocabulary that lies beside its weights."""

import gzip
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from torch import Tensor
from torch.optim import Optimizer

from elmokit.config import ModelConfig
from elmokit.errors import CheckpointError
from elmokit.text.vocabulary import BOS, EOS, Vocabulary, read_vocabulary

T = TypeVar("T")
VOCABULARY = "vocab.txt"
MOST_COMPRESSION = 100


@dataclass(frozen=True)
class Checkpoint:
    """Everything that makes a model."""

    config: ModelConfig
    weights: dict[str, Tensor]
    """Named as in `BiLM`, and `softmax.…` where there is one; float32."""
    vocabulary: Vocabulary | None
    source: str
    """The format and file it came from, for people to read."""
    prior: Tensor | None = None
    """(V,): log p̄(w), the mean of what both directions predict in running text; none if it was not measured."""
    about: dict[str, str] = field(default_factory=dict)
    """What is known of it, for people to read: its text, tokens read, perplexity, licence, date."""
    card: str | None = None
    """The README.md beside it, if it has one."""


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

    FILES: tuple[str, ...]

    def check_writable(self, checkpoint: Checkpoint, /, *, half: bool) -> None:
        """Raise a CheckpointError if the format cannot hold the model."""

    def write(self, checkpoint: Checkpoint, folder: Path, /, *, half: bool) -> None:
        """Write the model's files into an empty folder."""


def check_finite(source: str | Path, weights: Mapping[str, Tensor], *, remedy: str = "train it anew") -> None:
    """Refuse weights that are not numbers, by name; a sum is the quickest pass that none of them survives."""
    for name, weight in weights.items():
        if not weight.sum().isfinite() and (count := int((~weight.isfinite()).sum())):
            found = f"'{name}' holds {count:,} numbers of {weight.numel():,} that are NaN or infinite"
            raise CheckpointError(f"{source}: {found}: it is damaged, or its training diverged; {remedy}")


def load_optimizer(optimizer: Optimizer, state: dict[str, Any]) -> None:
    """Go on with an optimiser's state; a ValueError tells of one that does not fit, for torch does not look."""
    optimizer.load_state_dict(state)
    for weight, kept in optimizer.state.items():
        for name, part in kept.items():
            if part.numel() != 1 and part.shape != weight.shape:
                raise ValueError(f"the optimiser's {name} is {tuple(part.shape)} for a weight of {tuple(weight.shape)}")
            if not part.sum().isfinite():
                raise ValueError(f"the optimiser's {name} holds numbers that are NaN or infinite")


def vocabulary_in(folder: Path, config: ModelConfig) -> Vocabulary | None:
    """The vocabulary in a folder; that of a model with word vectors or a softmax must fit them.

    Its file has the usual name, or is the only one with a name like it.
    """
    size = config.words.size if config.words else config.softmax.size if config.softmax else None
    usual = [path for path in (folder / VOCABULARY, folder / f"{VOCABULARY}.gz") if path.exists()]
    others = [path for pattern in ("*vocab*.txt", "*vocab*.txt.gz") for path in folder.glob(pattern)]
    path = usual[0] if usual else others[0] if len(others) == 1 else None
    if path is None:
        if config.words:
            raise CheckpointError(f"{folder}: the model reads words, but their list, {VOCABULARY}, is not here")
        return None
    left = MOST_COMPRESSION * path.stat().st_size  # a file may be made to exhaust memory
    with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:  # if damaged, whoever reads it says so
        while left >= 0 and (part := file.read(1 << 20)):
            left -= len(part)
    if left < 0:
        raise CheckpointError(f"{path}: unpacks to more than {MOST_COMPRESSION} times its size, so it is not read")
    vocabulary = read_vocabulary(path)
    if size is not None and len(vocabulary) != size:
        raise CheckpointError(f"{path}: {len(vocabulary)} words, but the model has {size}. Is it another model's?")
    if config.words and not (BOS in vocabulary and EOS in vocabulary):
        raise CheckpointError(f"{path}: {BOS} and {EOS}, the bounds of every sentence, are not among the words")
    return vocabulary
