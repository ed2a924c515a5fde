"""How a task is trained; a field's docstring is the command line's help."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from elmokit.config import TokenizerName
from elmokit.errors import ConfigError

MixChoice = Literal["learned", "last", "average", "apart"]


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """What a task's model sees of the embedders' layers."""

    mix: MixChoice = "learned"
    """How layers become one: by learned weights, the last one alone, their average, or all side by side."""
    output_mix: bool = False
    """Put a second mix beside what the task's encoder gives."""
    mix_penalty: float = 0.001
    """λ of the layer weights: λ Σ w² is added to the loss. 0.001 lets them move, 1 holds them near the average."""
    input_dropout: float = 0.5
    """Share of the vectors' values that are dropped in training."""
    trainable: Literal["mix", "top", "all"] = "mix"
    """What learns of an ELMo model: nothing but the mix, also its top layer, or all of it from the top down."""
    tuned_rate: float = 0.0001
    """The rate of the top layer, where the model itself learns."""
    lower_rate: float = 0.5
    """The rate of each layer below, as a share of the rate of the layer above it."""
    unfreeze_epochs: int = 1
    """The top layer begins to learn after so many epochs, each layer below it after so many more."""

    def __post_init__(self) -> None:
        if not 0 <= self.input_dropout < 1:
            raise ConfigError(f"input_dropout is {self.input_dropout}: it goes from 0 to below 1")
        if self.output_mix and self.mix == "apart":
            raise ConfigError("output_mix is a second mix: where layers stand apart, mix 'apart', there is none")
        _at_least(self, 0, "mix_penalty", "unfreeze_epochs")
        _above_zero(self, "tuned_rate", "lower_rate")


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """The training loop."""

    epochs: int = 30
    """Passes over the training data at most."""
    patience: int = 5
    """Stop after so many epochs that did not raise the dev score; a score of 0 is waited out."""
    batch: int = 32
    """Examples that are learned from together, at most."""
    batch_tokens: int = 4096
    """Tokens that are, at most, counted once for each predicate; a longer example stands alone."""
    learning_rate: float = 0.001
    """Adam's step size."""
    anneal: float = 0.5
    """The rate is multiplied by this after every two epochs in a row without a new best dev score, down to 1/16 of the
    first rate; scores of 0 at the beginning do not count."""
    clip: float = 5.0
    """The gradient's norm is kept within this."""
    seed: int = 0
    """Where all randomness comes from."""
    cache: Literal["float32", "float16", "none"] = "float32"
    """How the layers of frozen models are kept on disk, to be computed once only."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "epochs", "patience", "batch", "batch_tokens")
        _above_zero(self, "learning_rate", "anneal", "clip")
        if not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed is {self.seed}: it goes from 0 to below 2^63")
        if self.anneal > 1:
            raise ConfigError(f"anneal is {self.anneal}: it is at most 1, or the rate would rise")


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """All choices of a training run; what is not said of settings, inputs and training is as the task has it."""

    settings: Any = None
    """The task's own, an object of its settings type."""
    inputs: InputSettings | None = None
    training: FitSettings | None = None
    tokenizer: TokenizerName = "words"
    """Of texts that come without tokens."""
    sample: float = 1.0
    """The share of the training data that is learned from."""
    bundle: bool = False
    """Copy the embedders into the task's folder."""
    cache_folder: Path | None = None
    """Keeps the layers of frozen models for other runs on the same data; else they go when training ends."""
    resume: bool = False
    """Go on with the run in the folder, after its last whole epoch."""

    def __post_init__(self) -> None:
        if not (isinstance(self.sample, int | float) and 0 < self.sample <= 1):
            raise ConfigError(f"sample is {self.sample!r}: it is a share of the training data, above 0 and at most 1")


INPUT_OPTIONS, TRAINING_OPTIONS = (tuple(field.name for field in fields(kind)) for kind in (InputSettings, FitSettings))
OPTIONS = (*INPUT_OPTIONS, *TRAINING_OPTIONS, "tokenizer", "sample", "cache_folder", "resume")


def _at_least(settings: object, least: int, *names: str) -> None:
    for name in names:
        if not least <= getattr(settings, name) < math.inf:  # not NaN either
            raise ConfigError(f"{name} is {getattr(settings, name)}: it must be at least {least}")


def _above_zero(settings: object, *names: str) -> None:
    for name in names:
        if not 0 < getattr(settings, name) < math.inf:
            raise ConfigError(f"{name} is {getattr(settings, name)}: it must be above 0")
