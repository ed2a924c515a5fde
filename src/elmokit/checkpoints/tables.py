"""Weights as other code bases name and lay them out: tables of names, and pure functions between the two sides."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elmokit.config import ModelConfig
from elmokit.errors import CheckpointError

CNN = "tokens.characters"
CHARACTERS = f"{CNN}.embedding.weight"
WORDS = "tokens.words.weight"
PROJECTION = "tokens.projection"
DIRECTIONS = ("forward", "backward")
OUR_GATES, TENSORFLOW_GATES, TORCH_GATES = "ifog", "igfo", "ifgo"  # g is the candidate, which TensorFlow calls j
Shapes = Mapping[str, tuple[int, ...]]
Read = Callable[[str, Any], Tensor]
"""Gives a weight by its name and what was found of it, which has a `shape`."""


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight that a model of this config has."""
    from elmokit.model.language_model import LanguageModel  # only to be asked for its shapes

    with torch.device("meta"):
        return {name: tuple(weight.shape) for name, weight in LanguageModel(config).weights().items()}


def check_shapes(path: Path, found: Shapes, expected: Shapes, *, described_by: str | Path) -> None:
    """Raise a CheckpointError that lists every weight missing, left over or of another shape."""
    problems = [f"'{name}' is missing" for name in expected if name not in found]
    problems += [f"'{name}' is not expected" for name in found if name not in expected]
    wrong = {name: shape for name, shape in expected.items() if found.get(name, shape) != shape}
    problems += [f"'{name}' is {_sizes(found[name])}, expected {_sizes(shape)}" for name, shape in wrong.items()]
    if problems:
        raise CheckpointError(f"{path} does not match {described_by}: {'; '.join(problems)}. Is it from another model?")


def _sizes(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "a single number"


class Row(NamedTuple):
    """Weights that go over together: what either side calls them, and how they change."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    to_ours: Callable[..., Sequence[Tensor]]
    to_theirs: Callable[..., Sequence[Tensor]]


def to_ours(
    rows: Sequence[Row], config: ModelConfig, found: dict[str, Any], read: Read, *, path: Path, described_by: Path
) -> dict[str, Tensor]:
    """All weights by our names, if such a model was found; each is let go of once read, so that few exist twice."""
    shapes = {name: tuple(stored.shape or ()) for name, stored in found.items()}
    ours = {name: torch.empty(shape, device="meta") for name, shape in weight_shapes(config).items()}
    expected = {name: tuple(weight.shape) for name, weight in to_theirs(rows, ours)}
    check_shapes(path, shapes, expected, described_by=described_by)
    weights: dict[str, Tensor] = {}
    for row in rows:
        changed = row.to_ours(*(read(name, found.pop(name)) for name in row.theirs))
        weights |= {name: weight.contiguous() for name, weight in zip(row.ours, changed, strict=True)}
    return weights


def to_theirs(rows: Sequence[Row], weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """All weights by their names."""
    for row in rows:
        yield from zip(row.theirs, row.to_theirs(*(weights[name] for name in row.ours)), strict=True)


def one(theirs: str, ours: str, to_ours: Callable[[Tensor], Tensor], to_theirs: Callable[[Tensor], Tensor]) -> Row:
    """A weight that becomes one weight."""
    return Row((theirs,), (ours,), lambda weight: (to_ours(weight),), lambda weight: (to_theirs(weight),))


def same(theirs: str, ours: str) -> Row:
    """A weight that is the same on both sides."""
    return Row((theirs,), (ours,), lambda weight: (weight,), lambda weight: (weight,))


def same_linear(theirs: str, ours: str) -> list[Row]:
    """A matrix and its bias, the same on both sides."""
    return [same(f"{theirs}.{part}", f"{ours}.{part}") for part in ("weight", "bias")]


def transposed(theirs: str, ours: str) -> Row:
    """A matrix that multiplies from the other side."""
    return one(theirs, ours, Tensor.t, Tensor.t)


def tensorflow_rows(config: ModelConfig) -> list[Row]:
    """The biLM as bilm-tf names it in HDF5."""
    rows = [same("embedding", WORDS)] if config.words else []
    if config.characters is not None:
        rows.append(same("char_embed", CHARACTERS))
        for i in range(len(config.characters.filters)):
            ours = f"{CNN}.convolutions.{i}"
            changes = (lambda w: w[0].permute(2, 1, 0), lambda w: w.permute(2, 1, 0)[None])
            rows.append(one(f"CNN/W_cnn_{i}", f"{ours}.weight", *changes))  # (1, width, E, count) ↔ (count, E, width)
            rows.append(same(f"CNN/b_cnn_{i}", f"{ours}.bias"))
        for i, (theirs, name) in product(range(config.characters.highways), (("carry", "gate"), ("transform",) * 2)):
            ours = f"{CNN}.highways.{i}.{name}"
            rows.append(transposed(f"CNN_high_{i}/W_{theirs}", f"{ours}.weight"))
            rows.append(same(f"CNN_high_{i}/b_{theirs}", f"{ours}.bias"))
    if config.token_features != config.projection:
        rows.append(transposed("CNN_proj/W_proj", f"{PROJECTION}.weight"))
        rows.append(same("CNN_proj/b_proj", f"{PROJECTION}.bias"))
    for (number, direction), i in product(enumerate(DIRECTIONS), range(config.layers)):
        rows += _tensorflow_cell(config, f"RNN_{number}/RNN/MultiRNNCell/Cell{i}/LSTMCell", f"{direction}_layers.{i}")
    return rows


def _tensorflow_cell(config: ModelConfig, theirs: str, ours: str) -> list[Row]:
    missing = config.forget_bias - 1.0  # TensorFlow adds 1 at run time, whatever is stored

    def bias_to_theirs(bias: Tensor) -> Tensor:
        i, f, o, g = bias.chunk(4)
        f = f + missing if missing else f  # -0.0 + 0.0 would be another bit pattern
        return _to_tensorflow(joined([i, f, o, g]))

    changes = (lambda w: _from_tensorflow(w, dim=1).t(), lambda w: _to_tensorflow(w).t())
    weight = one(f"{theirs}/W_0", f"{ours}.weight", *changes)
    rows = [weight, one(f"{theirs}/B", f"{ours}.bias", _from_tensorflow, bias_to_theirs)]
    return [*rows, transposed(f"{theirs}/W_P_0", f"{ours}.projection")] if config.projected else rows


def torch_cell_rows(config: ModelConfig, prefix: str = "") -> list[Row]:
    """The recurrent layers as AllenNLP's `ElmoLstm` names them; the forget gate's constant is in its biases."""
    rows = []
    for direction, i in product(DIRECTIONS, range(config.layers)):
        cell, layer = f"{prefix}{direction}_layer_{i}", f"{direction}_layers.{i}"
        halves = (f"{cell}.input_linearity.weight", f"{cell}.state_linearity.weight")
        changes = (lambda *w: (_from_torch(joined(w, dim=1)),), lambda w: _to_torch(w).chunk(2, dim=1))
        rows.append(Row(halves, (f"{layer}.weight",), *changes))
        rows.append(one(f"{cell}.state_linearity.bias", f"{layer}.bias", _from_torch, _to_torch))
        if config.projected:
            rows.append(same(f"{cell}.state_projection.weight", f"{layer}.projection"))
    return rows


def torch_token_rows(config: ModelConfig, convolutions: str, highways: str, projection: str) -> list[Row]:
    """The rest of what reads characters, as AllenNLP's modules lay it out: a highway has both matrices as one."""
    rows = []
    if config.characters is not None:
        for i in range(len(config.characters.filters)):
            rows += same_linear(f"{convolutions}{i}", f"{CNN}.convolutions.{i}")
        for i, part in product(range(config.characters.highways), ("weight", "bias")):
            changes = (_highway_to_ours, lambda gate, other: (joined([other, gate if gate.is_meta else -gate]),))
            ours = (f"{CNN}.highways.{i}.gate.{part}", f"{CNN}.highways.{i}.transform.{part}")
            rows.append(Row((f"{highways}{i}.{part}",), ours, *changes))
    return rows + (same_linear(projection, PROJECTION) if config.token_features != config.projection else [])


def joined(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The parts as one tensor, or its shape if they are mere shapes."""
    if not parts[0].is_meta:
        return torch.cat(list(parts), dim)
    sizes = list(parts[0].shape)  # torch would load its compiler to join shapes, which takes two seconds
    sizes[dim] = sum(part.shape[dim] for part in parts)
    return parts[0].new_empty(sizes)


def _regated(weight: Tensor, before: str, after: str, dim: int = 0) -> Tensor:
    parts = dict(zip(before, weight.chunk(4, dim), strict=True))
    return joined([parts[gate] for gate in after], dim)


_from_tensorflow = partial(_regated, before=TENSORFLOW_GATES, after=OUR_GATES)
_to_tensorflow = partial(_regated, before=OUR_GATES, after=TENSORFLOW_GATES)
_from_torch = partial(_regated, before=TORCH_GATES, after=OUR_GATES)
_to_torch = partial(_regated, before=OUR_GATES, after=TORCH_GATES)


def _highway_to_ours(both: Tensor) -> Sequence[Tensor]:
    transform, carry = both.chunk(2)
    return -carry, transform  # 1 - sigmoid(x) = sigmoid(-x)
