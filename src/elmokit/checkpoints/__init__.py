"""DISK ↔ (config, weights, vocabulary): one file a format, none knows another."""

from pathlib import Path

from elmokit.checkpoints import allenai, native
from elmokit.checkpoints.checkpoint import Checkpoint, Format
from elmokit.checkpoints.folders import new_folder
from elmokit.errors import CheckpointError, ConfigError

FORMATS: tuple[Format, ...] = (native, allenai)


def read_checkpoint(path: Path) -> Checkpoint:
    """The model in a folder or file, whatever its format."""
    if not path.exists():
        raise CheckpointError(f"{path}: there is no such file or folder")
    for candidate in FORMATS:
        if candidate.recognises(path):
            return candidate.read(path)
    known = "; ".join(candidate.LAYOUT for candidate in FORMATS)
    raise CheckpointError(f"{path}: no model was recognised here. What can be read: {known}")


def write_checkpoint(
    checkpoint: Checkpoint, folder: Path, *, to: str = native.NAME, half: bool = False, overwrite: bool = False
) -> None:
    """Write the model as a folder in the named format; all of it or nothing."""
    target = get_format(to)
    target.check_writable(checkpoint, half=half)
    with new_folder(folder, overwrite=overwrite) as partial:
        target.write(checkpoint, partial, half=half)


def get_format(name: str) -> Format:
    """The format of that name."""
    for candidate in FORMATS:
        if name == candidate.NAME:
            return candidate
    names = ", ".join(candidate.NAME for candidate in FORMATS)
    raise ConfigError(f"unknown format {name!r}: known are {names}")
