"""The options.json of bilm-tf, which AllenNLP and others took over; fields have our names, and are renamed."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from elmokit.config import CharacterConfig, Filters, ModelConfig, SoftmaxConfig, WordConfig
from elmokit.errors import CheckpointError, ConfigError
from elmokit.files import read_description

OPTIONS = "options.json"
SHARED = ("filters", "max_characters", "highways", "activation")  # of a character CNN, here and in our config
CNN_NAMES = {"max_characters": "max_characters_per_token", "highways": "n_highway"}
_LSTM = {"hidden": "dim", "projection": "projection_dim", "layers": "n_layers", "projection_clip": "proj_clip"}


class EmbeddingOptions(msgspec.Struct):
    """`char_cnn.embedding`."""

    dim: int


class CharCnnOptions(msgspec.Struct, rename=CNN_NAMES):
    """`char_cnn`."""

    embedding: EmbeddingOptions
    filters: Filters
    n_characters: Literal[261, 262]  # training options leave out the mask row, inference options count it
    max_characters: int = 50
    highways: int | None = 0
    activation: Literal["relu", "tanh"] = "relu"


class LstmOptions(msgspec.Struct, rename=_LSTM):
    """`lstm`."""

    hidden: int
    projection: int
    layers: int = 1
    cell_clip: float | None = None
    projection_clip: float | None = None
    residual: bool = msgspec.field(default=False, name="use_skip_connections")


class Options(msgspec.Struct, omit_defaults=True):
    """What options.json says of the model; everything else in it is ignored."""

    lstm: LstmOptions
    char_cnn: CharCnnOptions | None = None
    n_tokens_vocab: int = 0
    bidirectional: bool = True
    sample_softmax: bool = True
    n_negative_samples_batch: int = 8192
    share_embedding_softmax: bool = False


def read_options(path: Path) -> Options:
    """The options in a file."""
    options = read_description(path, Options, what="the options of an ELMo")
    if not options.bidirectional:
        raise CheckpointError(f"{path}: a language model that reads in one direction alone is not an ELMo")
    return options


def to_config(path: Path, options: Options, *, words: int = 0, softmax: bool = False) -> ModelConfig:
    """Our config; `words` is the size of a vocabulary whose vectors stand in for the characters."""
    cnn, size = None if words else options.char_cnn, options.n_tokens_vocab
    shared: dict[str, Any] = (
        {name: getattr(cnn, name) for name in SHARED} | {"highways": cnn.highways or 0} if cnn else {}
    )
    kind: Literal["sampled", "full"] = "sampled" if options.sample_softmax else "full"
    try:
        return ModelConfig(
            **msgspec.structs.asdict(options.lstm),
            characters=CharacterConfig(dim=cnn.embedding.dim, **shared) if cnn else None,
            words=None if cnn else WordConfig(size=words or size, dim=options.lstm.projection),
            softmax=SoftmaxConfig(kind=kind, size=size, samples=options.n_negative_samples_batch) if softmax else None,
            forget_bias=1.0,  # TF adds it at run time, so it is not in the file
        )
    except ConfigError as error:
        raise CheckpointError(f"{path}: {error}") from None


def from_config(config: ModelConfig) -> Options:
    """The options of a model."""
    lstm = LstmOptions(**{name: getattr(config, name) for name in LstmOptions.__struct_fields__})
    if config.characters is None:
        return Options(lstm, n_tokens_vocab=config.words.size if config.words else 0)
    cnn = {name: getattr(config.characters, name) for name in SHARED}
    return Options(lstm, CharCnnOptions(EmbeddingOptions(config.characters.dim), n_characters=262, **cnn))
