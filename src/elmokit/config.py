"""What a model is made of: frozen dataclasses; a field's docstring is the command line's help."""

import tomllib
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import msgspec

from elmokit.errors import ConfigError

TokenizerName = Literal["auto", "whitespace", "words", "icu", "jieba", "characters"]
TOKENIZER_NAMES: tuple[TokenizerName, ...] = get_args(TokenizerName)


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text becomes tokens."""

    name: TokenizerName = "auto"
    """What stands between white space, words, words of languages without blanks by ICU, Chinese words by jieba, or
    characters; auto is jieba for text that is mostly Han, else words."""
    normalize: Literal["none", "nfkc"] = "none"
    """nfkc: full-width letters and digits, ligatures and the like are read as ordinary ones."""
    hmm: bool = False
    """jieba: words that its dictionary lacks, such as names, are guessed by its hidden Markov model."""
    dictionary: tuple[str, ...] = ()
    """jieba: more words, such as the names in a novel."""
    simplify: bool = False
    """Traditional Chinese characters are read as simplified ones, by OpenCC."""


Tokenization = TokenizerName | TokenizerConfig
"""A tokenizer by its name, with all else as usual, or with its settings."""


Filters = tuple[tuple[int, int], ...]
MOST_LAYERS = 100  # more than any model has: a file that says so is broken, or wants to keep a machine busy
MOST_CHARACTERS = 1000  # of a word, each of which takes so many numbers
ORIGINAL_FILTERS: Filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


@dataclass(frozen=True, kw_only=True)
class CharacterConfig:
    """How a word is read by its characters."""

    alphabet: Literal["bytes", "unicode"] = "bytes"
    """Read a word as UTF-8 bytes (as the AllenAI models do) or as Unicode characters."""
    characters: str = ""
    """The Unicode characters the model knows, most frequent first; empty for bytes, and until training fills it."""
    max_characters: int = 50
    """Most characters of a word, its two boundary marks included; the rest is not read."""
    dim: int = 16
    """Width of a character's vector."""
    filters: Filters = ORIGINAL_FILTERS
    """Convolutions as (window width, count)."""
    highways: int = 2
    """Highway layers after the convolutions."""
    activation: Literal["relu", "tanh"] = "relu"
    """Applied to each filter's maximum."""

    def __post_init__(self) -> None:
        check_at_least(self, 3, "max_characters")
        check_at_least(self, 1, "dim")
        check_at_least(self, 0, "highways")
        _at_most("highways", self.highways, MOST_LAYERS)
        _at_most("max_characters", self.max_characters, MOST_CHARACTERS)
        if not self.filters:
            raise ConfigError("characters.filters is empty: at least one (width, count) is needed")
        for width, count in self.filters:
            if not (1 <= width <= self.max_characters and count >= 1):
                ranges = f"a width goes from 1 to max_characters ({self.max_characters}), a count from 1"
                raise ConfigError(f"characters.filters has ({width}, {count}): {ranges}")
        if self.alphabet == "bytes" and self.characters:
            raise ConfigError("characters.characters lists an alphabet, but the alphabet is 'bytes'")
        if len(set(self.characters)) != len(self.characters):
            raise ConfigError("characters.characters names a character twice")

    @property
    def n_filters(self) -> int:
        """The width of a word after the convolutions."""
        return sum(count for _, count in self.filters)


@dataclass(frozen=True, kw_only=True)
class WordConfig:
    """A vector for each word of the vocabulary, beside the characters or instead of them."""

    size: int = 0
    """Words in the vocabulary; 0 until training fills it."""
    frequent: int | None = None
    """So many words, the first of the vocabulary, have vectors of their own, others that of <UNK>; none for all."""
    dim: int = 100
    """Width of a word's vector."""
    max_characters: int | None = None
    """A longer word is looked up by so many of its characters, as in ELMoForManyLangs; none for the whole word."""

    def __post_init__(self) -> None:
        check_at_least(self, 0, "size", prefix="words.")
        check_at_least(self, 1, "dim", prefix="words.")
        check_at_least(self, 3, "frequent", prefix="words.")  # <S>, </S> and <UNK> are words too
        check_at_least(self, 4, "max_characters", prefix="words.")  # so many has </S>, which is a word too

    @property
    def rows(self) -> int:
        """Words that have a vector of their own."""
        return self.size if self.frequent is None else min(self.frequent, self.size)


@dataclass(frozen=True, kw_only=True)
class SoftmaxConfig:
    """The output layer that a language model is trained with; models for vectors alone have none."""

    kind: Literal["full", "sampled", "adaptive"] = "adaptive"
    """All words at each step, a sample of them, or frequent words first and the others by groups."""
    size: int = 0
    """Words in the vocabulary; 0 until training fills it."""
    samples: int = 2048
    """Words drawn at each step, for 'sampled'."""
    cutoffs: tuple[int, ...] = (2000, 10000)
    """Where the groups of rarer words begin, for 'adaptive'; those beyond the vocabulary are left out."""

    def __post_init__(self) -> None:
        check_at_least(self, 0, "size", prefix="softmax.")
        check_at_least(self, 1, "samples", prefix="softmax.")
        if self.kind not in ("full", "sampled", "adaptive"):
            raise ConfigError(f"unknown softmax {self.kind!r}: it is 'full', 'sampled' or 'adaptive'")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The bidirectional language model: every size of it, and how text is tokenized for it."""

    characters: CharacterConfig | None = None
    """The character CNN; none for a model that reads words alone."""
    words: WordConfig | None = None
    """Word vectors; none for a model that reads characters alone."""
    cell: Literal["lstm", "gru"] = "lstm"
    """The recurrent cell."""
    layers: int = 2
    """Recurrent layers in each direction."""
    hidden: int = 4096
    """Cell width D."""
    projection: int = 512
    """Width P that each direction puts out; equal to hidden for no projection."""
    cell_clip: float | None = 3.0
    """The cell state is kept within plus or minus this."""
    projection_clip: float | None = 3.0
    """The projected output is kept within plus or minus this."""
    residual: bool = True
    """Add a layer's input to its output, from the second layer on."""
    softmax: SoftmaxConfig | None = None
    """What predicts words; none where the model came without it."""
    cloze: int | None = None
    """Width of the layer that reads both sides of a gap; none where the two directions predict by themselves."""
    forget_bias: float = 0.0
    """Added to the forget gate at run time; 1.0 in models made with TensorFlow."""
    tokenizer: Tokenization = "auto"
    """How raw text is split into tokens: a name, or a name and its settings."""

    def __post_init__(self) -> None:
        if self.characters is None and self.words is None:
            raise ConfigError("a model reads characters, words or both: neither is configured")
        check_at_least(self, 1, "layers", "hidden", "projection", "cloze")
        _at_most("layers", self.layers, MOST_LAYERS)
        if self.projection > self.hidden:
            raise ConfigError(f"projection ({self.projection}) is wider than hidden ({self.hidden})")
        for name in ("cell_clip", "projection_clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is {value}: it must be above 0, or null for none")

    @property
    def projected(self) -> bool:
        """Whether the cell's output goes through a projection."""
        return self.projection != self.hidden

    @property
    def width(self) -> int:
        """Width of a contextual vector: both directions side by side."""
        return 2 * self.projection

    @property
    def token_features(self) -> int:
        """Width of a token before the final projection to P."""
        characters = self.characters.n_filters if self.characters else 0
        return characters + (self.words.dim if self.words else 0)


def config_to_dict(config: ModelConfig) -> dict[str, Any]:
    """The config as plain JSON values."""
    return asdict(config)


def config_from_dict(values: Any) -> ModelConfig:
    """The config from plain JSON values, every type and range checked."""
    try:
        return msgspec.convert(values, ModelConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error)) from None


def check_at_least(settings: object, least: int, *names: str, prefix: str = "") -> None:
    """Refuse settings of these names below that number; none is allowed, NaN is not."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not value >= least:
            raise ConfigError(f"{prefix}{name} is {value}: it must be at least {least}")


def check_above_zero(settings: object, *names: str, prefix: str = "") -> None:
    """Refuse settings of these names that are not above 0."""
    for name in names:
        if not getattr(settings, name) > 0:
            raise ConfigError(f"{prefix}{name} is {getattr(settings, name)}: it must be above 0")


def set_value(values: dict[str, Any], name: str, text: str) -> None:
    """Set one value, named by its path (training.batch), as TOML would read it; a bare word is a string."""
    *path, last = name.split(".")
    for part in path:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{name}: {part} is a setting by itself, not a group of them")
    try:
        values[last] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        values[last] = text


def _at_most(name: str, value: int, most: int) -> None:
    if value > most:
        raise ConfigError(f"{name} is {value}: it must be at most {most}")
