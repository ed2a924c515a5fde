"""elmokit's own format: config.json, model.safetensors, and vocab.txt where the model has a vocabulary."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elmokit.checkpoints.checkpoint import Checkpoint, check_shapes, weight_shapes
from elmokit.config import config_from_dict, config_to_dict
from elmokit.errors import CheckpointError, ConfigError
from elmokit.text.vocabulary import read_vocabulary, write_vocabulary

NAME = "native"
LAYOUT = "an elmokit folder (config.json, model.safetensors)"
VERSION = 1
CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.txt"


def recognises(path: Path) -> bool:
    """A folder with our weights file, or one of our two files themselves."""
    folder = path.parent if path.name in (CONFIG, WEIGHTS) and path.is_file() else path
    return (folder / WEIGHTS).exists()


def read(path: Path) -> Checkpoint:
    """Read the folder, or the folder that the given file is in."""
    folder = path.parent if path.is_file() else path
    try:
        config = config_from_dict(_read_config(folder / CONFIG))
    except ConfigError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    weights = _read_weights(folder / WEIGHTS, weight_shapes(config))
    vocabulary = read_vocabulary(folder / VOCABULARY) if (folder / VOCABULARY).exists() else None
    if config.words and (vocabulary is None or len(vocabulary) != config.words.size):
        found = "missing" if vocabulary is None else f"{len(vocabulary)} words"
        raise CheckpointError(f"{folder / VOCABULARY}: {found}, config.json says {config.words.size} words")
    return Checkpoint(config, weights, vocabulary, f"{NAME} ({folder})")


def check_writable(checkpoint: Checkpoint, *, half: bool) -> None:
    """Every model fits; in half precision every weight must stay finite."""
    if half and not all(weight.half().isfinite().all() for weight in checkpoint.weights.values()):
        raise CheckpointError("a weight is too large for half precision: write the model in full")


def write(checkpoint: Checkpoint, folder: Path, *, half: bool) -> None:
    """Write the files; half precision halves the size and is read back as float32."""
    config = {"format": "elmokit", "version": VERSION, "model": config_to_dict(checkpoint.config)}
    (folder / CONFIG).write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    dtype = torch.float16 if half else torch.float32
    save_file({name: weight.to(dtype).contiguous() for name, weight in checkpoint.weights.items()}, folder / WEIGHTS)
    if checkpoint.vocabulary is not None:
        write_vocabulary(folder / VOCABULARY, checkpoint.vocabulary)


def _read_config(path: Path) -> Any:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(values, dict) or values.get("format") != "elmokit" or "model" not in values:
        raise CheckpointError(f'{path}: not the config of an elmokit model (no "format": "elmokit")')
    if values.get("version") != VERSION:
        raise CheckpointError(
            f"{path}: format version {values.get('version')!r}; this elmokit reads version {VERSION}. Is it newer?"
        )
    return values["model"]


def _read_weights(path: Path, expected: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            check_shapes(path, found, expected, described_by=CONFIG)
            # copied: the file may change or go while the model lives, and products differ in the last bit if unaligned
            return {name: file.get_tensor(name).to(torch.float32, copy=True) for name in expected}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read as safetensors: {error}. Is it complete?") from None
