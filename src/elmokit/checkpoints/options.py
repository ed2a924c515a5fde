"""The options.json of bilm-tf, which AllenNLP and others took over."""

import json
from pathlib import Path
from typing import Literal

import msgspec

from elmokit.config import CharacterConfig, Filters, ModelConfig, SoftmaxConfig, WordConfig
from elmokit.errors import CheckpointError, ConfigError

OPTIONS = "options.json"


class EmbeddingOptions(msgspec.Struct):
    """`char_cnn.embedding`."""

    dim: int


class CharCnnOptions(msgspec.Struct):
    """`char_cnn`."""

    embedding: EmbeddingOptions
    filters: Filters
    n_characters: Literal[261, 262]  # training options leave out the mask row, inference options count it
    max_characters_per_token: int = 50
    n_highway: int | None = 0
    activation: Literal["relu", "tanh"] = "relu"


class LstmOptions(msgspec.Struct):
    """`lstm`."""

    dim: int
    projection_dim: int
    n_layers: int = 1
    cell_clip: float | None = None
    proj_clip: float | None = None
    use_skip_connections: bool = False


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
    try:
        options = msgspec.json.decode(path.read_bytes(), type=Options)
    except msgspec.ValidationError as error:
        raise CheckpointError(f"{path}: not the options of an ELMo: {error}") from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON: {error}") from None
    if not options.bidirectional:
        raise CheckpointError(f"{path}: a language model that reads in one direction alone is not an ELMo")
    return options


def write_options(path: Path, config: ModelConfig) -> None:
    """The options of a model."""
    text = json.dumps(msgspec.to_builtins(_from_config(config)), indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def to_config(path: Path, options: Options, *, words: int = 0, softmax: bool = False) -> ModelConfig:
    """Our config; `words` is the size of a vocabulary whose vectors stand in for the characters."""
    lstm, cnn = options.lstm, None if words else options.char_cnn
    try:
        return ModelConfig(
            characters=_characters(cnn) if cnn else None,
            words=None if cnn else WordConfig(size=words or options.n_tokens_vocab, dim=lstm.projection_dim),
            layers=lstm.n_layers,
            hidden=lstm.dim,
            projection=lstm.projection_dim,
            cell_clip=lstm.cell_clip,
            projection_clip=lstm.proj_clip,
            residual=lstm.use_skip_connections,
            softmax=_softmax(options) if softmax else None,
            forget_bias=1.0,  # TF adds it at run time, so it is not in the file
        )
    except ConfigError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _characters(cnn: CharCnnOptions) -> CharacterConfig:
    return CharacterConfig(
        max_characters=cnn.max_characters_per_token,
        dim=cnn.embedding.dim,
        filters=cnn.filters,
        highways=cnn.n_highway or 0,
        activation=cnn.activation,
    )


def _softmax(options: Options) -> SoftmaxConfig:
    kind: Literal["sampled", "full"] = "sampled" if options.sample_softmax else "full"
    return SoftmaxConfig(kind=kind, size=options.n_tokens_vocab, samples=options.n_negative_samples_batch)


def _from_config(config: ModelConfig) -> Options:
    lstm = LstmOptions(
        dim=config.hidden,
        projection_dim=config.projection,
        n_layers=config.layers,
        cell_clip=config.cell_clip,
        proj_clip=config.projection_clip,
        use_skip_connections=config.residual,
    )
    cnn = _cnn_options(config.characters) if config.characters else None
    return Options(lstm, cnn, n_tokens_vocab=config.words.size if config.words else 0)


def _cnn_options(characters: CharacterConfig) -> CharCnnOptions:
    return CharCnnOptions(
        EmbeddingOptions(characters.dim),
        characters.filters,
        n_characters=262,
        max_characters_per_token=characters.max_characters,
        n_highway=characters.highways,
        activation=characters.activation,
    )
