"""Weights as other code bases name and lay them out: tables of names, and pure functions between the two sides."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from elmokit.checkpoints.checkpoint import Shapes, weight_shapes
from elmokit.config import ModelConfig

CNN = "tokens.characters"
CHARACTERS = f"{CNN}.embedding.weight"
WORDS = "tokens.words.weight"
PROJECTION = "tokens.projection"
DIRECTIONS = ("forward", "backward")


class Row(NamedTuple):
    """Weights that go over together: what either side calls them, and how they change."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    to_ours: Callable[..., Sequence[Tensor]]
    to_theirs: Callable[..., Sequence[Tensor]]


def to_ours(rows: Sequence[Row], read: Callable[[str], Tensor]) -> dict[str, Tensor]:
    """All weights by our names; `read` gives one of theirs, so that few exist twice at a time."""
    weights: dict[str, Tensor] = {}
    for row in rows:
        found = row.to_ours(*map(read, row.theirs))
        weights |= {name: weight.contiguous() for name, weight in zip(row.ours, found, strict=True)}
    return weights


def to_theirs(rows: Sequence[Row], weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """All weights by their names."""
    for row in rows:
        yield from zip(row.theirs, row.to_theirs(*(weights[name] for name in row.ours)), strict=True)


def their_shapes(rows: Sequence[Row], config: ModelConfig) -> Shapes:
    """What shape each of their weights has in a model of these sizes."""
    ours = {name: torch.empty(shape, device="meta") for name, shape in weight_shapes(config).items()}
    return {name: tuple(weight.shape) for name, weight in to_theirs(rows, ours)}


def same(theirs: str, ours: str) -> Row:
    """A weight that is the same on both sides."""
    return Row((theirs,), (ours,), _same, _same)


def same_linear(theirs: str, ours: str) -> list[Row]:
    """A matrix and its bias, the same on both sides."""
    return [same(f"{theirs}.{part}", f"{ours}.{part}") for part in ("weight", "bias")]


def same_convolutions(count: int, theirs: str) -> list[Row]:
    """The filters as torch has them on both sides."""
    return [row for i in range(count) for row in same_linear(f"{theirs}{i}", f"{CNN}.convolutions.{i}")]


def linear(weight: str, bias: str, ours: str) -> list[Row]:
    """A matrix that multiplies from the other side, and its bias."""
    return [Row((weight,), (f"{ours}.weight",), _transposed, _transposed), same(bias, f"{ours}.bias")]


def tensorflow_rows(config: ModelConfig) -> list[Row]:
    """The biLM as bilm-tf names it in HDF5."""
    rows = [same("embedding", WORDS)] if config.words else []
    if config.characters is not None:
        rows.append(same("char_embed", CHARACTERS))
        for i in range(len(config.characters.filters)):
            ours = f"{CNN}.convolutions.{i}"
            rows.append(Row((f"CNN/W_cnn_{i}",), (f"{ours}.weight",), _filters_to_ours, _filters_to_theirs))
            rows.append(same(f"CNN/b_cnn_{i}", f"{ours}.bias"))
        for i, (theirs, name) in product(range(config.characters.highways), (("carry", "gate"), ("transform",) * 2)):
            rows += linear(f"CNN_high_{i}/W_{theirs}", f"CNN_high_{i}/b_{theirs}", f"{CNN}.highways.{i}.{name}")
    if config.token_features != config.projection:
        rows += linear("CNN_proj/W_proj", "CNN_proj/b_proj", PROJECTION)
    for (number, way), i in product(enumerate(DIRECTIONS), range(config.layers)):
        cell, layer = f"RNN_{number}/RNN/MultiRNNCell/Cell{i}/LSTMCell", f"{way}_layers.{i}"
        rows.append(Row((f"{cell}/W_0",), (f"{layer}.weight",), _kernel_to_ours, _kernel_to_theirs))
        missing = config.forget_bias - 1.0  # TensorFlow adds 1 at run time, whatever is stored
        bias_to_theirs = partial(_bias_to_theirs, missing=missing)
        rows.append(Row((f"{cell}/B",), (f"{layer}.bias",), _bias_to_ours, bias_to_theirs))
        if config.projected:
            rows.append(Row((f"{cell}/W_P_0",), (f"{layer}.projection",), _transposed, _transposed))
    return rows


def torch_cell_rows(config: ModelConfig, prefix: str = "") -> list[Row]:
    """The recurrent layers as AllenNLP's `ElmoLstm` names them; the forget gate's constant is in its biases."""
    rows = []
    for way, i in product(DIRECTIONS, range(config.layers)):
        cell, layer = f"{prefix}{way}_layer_{i}", f"{way}_layers.{i}"
        halves = (f"{cell}.input_linearity.weight", f"{cell}.state_linearity.weight")
        rows.append(Row(halves, (f"{layer}.weight",), _halves_to_ours, _halves_to_theirs))
        bias = (f"{cell}.state_linearity.bias",)
        rows.append(Row(bias, (f"{layer}.bias",), _torch_bias_to_ours, _torch_bias_to_theirs))
        if config.projected:
            rows.append(same(f"{cell}.state_projection.weight", f"{layer}.projection"))
    return rows


def torch_highway_rows(count: int, prefix: str) -> list[Row]:
    """The highways as AllenNLP's `Highway` names them: both matrices as one, and a gate that carries."""
    rows = []
    for i, part in product(range(count), ("weight", "bias")):
        ours = (f"{CNN}.highways.{i}.gate.{part}", f"{CNN}.highways.{i}.transform.{part}")
        rows.append(Row((f"{prefix}_layers.{i}.{part}",), ours, _highway_to_ours, _highway_to_theirs))
    return rows


def joined(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The parts as one tensor, or its shape if they are mere shapes."""
    if not parts[0].is_meta:
        return torch.cat(list(parts), dim)
    sizes = list(parts[0].shape)  # torch would load its compiler to join shapes, which takes two seconds
    sizes[dim] = sum(part.shape[dim] for part in parts)
    return parts[0].new_empty(sizes)


def _same(*weights: Tensor) -> Sequence[Tensor]:
    return weights


def _transposed(weight: Tensor) -> Sequence[Tensor]:
    return (weight.t(),)


def _filters_to_ours(weight: Tensor) -> Sequence[Tensor]:
    return (weight[0].permute(2, 1, 0),)  # (1, width, E, count) → (count, E, width)


def _filters_to_theirs(weight: Tensor) -> Sequence[Tensor]:
    return (weight.permute(2, 1, 0)[None],)


def _kernel_to_ours(kernel: Tensor) -> Sequence[Tensor]:
    i, g, f, o = kernel.chunk(4, dim=1)  # TensorFlow calls the candidate j
    return (joined([i, f, o, g], dim=1).t(),)  # torch transposes a whole matrix faster than its parts


def _kernel_to_theirs(weight: Tensor) -> Sequence[Tensor]:
    i, f, o, g = weight.chunk(4)
    return (joined([i, g, f, o]).t(),)


def _bias_to_ours(bias: Tensor) -> Sequence[Tensor]:
    i, g, f, o = bias.chunk(4)
    return (joined([i, f, o, g]),)


def _bias_to_theirs(bias: Tensor, *, missing: float) -> Sequence[Tensor]:
    i, f, o, g = bias.chunk(4)
    return (joined([i, g, f + missing if missing else f, o]),)  # -0.0 + 0.0 would be another bit pattern


def _torch_gates_to_ours(weight: Tensor) -> Tensor:
    i, f, g, o = weight.chunk(4)
    return joined([i, f, o, g])


def _torch_gates_to_theirs(weight: Tensor) -> Tensor:
    i, f, o, g = weight.chunk(4)
    return joined([i, f, g, o])


def _halves_to_ours(of_input: Tensor, of_state: Tensor) -> Sequence[Tensor]:
    return (_torch_gates_to_ours(joined([of_input, of_state], dim=1)),)


def _halves_to_theirs(weight: Tensor) -> Sequence[Tensor]:
    return _torch_gates_to_theirs(weight).chunk(2, dim=1)


def _torch_bias_to_ours(bias: Tensor) -> Sequence[Tensor]:
    return (_torch_gates_to_ours(bias),)


def _torch_bias_to_theirs(bias: Tensor) -> Sequence[Tensor]:
    return (_torch_gates_to_theirs(bias),)


def _highway_to_ours(both: Tensor) -> Sequence[Tensor]:
    transform, carry = both.chunk(2)
    return -carry, transform  # 1 - sigmoid(x) = sigmoid(-x)


def _highway_to_theirs(gate: Tensor, transform: Tensor) -> Sequence[Tensor]:
    return (joined([transform, gate if gate.is_meta else -gate]),)
