"""AllenAI's format: options.json and weights.hdf5, as bilm-tf wrote them and AllenNLP read them."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import h5py
import msgspec
import torch
from torch import Tensor

from elmokit.checkpoints.checkpoint import Checkpoint, check_shapes, weight_shapes
from elmokit.config import CharacterConfig, Filters, ModelConfig
from elmokit.errors import CheckpointError, ConfigError
from elmokit.hdf5 import NewHdf5
from elmokit.text.vocabulary import read_vocabulary, write_vocabulary

NAME = "allenai"
LAYOUT = "an AllenAI model (options.json, weights.hdf5)"
OPTIONS, WEIGHTS, VOCABULARY = "options.json", "weights.hdf5", "vocab.txt"
HDF5_ENDINGS = (".hdf5", ".h5")
MOST_COMPRESSION = 1000  # real weights hardly compress; more than this is a file made to exhaust memory


class EmbeddingOptions(msgspec.Struct):
    """`char_cnn.embedding`."""

    dim: int


class CharCnnOptions(msgspec.Struct):
    """`char_cnn`."""

    embedding: EmbeddingOptions
    filters: Filters
    n_characters: Literal[261, 262]  # training options leave out the mask row, inference options count it
    max_characters_per_token: int = 50
    n_highway: int = 0
    activation: Literal["relu", "tanh"] = "relu"


class LstmOptions(msgspec.Struct):
    """`lstm`."""

    dim: int
    projection_dim: int
    n_layers: int
    cell_clip: float | None = None
    proj_clip: float | None = None
    use_skip_connections: bool = False


class Options(msgspec.Struct):
    """What options.json says of the architecture; everything else in it is ignored."""

    lstm: LstmOptions
    char_cnn: CharCnnOptions


class Row(NamedTuple):
    """One weight: what the two sides call it and how its axes go over."""

    theirs: str
    ours: str
    to_ours: Callable[[Tensor], Tensor]
    to_theirs: Callable[[Tensor], Tensor]


def recognises(path: Path) -> bool:
    """An HDF5 file, an options file, or a folder with either."""
    if path.is_file():
        return path.suffix in HDF5_ENDINGS or path.name.endswith(OPTIONS)
    return bool(_hdf5_files(path)) or (path / OPTIONS).exists()


def read(path: Path) -> Checkpoint:
    """Find the weights and their options, and read both."""
    options_path, weights_path = _find(path)
    config = _config(options_path)
    weights = _read_weights(weights_path, config, options_path)
    vocabulary_path = weights_path.with_name(VOCABULARY)
    vocabulary = read_vocabulary(vocabulary_path) if vocabulary_path.exists() else None
    return Checkpoint(config, weights, vocabulary, f"{NAME} ({weights_path})")


def check_writable(checkpoint: Checkpoint, *, half: bool) -> None:
    """The format knows one architecture: byte characters into LSTMs, in single precision."""
    config = checkpoint.config
    reasons = {
        "the cell is a GRU": config.cell != "lstm",
        "the model reads word vectors": config.words is not None,
        "its characters are Unicode characters, not bytes": config.characters and config.characters.alphabet != "bytes",
        "its forget gate has no constant 1 added": config.forget_bias != 1.0,
        "half precision was asked for": half,
    }
    if given := [reason for reason, holds in reasons.items() if holds]:
        raise CheckpointError(f"AllenAI's format cannot hold this model: {', '.join(given)}")


def write(checkpoint: Checkpoint, folder: Path, *, half: bool) -> None:  # noqa: ARG001
    """Write options and weights, and the vocabulary where there is one."""
    options = json.dumps(msgspec.to_builtins(_options(checkpoint.config)), indent=2)
    (folder / OPTIONS).write_text(options + "\n", encoding="utf-8")
    with NewHdf5(folder / WEIGHTS) as weights:
        for row in _table(checkpoint.config):
            weights.file[row.theirs] = row.to_theirs(checkpoint.weights[row.ours]).contiguous().numpy()
    if checkpoint.vocabulary is not None:
        write_vocabulary(folder / VOCABULARY, checkpoint.vocabulary)


def _table(config: ModelConfig) -> list[Row]:
    """Every weight of the format, for a model of these sizes."""
    assert config.characters is not None
    cnn = "tokens.characters"
    rows = [Row("char_embed", f"{cnn}.embedding.weight", _same, _same)]
    for i in range(len(config.characters.filters)):
        rows.append(Row(f"CNN/W_cnn_{i}", f"{cnn}.convolutions.{i}.weight", _filters_to_ours, _filters_to_theirs))
        rows.append(Row(f"CNN/b_cnn_{i}", f"{cnn}.convolutions.{i}.bias", _same, _same))
    for i in range(config.characters.highways):
        for theirs, ours in (("carry", "gate"), ("transform", "transform")):
            rows += _linear(f"CNN_high_{i}", theirs, f"{cnn}.highways.{i}.{ours}")
    if config.token_features != config.projection:
        rows += _linear("CNN_proj", "proj", "tokens.projection")
    for direction, stack in enumerate(("forward_layers", "backward_layers")):
        for i in range(config.layers):
            cell, layer = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell", f"{stack}.{i}"
            rows.append(Row(f"{cell}/W_0", f"{layer}.weight", lambda w: _gates_to_ours(w.t()), _matrix_to_theirs))
            rows.append(Row(f"{cell}/B", f"{layer}.bias", _gates_to_ours, _gates_to_theirs))
            if config.projected:
                rows.append(Row(f"{cell}/W_P_0", f"{layer}.projection", torch.t, torch.t))
    return rows


def _linear(group: str, name: str, ours: str) -> list[Row]:
    return [
        Row(f"{group}/W_{name}", f"{ours}.weight", torch.t, torch.t),
        Row(f"{group}/b_{name}", f"{ours}.bias", _same, _same),
    ]


def _same(weight: Tensor) -> Tensor:
    return weight


def _filters_to_ours(weight: Tensor) -> Tensor:
    return weight[0].permute(2, 1, 0)  # (1, width, E, count) → (count, E, width)


def _filters_to_theirs(weight: Tensor) -> Tensor:
    return weight.permute(2, 1, 0)[None]


def _gates_to_ours(weight: Tensor) -> Tensor:
    i, g, f, o = weight.chunk(4)  # TensorFlow calls the candidate j
    return torch.cat([i, f, o, g])


def _gates_to_theirs(weight: Tensor) -> Tensor:
    i, f, o, g = weight.chunk(4)
    return torch.cat([i, g, f, o])


def _matrix_to_theirs(weight: Tensor) -> Tensor:
    return _gates_to_theirs(weight).t()


def _config(path: Path) -> ModelConfig:
    """Our config from their options."""
    try:
        options = msgspec.json.decode(path.read_bytes(), type=Options)
        return _to_config(options)
    except msgspec.ValidationError as error:
        raise CheckpointError(f"{path}: not the options of a character ELMo: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: not JSON: {error}") from None
    except ConfigError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _to_config(options: Options) -> ModelConfig:
    lstm, cnn = options.lstm, options.char_cnn
    return ModelConfig(
        characters=CharacterConfig(
            max_characters=cnn.max_characters_per_token,
            dim=cnn.embedding.dim,
            filters=cnn.filters,
            highways=cnn.n_highway,
            activation=cnn.activation,
        ),
        layers=lstm.n_layers,
        hidden=lstm.dim,
        projection=lstm.projection_dim,
        cell_clip=lstm.cell_clip,
        projection_clip=lstm.proj_clip,
        residual=lstm.use_skip_connections,
        forget_bias=1.0,  # TF adds it at run time, so it is not in the file
    )


def _options(config: ModelConfig) -> Options:
    cnn = config.characters
    assert cnn is not None
    return Options(
        LstmOptions(
            dim=config.hidden,
            projection_dim=config.projection,
            n_layers=config.layers,
            cell_clip=config.cell_clip,
            proj_clip=config.projection_clip,
            use_skip_connections=config.residual,
        ),
        CharCnnOptions(
            EmbeddingOptions(cnn.dim),
            cnn.filters,
            n_characters=262,
            max_characters_per_token=cnn.max_characters,
            n_highway=cnn.highways,
            activation=cnn.activation,
        ),
    )


def _find(path: Path) -> tuple[Path, Path]:
    """The options and the weights that belong together."""
    if path.is_dir():
        weights = _weights_in(path)
    elif path.suffix in HDF5_ENDINGS:
        weights = path
    else:
        return path, _weights_of(path)
    return _options_of(weights), weights


def _options_of(weights: Path) -> Path:
    names = [weights.stem.removesuffix("weights") + OPTIONS, OPTIONS]
    for name in names:
        if (options := weights.with_name(name)).exists():
            return options
    raise CheckpointError(
        f"{weights}: its options are missing: {' or '.join(dict.fromkeys(names))} should lie beside it"
    )


def _weights_of(options: Path) -> Path:
    stem = options.name.removesuffix(OPTIONS) + "weights"
    for ending in HDF5_ENDINGS:
        if (weights := options.with_name(stem + ending)).exists():
            return weights
    return _weights_in(options.parent)


def _weights_in(folder: Path) -> Path:
    """The one HDF5 file of the folder that holds a biLM."""
    files = _hdf5_files(folder)
    if len(files) == 1:
        return files[0]
    if not files:
        raise CheckpointError(f"{folder}: {OPTIONS} is here, but no weights (a file ending in .hdf5)")
    holding = [file for file in files if _holds_bilm(file)]
    if len(holding) == 1:
        return holding[0]
    names = ", ".join(file.name for file in holding or files)
    which = "more than one HDF5 file holds a biLM" if holding else "no HDF5 file holds a biLM"
    raise CheckpointError(f"{folder}: {which} ({names}). Name the weights file itself")


def _hdf5_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in HDF5_ENDINGS and file.is_file())


def _holds_bilm(path: Path) -> bool:
    try:
        with h5py.File(path, "r") as file:
            return "RNN_0" in file and "RNN_1" in file
    except OSError:
        return False


def _read_weights(path: Path, config: ModelConfig, options: Path) -> dict[str, Tensor]:
    rows, shapes = _table(config), weight_shapes(config)
    expected = {row.theirs: tuple(row.to_theirs(torch.empty(shapes[row.ours], device="meta")).shape) for row in rows}
    try:
        with h5py.File(path, "r") as file:
            found = _datasets(file)
            check_shapes(path, {name: data.shape for name, data in found.items()}, expected, described_by=str(options))
            _check_stored(path, found)
            return {row.ours: row.to_ours(_tensor(found[row.theirs])).contiguous() for row in rows}
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read as HDF5: {error}. Is it complete?") from None


def _datasets(file: h5py.File) -> dict[str, Any]:
    found: dict[str, Any] = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found


def _check_stored(path: Path, found: dict[str, Any]) -> None:
    """Refuse numbers that are not numbers, not in this file, or not really there."""
    size = path.stat().st_size
    for name, data in found.items():
        if data.dtype.kind != "f":
            raise CheckpointError(f"{path}: '{name}' holds {data.dtype}, expected floating-point numbers")
        if data.external is not None or data.is_virtual:
            raise CheckpointError(f"{path}: '{name}' is kept in another file, which is not followed")
        if math.prod(data.shape) * data.dtype.itemsize > MOST_COMPRESSION * size:
            raise CheckpointError(f"{path}: '{name}' claims {data.shape}, far more than the file can hold")


def _tensor(data: Any) -> Tensor:
    return torch.from_numpy(data.astype("float32")[()])
