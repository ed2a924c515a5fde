"""Models packed into one file: .zip, .tar, .tar.gz, .tar.bz2, .tar.xz."""

import bz2
import gzip
import io
import lzma
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any

from elmokit.errors import CheckpointError
from elmokit.files import parsing

ZIP = ".zip"
TAR: dict[str, Callable[[Path], Any]] = {
    ".tar": io.FileIO,
    ".tar.gz": gzip.GzipFile,
    ".tgz": gzip.GzipFile,
    ".tar.bz2": bz2.BZ2File,
    ".tar.xz": lzma.LZMAFile,
}
MOST_COMPRESSION = 100  # weights hardly compress; more than this is an archive made to fill the disk
MOST_MEMBERS = 1000  # no model has so many files
APPLE_EXTRAS = "__MACOSX"


def is_archive(path: Path) -> bool:
    """Judged by the name."""
    return path.name.endswith((ZIP, *TAR)) and path.is_file()


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A folder with what is in the archive, for as long as it is needed."""
    with TemporaryDirectory(prefix="elmokit-") as name:
        with parsing(path, "an archive"):
            _unpack(path, Path(name))
        yield Path(name)


def _unpack(path: Path, folder: Path) -> None:
    left = MOST_COMPRESSION * path.stat().st_size
    members = _zip_members(path) if path.suffix == ZIP else _tar_members(path, left)
    for number, (name, size, content) in enumerate(members):
        if number == MOST_MEMBERS:
            raise CheckpointError(f"{path}: holds more than {MOST_MEMBERS:,} files, so it is not unpacked")
        left -= size
        _check_left(path, left)
        inner = PurePosixPath(name.replace("\\", "/"))
        if inner.is_absolute() or ".." in inner.parts or ":" in name or "\0" in name:
            raise CheckpointError(f"{path}: holds {name!r}, a name that leads elsewhere, so it is not unpacked")
        target = folder / inner
        if APPLE_EXTRAS not in target.parts:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)


def _zip_members(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                with archive.open(info) as content:
                    yield info.filename, info.file_size, content


def _tar_members(path: Path, limit: int) -> Iterator[tuple[str, int, IO[bytes]]]:
    ending = next(ending for ending in TAR if path.name.endswith(ending))
    with TAR[ending](path) as packed, tarfile.open(fileobj=_Bounded(packed, limit, path), mode="r|") as archive:
        for info in archive:
            content = archive.extractfile(info) if info.isfile() else None  # links are not followed
            if content is not None:
                yield info.name, info.size, content


class _Bounded(io.RawIOBase):
    """A stream that gives no more than so many bytes."""

    def __init__(self, stream: IO[bytes], limit: int, path: Path) -> None:
        self.stream, self.left, self.path = stream, limit, path

    def read(self, size: int = -1) -> bytes:
        content = self.stream.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(content)
        _check_left(self.path, self.left)
        return content


def _check_left(path: Path, left: int) -> None:
    if left < 0:
        raise CheckpointError(f"{path}: unpacks to more than {MOST_COMPRESSION} times its size, so it is not unpacked")
