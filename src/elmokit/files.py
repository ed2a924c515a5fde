"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmokit.errors import OutputError


@contextmanager
def replacing(path: Path, *, keep: bool = True) -> Iterator[Path]:
    """A temporary file beside the path, with its ending, that takes its name when all went well."""
    if path.is_dir():
        raise OutputError(f"{path} is a folder: name a file in it")
    partial = path.with_name(f".{os.getpid()}.partial.{path.name}")
    try:
        with writing(path):
            partial.touch()
        yield partial
        if keep:
            with writing(path):
                partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def writing(path: Path, causes: type[Exception] | tuple[type[Exception], ...] = OSError) -> Iterator[None]:
    """Say of the errors within that they keep a file from being written."""
    try:
        yield
    except causes as error:
        raise OutputError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in its place in one move."""
    with replacing(path) as partial, writing(path):
        partial.write_bytes(content)
