"""AllenAI's format: options.json and weights.hdf5, as bilm-tf wrote them and AllenNLP and simple_elmo read them.

A model may read words instead of characters: bilm-tf can train one, and can keep the token vectors of a vocabulary in a
file of their own (`embedding`, a token cache), which then stand in for the character CNN.
"""

import math
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmokit.checkpoints.checkpoint import VOCABULARY, Checkpoint, vocabulary_in
from elmokit.checkpoints.options import OPTIONS, from_config, read_options, to_config
from elmokit.checkpoints.tables import tensorflow_rows, to_ours, to_theirs
from elmokit.errors import CheckpointError
from elmokit.files import as_json, parsing
from elmokit.hdf5 import NewHdf5
from elmokit.text.vocabulary import write_vocabulary

NAME = "allenai"
LAYOUT = "an AllenAI model (options.json, weights.hdf5)"
WEIGHTS = "weights.hdf5"
FILES: tuple[str, ...] = (OPTIONS, WEIGHTS, VOCABULARY)
HDF5_ENDINGS = (".hdf5", ".h5")
TOKENS, FORWARD = "embedding", "RNN_0"
ONE_LAYER = re.compile("^(RNN_[01]/RNN)/LSTMCell/")  # where bilm-tf gives it no number
MOST_COMPRESSION = 100  # real weights hardly compress; more than this is a file made to exhaust memory


def recognises(path: Path) -> bool:
    """An HDF5 file, an options file, or a folder with either."""
    if path.is_dir():
        return bool(_hdf5_files(path)) or (path / OPTIONS).exists()
    return path.suffix in HDF5_ENDINGS or path.name.endswith(OPTIONS)


def read(path: Path) -> Checkpoint:
    """Find the weights and their options, and read both."""
    return read_files(*_find(path))


def read_files(options_path: Path, weights_path: Path, tokens_path: Path | None = None) -> Checkpoint:
    """The model in these files, whatever their names; the vectors of a vocabulary may be in a file of their own."""
    options = read_options(options_path)
    with ExitStack() as stack:
        found = _datasets(stack, weights_path)
        if tokens_path is not None:
            found = {name: data for name, data in found.items() if name.startswith("RNN")}
            found |= _datasets(stack, tokens_path)
        words = found[TOKENS].shape[0] if TOKENS in found and found[TOKENS].ndim else 0
        config = to_config(options_path, options, words=words if tokens_path or not options.char_cnn else 0)
        rows = tensorflow_rows(config)
        weights = to_ours(rows, config, found, _read_tensor, path=weights_path, described_by=options_path)
    vocabulary = vocabulary_in(weights_path.parent, config)
    return Checkpoint(config, weights, vocabulary, f"{NAME} ({tokens_path or weights_path})")


def read_token_vectors(path: Path) -> Tensor:
    """The vectors of a vocabulary, (V, P), that bilm-tf keeps in a file of their own."""
    with ExitStack() as stack:
        found = _datasets(stack, path)
        if TOKENS not in found:
            raise CheckpointError(f"{path}: it holds no '{TOKENS}', so it is no file of token vectors")
        return _read_tensor(TOKENS, found[TOKENS])


def check_writable(checkpoint: Checkpoint, *, half: bool) -> None:
    """The format knows LSTMs over byte characters or over words as wide as the output, in single precision."""
    config = checkpoint.config
    words, characters = config.words, config.characters
    reasons = {
        "the cell is a GRU": config.cell != "lstm",
        "the model reads word vectors beside characters": words and characters,
        "not every word has a vector of its own": words and not characters and words.rows < words.size,
        "its word vectors are projected": words and not characters and words.dim != config.projection,
        "its characters are Unicode characters, not bytes": characters and characters.alphabet != "bytes",
        "half precision was asked for": half,
    }
    if given := [reason for reason, holds in reasons.items() if holds]:
        raise CheckpointError(f"AllenAI's format cannot hold this model: {', '.join(given)}")


def write(checkpoint: Checkpoint, folder: Path, *, half: bool) -> None:  # noqa: ARG001
    """Write options and weights, and the vocabulary where there is one."""
    (folder / OPTIONS).write_bytes(as_json(from_config(checkpoint.config)))
    with NewHdf5(folder / WEIGHTS) as weights:
        for name, weight in to_theirs(tensorflow_rows(checkpoint.config), checkpoint.weights):
            weights.file[name] = weight.contiguous().numpy()
    if checkpoint.vocabulary is not None:
        write_vocabulary(folder / VOCABULARY, checkpoint.vocabulary)


def _find(path: Path) -> tuple[Path, Path, Path | None]:
    """The options, weights and token cache, if any, that belong together."""
    if path.is_file() and path.suffix in HDF5_ENDINGS and _holds(path, TOKENS) and not _holds(path, FORWARD):
        weights = _weights_in(path.parent)
        return _options_of(weights), weights, path
    if path.is_file() and path.suffix not in HDF5_ENDINGS:
        options, weights = path, _weights_of(path)
    else:
        weights = _weights_in(path) if path.is_dir() else path
        options = _options_of(weights)
    if not _holds(weights, FORWARD) or _holds(weights, TOKENS) or _holds(weights, "char_embed"):
        return options, weights, None
    caches = [file for file in _hdf5_files(weights.parent) if file != weights and _holds(file, TOKENS)]
    return options, weights, caches[0] if len(caches) == 1 else None


def _options_of(weights: Path) -> Path:
    names = [weights.stem.removesuffix("weights") + OPTIONS, OPTIONS]
    for name in names:
        if (options := weights.with_name(name)).exists():
            return options
    others = list(weights.parent.glob(f"*{OPTIONS}"))
    if len(others) == 1:  # as PubMed's, whose weights are named otherwise
        return others[0]
    wanted = " or ".join(dict.fromkeys(names))
    raise CheckpointError(f"{weights}: its options are missing: {wanted} should lie beside it")


def _weights_of(options: Path) -> Path:
    stem = options.name.removesuffix(OPTIONS) + "weights"
    found = (options.with_name(stem + ending) for ending in HDF5_ENDINGS)
    return next((weights for weights in found if weights.exists()), None) or _weights_in(options.parent)


def _weights_in(folder: Path) -> Path:
    """The one HDF5 file of the folder that holds a biLM."""
    files = _hdf5_files(folder)
    if not files:
        raise CheckpointError(f"{folder}: {OPTIONS} is here, but no weights (a file ending in .hdf5)")
    holding = [file for file in files if len(files) == 1 or _holds(file, FORWARD)]
    if len(holding) == 1:
        return holding[0]
    names = ", ".join(file.name for file in holding or files)
    which = "more than one HDF5 file holds a biLM" if holding else "no HDF5 file holds a biLM"
    raise CheckpointError(f"{folder}: {which} ({names}). Name the weights file itself")


def _hdf5_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in HDF5_ENDINGS and file.is_file())


def _holds(path: Path, name: str) -> bool:
    import h5py  # models in other formats need not wait for it

    try:
        with h5py.File(path, "r") as file:
            return name in file
    except (OSError, RuntimeError):  # of a damaged file, which whoever reads it will tell
        return False


def _datasets(stack: ExitStack, path: Path) -> dict[str, Any]:
    """Everything in a file, which is open as long as the stack is, by its name in a model of several layers."""
    import h5py

    found: dict[str, Any] = {}
    with parsing(path, "HDF5"):
        file = stack.enter_context(h5py.File(path, "r"))
        file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
        claimed = sum(math.prod(data.shape or ()) * data.dtype.itemsize for data in found.values())
    if claimed > MOST_COMPRESSION * path.stat().st_size:
        raise CheckpointError(f"{path}: its weights claim {claimed:,} bytes, far more than the file can hold")
    return {ONE_LAYER.sub(r"\1/MultiRNNCell/Cell0/LSTMCell/", name): data for name, data in found.items()}


def _read_tensor(name: str, data: Any) -> Tensor:
    """Refuse numbers that are not numbers, not in this file, or not really there."""
    path = Path(data.file.filename)
    if data.dtype.kind != "f":
        raise CheckpointError(f"{path}: '{name}' holds {data.dtype}, expected floating-point numbers")
    if data.external is not None or data.is_virtual:
        raise CheckpointError(f"{path}: '{name}' is kept in another file, which is not followed")
    with parsing(path, f"HDF5, '{name}'"):
        return torch.from_numpy(data.astype("float32")[()])
