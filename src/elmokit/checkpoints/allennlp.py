"""AllenNLP's own archives, unpacked: config.json and weights.th, where an ELMo is part of the model."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

import elmokit.checkpoints.tables as tables
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.options import CharCnnOptions, EmbeddingOptions, LstmOptions, Options, read_options, to_config
from elmokit.checkpoints.torch_files import as_float, read_state
from elmokit.config import ModelConfig
from elmokit.errors import CheckpointError

NAME = "allennlp"
LAYOUT = "an AllenNLP model with an ELMo in it (config.json, weights.th; or their .tar.gz)"
CONFIG, WEIGHTS, BEST = "config.json", "weights.th", "best.th"
TOKENS, CELLS, CACHE = "_token_embedder.", "_elmo_lstm.", "_word_embedding.weight"
LETTERS = f"{TOKENS}_char_embedding_weights"
OPTIONS_PATTERN = "fta/*options_file"  # an archive may bring the files that its config names


def recognises(path: Path) -> bool:
    """The folder that an archive unpacks to, or the weights in it."""
    if path.is_dir():
        return (path / CONFIG).exists() and _weights_in(path).exists()
    return path.suffix == ".th" and path.is_file()


def read(path: Path) -> Checkpoint:
    """Take the ELMo out of the model around it."""
    weights_path = _weights_in(path) if path.is_dir() else path
    state = _elmo_in(weights_path, read_state(weights_path))
    described_by, options = _options(weights_path, state)
    # AllenNLP has put the forget gate's constant into the biases, and knows no model without residuals
    config = replace(to_config(described_by, options), forget_bias=0.0, residual=True)
    read_one = partial(as_float, weights_path)
    weights = tables.to_ours(table_of(config), config, state, read_one, path=weights_path, described_by=described_by)
    return Checkpoint(config, weights, None, f"{NAME} ({weights_path})")


def _weights_in(folder: Path) -> Path:
    return folder / (WEIGHTS if (folder / WEIGHTS).exists() else BEST)


def _elmo_in(path: Path, everything: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the ELMo, without what their names begin with."""
    found = {weight.data_ptr(): name for name, weight in everything.items() if name.endswith(LETTERS)}
    if not found:
        raise CheckpointError(f"{path}: no ELMo is among its weights (no '…{LETTERS}')")
    if len(found) > 1:
        raise CheckpointError(f"{path}: more than one ELMo is among its weights ({', '.join(found.values())})")
    prefix = found.popitem()[1].removesuffix(LETTERS)
    state = {name.removeprefix(prefix): weight for name, weight in everything.items() if name.startswith(prefix)}
    state.pop(CACHE, None)  # vectors of a vocabulary, computed from what else is here
    return state


def _options(path: Path, state: dict[str, Tensor]) -> tuple[Path, Options]:
    """The options in the archive and their file, or the sizes that the weights themselves have.

    What these do not show is as in every model that AllenAI published.
    """
    for file in sorted(path.parent.glob(OPTIONS_PATTERN)):
        options = read_options(file)
        if options.char_cnn is None:
            raise CheckpointError(f"{file}: no char_cnn, but AllenNLP's ELMo reads characters")
        return file, options
    filters = [state[name].shape for name in _numbered(state, rf"{TOKENS}char_conv_(\d+)\.weight")]
    layers = len(_numbered(state, rf"{CELLS}forward_layer_(\d+)\.state_projection\..*"))
    highways = len(_numbered(state, rf"{TOKENS}_highways\._layers\.(\d+)\.weight"))
    try:
        projection, hidden = state[f"{CELLS}forward_layer_0.state_projection.weight"].shape
        _, dim = state[LETTERS].shape
        sizes = tuple((width, count) for count, _, width in filters)
    except (KeyError, ValueError):
        raise CheckpointError(f"{path}: its ELMo is incomplete or not one: its sizes cannot be read off it") from None
    cnn = CharCnnOptions(EmbeddingOptions(dim), sizes, n_characters=262, highways=highways)
    lstm = LstmOptions(hidden, projection, layers, cell_clip=3, projection_clip=3, residual=True)
    return path, Options(lstm, cnn)


def _numbered(names: Iterable[str], pattern: str) -> list[str]:
    """The names that match, by the number in them."""
    matches = [match for name in names if (match := re.fullmatch(pattern, name))]
    return [match.string for match in sorted(matches, key=lambda match: int(match[1]))]


def table_of(config: ModelConfig) -> list[tables.Row]:
    """What AllenNLP calls each weight."""
    changes = (lambda w: w[1:], lambda w: tables.joined([w.new_zeros(1, w.shape[1]), w]))  # the first is the mask's
    letters = tables.one(LETTERS, tables.CHARACTERS, *changes)
    names = ("char_conv_", "_highways._layers.", "_projection")
    tokens = tables.torch_token_rows(config, *(TOKENS + name for name in names))
    return [letters, *tokens, *tables.torch_cell_rows(config, CELLS)]
