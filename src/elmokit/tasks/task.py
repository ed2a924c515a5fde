"""What a task is, how it is trained, what its model is given: the one contract between tasks, training and answering.

The docstrings of settings are the command line's help.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec

from elmokit.answers import plain
from elmokit.config import Tokenization
from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import Place
from elmokit.text.tokenizers import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

Tokens = tuple[str, ...]
Scores = dict[str, float]
Kind = TypeVar("Kind")
ABOVE_ZERO = math.ulp(0.0)
FEWEST_LABELS = 10  # of fewer, all may be different
ORIGIN = ("place", "path", "lines")  # an example's fields that say where it came from


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """What a task's model sees of the embedders' layers."""

    mix: Literal["learned", "last", "average", "static", "apart"] = "learned"
    """How layers become one: by learned weights, the last one alone, their average, or all side by side; or static
    vectors, layer 0 if there are none, plus the other layers by learned weights."""
    mix_weights: tuple[float, ...] | None = None
    """Fixed weights of the layers, in place of learned ones; for the static mix of those from 1 on."""
    whole_words: Literal["auto", "yes", "no"] = "auto"
    """Where tokens are single characters, give each the vectors of its word too, and its place in it.
    auto: if the data is cut into Chinese characters and a model reads words."""
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
        if self.mix_weights is not None and self.mix not in ("learned", "static"):
            raise ConfigError(f"mix_weights are the layers' weights: the mix {self.mix!r} has its own")
        if self.whole_words == "yes" and self.trainable != "mix":
            raise ConfigError("whole_words are read by frozen models: trainable 'mix'")
        _check_from(self, 0, "mix_penalty", "unfreeze_epochs")
        _check_from(self, ABOVE_ZERO, "tuned_rate", "lower_rate")


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
        _check_from(self, 1, "epochs", "patience", "batch", "batch_tokens")
        _check_from(self, ABOVE_ZERO, "learning_rate", "anneal", "clip")
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
    tokenizer: Tokenization = "auto"
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


def _check_from(settings: object, least: float, *names: str) -> None:
    for name in names:
        if not least <= getattr(settings, name) < math.inf:  # not NaN either
            rule = "above 0" if least == ABOVE_ZERO else f"at least {least}"
            raise ConfigError(f"{name} is {getattr(settings, name)}: it must be {rule}")


class Item(NamedTuple):
    """An example made ready for a model."""

    example: Any
    sentences: tuple[Tokens, ...]
    """What is embedded of it: one sentence, a premise and a hypothesis, all sentences of a document."""
    extra: Any = None
    """What else the model wants to know of it, such as where the tokens stand in the text."""
    runs: int = 1
    """How often the model goes over the sentences: once for each predicate, say."""

    @property
    def size(self) -> int:
        return max(1, sum(map(len, self.sentences)))


class Inputs(NamedTuple):
    """The vectors of all sentences of a batch, in the order of its items."""

    vectors: "Tensor"
    """(S, T, D), zeros where a sentence has ended."""
    mask: "Tensor"
    """(S, T), True for a real token."""
    output: "Tensor | None" = None
    """(S, T, E) a second mix, to be put beside what the task's encoder gives."""


class Widths(NamedTuple):
    """What a model is built for."""

    input: int
    """D of `Inputs.vectors`."""
    output: int = 0
    """E of `Inputs.output`; 0 if there is none."""
    parts: tuple[tuple[int, int], ...] = ()
    """The layers of each embedder that stand side by side in D, and the width of one of them."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that is particular to a task."""

    name: str
    settings: type[Any]
    """A frozen dataclass with a default for every field: how examples are read, and what the model is like."""
    read: Callable[[Path, Any], Iterable[Any]]
    """The labelled examples of a file, by the settings."""
    parse: Callable[[Mapping[str, Any], Tokenizer], Any]
    """An example without gold answer from a JSON object; a line of plain text comes as {"text": line}."""
    prepare: Callable[[Any, Tokenizer], Item]
    """An example's sentences in tokens; done once, and also for examples without a gold answer."""
    score: Callable[[Sequence[Any], Sequence[Any]], Scores]
    """How good predictions are, given gold ones first, from 0 to 1 each; training looks at the first score."""
    model: Callable[[Any, Sequence[str], Widths], Any] | None = None
    """Makes a torch module from the settings, the labels of the training data and the widths of its inputs.

    Of Inputs and a sequence of items, its `loss` is the mean of a batch, a single number, and its `predict` a list of
    the examples, with the model's answers where the gold ones stood.
    """
    labels: Callable[[Any], Iterable[tuple[str, Place]]] = lambda _: ()
    """Every label of a gold answer and where it stands."""
    read_train: Callable[[Path, Any], Iterable[Any]] | None = None
    """Where a task can learn from other examples of a file than those that `read` gives."""
    find: Callable[[Path, Any], tuple[Any, str]] | None = None
    """What a file shows of how it is to be read: the settings with it, for other files too, and a line that says it."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """The fields of FitSettings for which it has defaults of its own."""
    inputs: InputSettings | None = None
    """The only ones that it can be trained with."""
    refused: tuple[str, ...] = ()
    """Options of training that it does not take."""
    reason: str = ""
    """Why, as what the task does: "learns in one reading"."""
    learn: Callable[..., Any] | None = None
    """Trains it, as `elmokit.tasks.fit` does others, where it does not learn in epochs."""
    load: Callable[..., Any] | None = None
    """Loads a model that was trained so from its folder, given its config and embedders."""

    def settings_from(self, values: Mapping[str, Any]) -> Any:
        """Its settings, each value known, of its type and in its range."""
        known = msgspec.to_builtins(self.settings())
        if unknown := sorted(set(values) - set(known)):
            raise ConfigError(f"unknown setting {unknown[0]!r}: this task has {', '.join(known) or 'none'}")
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
        return checked(self.settings, plain, "the task's settings")

    def training_from(self, values: Mapping[str, Any]) -> FitSettings:
        """The settings of the loop: these values, else the task's own defaults, else the general ones."""
        return checked(FitSettings, {**self.training, **values}, "the options")

    def check_options(self, names: Iterable[str]) -> None:
        """Whoever sets what a task does not use should know."""
        if given := [name for name in names if name in self.refused]:
            are = "is" if len(given) == 1 else "are"
            raise ConfigError(f"{self.name} {self.reason}: {' and '.join(given)} {are} not for it")

    def count_labels(self, examples: Sequence[Any]) -> Counter[str]:
        """How often the training data has each label; refused where nearly all are different: they are none."""
        places = {label: place for example in examples for label, place in self.labels(example)}
        counts = Counter(label for example in examples for label, _ in self.labels(example))
        if counts.total() >= FEWEST_LABELS and 2 * len(counts) > counts.total():
            label, place = next(iter(places.items()))
            different = f"{len(counts):,} of {counts.total():,} labels are different, {label[:40]!r} is one"
            hint = "--label-column" if "label" in self.settings.__dataclass_fields__ else "-s column="
            raise DataError(f"{place.path}: {different}: choose the column of the labels by {hint}")
        return counts

    def check_labels(self, examples: Iterable[Any], known: Sequence[str]) -> None:
        """Refuse a label that the training data lacks, and say where it stands."""
        labels = frozenset(known)
        for example in examples:
            for label, place in self.labels(example):
                if label not in labels:
                    listed = f"{', '.join(known[:20])}{' and others' if len(known) > 20 else ''}"
                    raise place.error(f"the label {label!r} does not occur in the training data: known are {listed}")


def checked(kind: type[Kind], values: Mapping[str, Any], what: str) -> Kind:
    """A dataclass of values, each of its type and in its range."""
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{what} have a mistake: {error}") from None


def token_texts(text: str | Tokens, tokenize: Tokenizer) -> Tokens:
    """The tokens of a text, which it may have come in, without their indices."""
    return tuple(token.text for token in tokenize(text)) if isinstance(text, str) else text


def parse_tokens(values: Mapping[str, Any], tokenize: Tokenizer) -> Tokens:
    """The "tokens" that a JSON object gives, or those of the "text" that it gives instead."""
    if isinstance(given := values.get("tokens"), list) and all(isinstance(token, str) for token in given):
        return tuple(given)
    if isinstance(given := values.get("text"), str):
        return token_texts(given, tokenize)
    raise DataError('expected a JSON object with "text", a string, or "tokens", a list of strings')


def parse_two_texts(values: Mapping[str, Any], first: str, second: str) -> tuple[str, str]:
    """The texts of these names in a JSON object, or those of a plain line on both sides of a tab."""
    line = values.get("text")
    found: list[Any] = line.split("\t") if isinstance(line, str) else [values.get(first), values.get(second)]
    if len(found) != 2 or not all(isinstance(text, str) for text in found):
        expected = f'a JSON object with "{first}" and "{second}", both strings'
        raise DataError(f"expected {expected}, or a line with a tab between the two")
    return found[0], found[1]


def shown(example: Any) -> dict[str, Any]:
    """An example as plain JSON values with their names, without the place it came from."""
    return {field.name: plain(getattr(example, field.name)) for field in fields(example) if field.name not in ORIGIN}
