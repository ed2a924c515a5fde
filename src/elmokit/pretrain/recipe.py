"""How a model is trained: every choice in one file that people can read and repeat."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from elmokit.config import CharacterConfig, ModelConfig, SoftmaxConfig, check_above_zero, check_at_least
from elmokit.config import set_value as set_value
from elmokit.errors import ConfigError
from elmokit.text.layout import Lines

PACKAGED = Path(__file__).parent / "recipes"
IN_REPOSITORY = Path(__file__).parents[3] / "recipes"


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """What is read from the text."""

    vocab_size: int | None = None
    """The softmax knows at most so many words, <S>, </S> and <UNK> included; others are still read by their letters."""
    min_count: int = 3
    """The softmax knows words that occur at least so often."""
    valid_share: float = 0.02
    """The share of the text that is held out to measure on."""
    lines: Lines = "auto"
    """What a line is: wrapped text (blank lines end paragraphs), one of the paragraphs or sentences, or as it looks."""
    field: str = "text"
    """The field of a .jsonl object that holds the text."""
    encoding: str = "utf-8"
    """What files are decoded by unless they begin with a byte order mark: gb18030, big5, latin-1 …; auto guesses."""
    language: str = "auto"
    """The language's code, which decides where sentences end: de, hi, ja …; auto sees each paragraph's script."""


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """What is done with it."""

    epochs: float = 10.0
    """Times that the whole text is read; a run that is resumed may be given more or fewer."""
    batch: int = 128
    """Streams of text read side by side, all processes together."""
    unroll: int = 20
    """Steps that gradients go back through."""
    reset: Literal["sentence", "never"] = "sentence"
    """Begin each sentence from a zero state, as vectors are computed later; or never, as the original did."""
    dropout: float = 0.1
    """Share of values dropped at every layer's input and before the softmax."""
    optimizer: Literal["adagrad", "adam", "adamw", "muon"] = "adam"
    """Adagrad as the original; Adam is faster; Muon for the recurrent matrices, with Adam for the rest."""
    learning_rate: float = 0.002
    """The largest step size."""
    warmup: int = 200
    """Steps in which the rate rises to its largest."""
    decay: Literal["none", "linear", "cosine", "trapezoid"] = "linear"
    """How the rate falls to zero at the end; trapezoid: not before the last steps, so that a run may be made longer."""
    decay_share: float = 0.2
    """The share of all steps in which the rate falls, for trapezoid."""
    weight_decay: float = 0.0
    """For adamw."""
    gradient_scale: float = 1.0
    """The loss is multiplied by this before it is differentiated; the original's 20 matters to Adagrad and clipping."""
    clip: float = 10.0
    """The gradient's norm is kept within this."""
    head_epochs: float = 0.0
    """Epochs in which the softmax alone learns, for a model that came without one."""
    cloze_share: float = 0.0
    """So many tokens, as a share of all that were read, are read once more by a layer that joins both sides of a gap,
    which is kept if it predicts held-out words better than both directions by themselves."""
    freeze: Literal["none", "words", "tokens"] | int = "none"
    """What stays as it is: the table of words, the whole token encoder, or with it so many of the lower layers."""
    accumulate: int = 1
    """Steps whose gradients are added up before the weights move."""
    average_steps: int = 0
    """Several processes each learn by themselves and average their weights after so many steps; 0: they add up their
    gradients at every step, as one process with the whole batch would."""
    autocast: Literal["none", "bf16"] = "none"
    """Compute in 16 bits where that is safe, on a device made for it; weights stay in 32."""
    seed: int = 0
    """Where all randomness comes from."""
    evaluate_steps: int = 500
    """Steps between measurements on held-out text."""
    evaluate_tokens: int = 50_000
    """Held-out tokens measured on the way; all of them at the end."""
    save_minutes: float = 5.0
    """Minutes between checkpoints."""

    def __post_init__(self) -> None:
        above_zero = ("epochs", "batch", "unroll", "learning_rate", "gradient_scale", "clip", "accumulate")
        check_above_zero(self, *above_zero, "evaluate_steps", "evaluate_tokens", prefix="training.")
        from_zero = ("warmup", "weight_decay", "head_epochs", "cloze_share", "seed", "save_minutes", "average_steps")
        check_at_least(self, 0, *from_zero, prefix="training.")
        if math.inf in (self.epochs, self.head_epochs):
            raise ConfigError("training.epochs or training.head_epochs is inf: training must end")
        for name in ("learning_rate", "gradient_scale", "weight_decay", "cloze_share"):
            if getattr(self, name) == math.inf:
                raise ConfigError(f"training.{name} is inf: it must be a number")
        if not 0 < self.decay_share <= 1:
            raise ConfigError(f"training.decay_share is {self.decay_share}: it goes from above 0 to 1")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"training.dropout is {self.dropout}: it goes from 0 to below 1")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The model, the corpus and the training."""

    model: ModelConfig = field(
        default_factory=lambda: ModelConfig(characters=CharacterConfig(), softmax=SoftmaxConfig(), forget_bias=1.0)
    )
    """The network; what depends on the text is filled in from it."""
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    about: dict[str, str] = field(default_factory=dict)
    """What people should know of the model: text, licence and the like; `elmokit info` shows it."""
    training: TrainSettings = field(default_factory=TrainSettings)

    def __post_init__(self) -> None:
        freeze, model = self.training.freeze, self.model
        if isinstance(freeze, int) and not 0 <= freeze <= model.layers:
            raise ConfigError(f"training.freeze is {freeze}: the model has {model.layers} layers that can be frozen")
        if freeze == "words" and model.words is None:
            raise ConfigError("training.freeze is words: the model has no table of words, it reads characters alone")


def recipe_names() -> list[str]:
    """Those that come with the package, or stand in the repository."""
    return sorted({path.stem for folder in (PACKAGED, IN_REPOSITORY) for path in folder.glob("*.toml")})


def read_recipe(name: str) -> dict[str, Any]:
    """The values of a recipe, by its name or its file's."""
    path = Path(name) if name.endswith(".toml") else _find(name)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: the recipe cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the recipe is not TOML: {error}") from None


def make_recipe(given: Recipe | Mapping[str, Any] | str) -> Recipe:
    """The recipe of that name or file, or of plain values, each one known, of its type and in its range."""
    if isinstance(given, Recipe):
        return given
    values = _renamed(read_recipe(given) if isinstance(given, str) else given)
    try:
        recipe = msgspec.convert(values, Recipe)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the recipe has a mistake: {error}") from None
    if unknown := _unknown(values, asdict(recipe)):
        raise ConfigError(f"the recipe has a setting that is not known: {unknown}")
    if recipe.model.softmax is None:
        raise ConfigError("the recipe has no model.softmax: a language model needs one to be trained")
    return recipe


def _find(name: str) -> Path:
    for folder in (PACKAGED, IN_REPOSITORY):
        if (path := folder / f"{name}.toml").exists():
            return path
    raise ConfigError(f"unknown recipe {name!r}: known are {', '.join(recipe_names())}, or a file ending in .toml")


def _renamed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with corpus.lines in place of its older form: corpus.split = false was one sentence per line."""
    corpus = values.get("corpus")
    if not isinstance(corpus, dict) or not isinstance(corpus.get("split"), bool):
        return dict(values)
    lines = {} if corpus["split"] else {"lines": "sentences"}
    return {**values, "corpus": {name: value for name, value in corpus.items() if name != "split"} | lines}


def _unknown(given: Mapping[str, Any], known: Mapping[str, Any], prefix: str = "") -> str:
    """The path of the first value that is given but not known."""
    for name, value in given.items():
        if name not in known:
            return prefix + name
        deeper = isinstance(value, dict) and isinstance(known[name], dict) and name != "about"
        if deeper and (unknown := _unknown(value, known[name], f"{prefix}{name}.")):
            return unknown
    return ""
