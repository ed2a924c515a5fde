"""A folder that appears only when it is complete."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from elmokit.errors import OutputError

MODEL_FILES = {"config.json", "model.safetensors", "vocab.txt", "options.json", "weights.hdf5"}


@contextmanager
def new_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into that takes its name when all went well, and else leaves nothing behind."""
    _check_free(path, overwrite=overwrite)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        yield partial
        replace_folder(path, partial)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{path}: the model cannot be written here: {reason}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_free(path: Path, *, overwrite: bool) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise OutputError(f"{path} is a file: a model is written as a folder")
    present = {file.name for file in path.iterdir()}
    if present and not overwrite:
        raise OutputError(f"{path} is not empty: choose another folder, or ask for it to be overwritten")
    if foreign := sorted(present - MODEL_FILES):
        raise OutputError(f"{path} holds more than a model ({foreign[0]!r}), so it is not overwritten")


def replace_folder(path: Path, partial: Path) -> None:
    """Put a finished folder in its place; what stood there goes when the new one stands."""
    if not path.exists():
        partial.rename(path)
        return
    old = partial.with_suffix(".old")
    path.rename(old)
    partial.rename(path)
    shutil.rmtree(old)
