"""State dicts as torch saved them, from 0.4 on: read without running any code that they may hold."""

import re
import warnings
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from elmokit.errors import CheckpointError
from elmokit.files import parsing


def read_state(path: Path) -> dict[str, Tensor]:
    """The weights of a state dict by their names."""
    if not path.exists():
        raise CheckpointError(f"{path}: the file is missing")
    state = _load(path)
    weights: list[Any] = list(state.values()) if isinstance(state, dict) else [None]
    if not all(isinstance(w, Tensor) and w.layout == torch.strided and w.device.type == "cpu" for w in weights):
        raise CheckpointError(f"{path}: not a state dict, which names tensors")
    storages = {w.untyped_storage().data_ptr(): w.untyped_storage().nbytes() for w in weights}  # they may be shared
    spread = any(w.numel() * w.element_size() > w.untyped_storage().nbytes() for w in weights)
    if spread or sum(storages.values()) > path.stat().st_size:
        raise CheckpointError(f"{path}: its tensors claim more numbers than the file can hold")
    return {str(name): weight for name, weight in state.items()}


def as_float(path: Path, name: str, weight: Tensor) -> Tensor:
    """The weight in single precision."""
    if not weight.is_floating_point():
        raise CheckpointError(f"{path}: '{name}' holds {weight.dtype}, expected floating-point numbers")
    return weight.float()


def _load(path: Path) -> Any:
    with parsing(path, "tensors"):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                size = sum(info.file_size for info in archive.infolist())
            if size > path.stat().st_size:  # torch packs nothing: this was made to exhaust memory
                raise CheckpointError(f"{path}: unpacks to more than its own size, which no file of torch does")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, about how old files name their storages
            try:
                return torch.load(path, map_location="cpu", weights_only=True)
            except UnpicklingError as error:
                foreign = re.search(r"GLOBAL (\S+) (was not an allowed|whose module)", str(error))
                reason = str(error).partition("\n")[0]
                found = f"holds more than tensors ({foreign[1]}), so it is not read" if foreign else reason
                raise CheckpointError(f"{path}: cannot be read as tensors: {found}. Is it complete?") from None
