"""elmokit's own format: config.json, model.safetensors, vocab.txt where there is a vocabulary; README.md, its card."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from elmokit.checkpoints.cards import CARD, make_card
from elmokit.checkpoints.checkpoint import VOCABULARY, Checkpoint, vocabulary_in
from elmokit.checkpoints.tables import check_shapes, weight_shapes
from elmokit.config import config_from_dict, config_to_dict
from elmokit.errors import CheckpointError, ConfigError
from elmokit.files import as_json, read_description
from elmokit.text.vocabulary import write_vocabulary

NAME = "native"
LAYOUT = "an elmokit folder (config.json, model.safetensors)"
VERSION = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
PRIOR = "prior"  # a tensor that a model need not have
LONGEST_CARD = 1 << 20  # bytes
FILES: tuple[str, ...] = (CONFIG, WEIGHTS, VOCABULARY, CARD)


class Description(msgspec.Struct):
    """What config.json says."""

    format: Literal["elmokit"]
    version: int
    model: dict[str, Any]
    about: dict[str, str] = {}


def recognises(path: Path) -> bool:
    """A folder with our weights file, or one of our two files themselves."""
    folder = path.parent if path.name in (CONFIG, WEIGHTS) and path.is_file() else path
    return (folder / WEIGHTS).exists()


def read(path: Path) -> Checkpoint:
    """Read the folder, or the folder that the given file is in."""
    folder = path.parent if path.is_file() else path
    description = read_description(folder / CONFIG, Description, what="the config of an elmokit model")
    if description.version != VERSION:
        known = f"this elmokit reads version {VERSION}. Is it newer?"
        raise CheckpointError(f"{folder / CONFIG}: format version {description.version}; {known}")
    try:
        config = config_from_dict(description.model)
    except ConfigError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    path, expected = folder / WEIGHTS, weight_shapes(config)
    try:
        with safe_open(path, framework="pt") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            if PRIOR in found and config.softmax:
                expected |= {PRIOR: (config.softmax.size,)}
            check_shapes(path, found, expected, described_by=CONFIG)
            # copied: the file may change or go while the model lives, and products differ in the last bit if unaligned
            weights = {name: file.get_tensor(name).to(torch.float32, copy=True) for name in expected}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read as safetensors: {error}. Is it complete?") from None
    source, prior = f"{NAME} ({folder})", weights.pop(PRIOR, None)
    vocabulary, card = vocabulary_in(folder, config), _read_card(folder / CARD)
    return Checkpoint(config, weights, vocabulary, source, prior, description.about, card)


def check_writable(checkpoint: Checkpoint, *, half: bool) -> None:
    """Every model fits; in half precision every weight must stay finite."""
    if half and not all(weight.half().isfinite().all() for weight in checkpoint.weights.values()):
        raise CheckpointError("a weight is too large for half precision: write the model in full")


def write(checkpoint: Checkpoint, folder: Path, *, half: bool) -> None:
    """Write the files; half precision halves the size and is read back as float32."""
    description = Description("elmokit", VERSION, config_to_dict(checkpoint.config), checkpoint.about)
    (folder / CONFIG).write_bytes(as_json(description))
    dtype = torch.float16 if half else torch.float32
    weights = checkpoint.weights | ({} if checkpoint.prior is None else {PRIOR: checkpoint.prior})
    save_file({name: weight.to(dtype).contiguous() for name, weight in weights.items()}, folder / WEIGHTS)
    if checkpoint.vocabulary is not None:
        write_vocabulary(folder / VOCABULARY, checkpoint.vocabulary)
    (folder / CARD).write_text(make_card(checkpoint), encoding="utf-8")


def _read_card(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_CARD).decode(errors="replace")
    except OSError:
        return None
