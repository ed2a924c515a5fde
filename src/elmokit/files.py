"""Files and folders that are there whole or not at all, and folders that one process at a time writes in."""

import ctypes
import io
import json
import os
import re
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident
from typing import Any, TypeVar

import msgspec
from platformdirs import user_cache_path

from elmokit.errors import CheckpointError, ConfigError, ElmoError, OutputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
LOCK = ".lock"
_OURS: set[Path] = set()  # what this process is writing; others of its number were another process's
LONGEST_REASON = 300  # characters of what a library says
_LEFTOVER = re.compile(r"\.(?:(?P<name>.+)\.)?(?P<process>\d+)\.(?:partial|old)(?:\..+)?")  # the names given below


@contextmanager
def writing(path: Path, causes: type[Exception] | tuple[type[Exception], ...] = OSError) -> Iterator[None]:
    """Say of the errors within that they keep a file or folder from being written."""
    try:
        yield
    except causes as error:
        raise OutputError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def parsing(
    path: Path, what: str, *, kind: type[ElmoError] = CheckpointError, remedy: str = "Is it complete?"
) -> Iterator[None]:
    """Say in one line, whatever a parser raises within, that the file is not what it should be: they raise anything."""
    try:
        yield
    except ElmoError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        raise kind(f"{path}: cannot be read as {what}: {reason[:LONGEST_REASON]}. {remedy}") from error


class GuardedFile(io.FileIO):
    """A new file that keeps its first error for `check`: torch hides it, HDF5 crashes when it cannot flush."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+b")
        self.error: OSError | None = None

    def write(self, content: memoryview, /) -> int:  # type: ignore[override]
        """Write, or pretend to once a write has failed."""
        try:
            written = 0
            while written < len(content) and self.error is None:
                written += super().write(content[written:])
        except OSError as error:
            self.error = error
        return len(content)

    def readinto(self, content: memoryview, /) -> int:  # type: ignore[override]
        """Read what was written; what never was is zeros."""
        count = super().readinto(content) or 0
        content[count:] = bytes(len(content) - count)
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size) if self.error is None else 0
        except OSError as error:
            self.error = error
            return 0

    def check(self) -> None:
        """Raise what has gone wrong so far."""
        if self.error is not None:
            raise self.error


@contextmanager
def replacing(path: Path, *, keep: bool = True) -> Iterator[Path]:
    """A temporary file beside the path, with its ending, that takes its name when all went well.

    Those that killed processes have left of the same path go.
    """
    if path.is_dir():
        raise OutputError(f"{path} is a folder: name a file in it")
    _remove_leftovers(path.parent, ".", f".partial.{path.name}")
    partial = path.with_name(f".{get_ident()}.{os.getpid()}.partial.{path.name}")
    _OURS.add(partial.absolute())
    try:
        with writing(path):
            partial.touch()
        yield partial
        if keep:
            with writing(path):
                _sync(partial)
                partial.replace(path)
                _sync(path.parent)
    finally:
        _OURS.discard(partial.absolute())
        with suppress(OSError):  # whatever kept it from being written is told already
            partial.unlink()


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in its place in one move."""
    with replacing(path) as partial, writing(path):
        partial.write_bytes(content)


@contextmanager
def replacing_folder(path: Path, *, files: Collection[str], overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into that takes the path when all went well, and else leaves nothing behind.

    What stood there goes only to be overwritten, and only if it held none but these files.
    """
    path = path.resolve()
    _remove_leftovers(path.parent, f".{path.name}.")
    check_free(path, files=files, overwrite=overwrite)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with writing(path):
            partial.mkdir(parents=True)
        yield partial
        with writing(path):
            for file in (*partial.rglob("*"), partial):
                _sync(file)
            _take_place(partial, path)
            _sync(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def replacing_files(folder: Path) -> Iterator[Path]:
    """A folder to write into, whose files take their places in this folder, one by one, when all went well."""
    partial = folder / f".{os.getpid()}.partial"
    try:
        with writing(folder):
            partial.mkdir()
        yield partial
        with writing(folder):
            for file in partial.iterdir():
                _sync(file)
                file.replace(folder / file.name)
            _sync(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_free(path: Path, *, files: Collection[str] = (), overwrite: bool = False) -> None:
    """Refuse a path that is no folder, or a folder whose contents must not go."""
    if not path.exists():
        return
    if not path.is_dir():
        raise OutputError(f"{path} is a file: name a folder")
    present = contents(path)
    if present and not overwrite:
        raise OutputError(f"{path} is not empty: choose another folder, or overwrite it (--overwrite, overwrite=True)")
    if foreign := sorted(present - set(files)):
        raise OutputError(f"{path} holds other files too ({foreign[0]!r}), so it is not overwritten")


def contents(folder: Path) -> set[str]:
    """The names in a folder, without the lock and without what killed processes have left behind."""
    return {path.name for path in folder.iterdir() if path.name != LOCK and not _LEFTOVER.fullmatch(path.name)}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Only one process at a time writes in this folder, which is made, and goes again if it stays empty.

    A process that died has no lock, and what it was writing goes.
    """
    path, made = folder / LOCK, not folder.exists()
    if not made and not folder.is_dir():
        raise OutputError(f"{folder} is a file: name a folder")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked_file(path) as file:
        try:
            with writing(folder):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
            _remove_leftovers(folder, ".")
            yield
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                if made:
                    folder.rmdir()


def cache_folder() -> Path:
    """Where everything is kept that was fetched or can be made again."""
    if given := os.environ.get("ELMOKIT_CACHE"):
        return Path(given).expanduser()
    return user_cache_path("elmokit", appauthor=False)


def as_json(value: Any) -> bytes:
    """A value as the content of a file that people can read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def read_json(path: Path, kind: type[T], *, missing: str) -> T:
    """A value of that type from a file; what is missing without it is told."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"{path.parent}: {missing}: there is no {path.name}") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, ConfigError) as error:
        raise CheckpointError(f"{path}: damaged, or of another version of elmokit: {error}") from None


def read_description(path: Path, kind: type[T], *, what: str) -> T:
    """What a JSON file says of a model; `what` it should be is named where it is something else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.ValidationError as error:
        raise CheckpointError(f"{path}: not {what}: {error}") from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON: {error}") from None


def check_same_settings(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with a run whose settings, plain JSON values, are not what they were."""
    was, given, shown = _flat(before), _flat(now), json.JSONEncoder(ensure_ascii=False).encode
    changed = [
        f"{name} was {shown(was.get(name))} and is {shown(given.get(name))}"
        for name in was | given
        if was.get(name) != given.get(name)
    ]
    if changed:
        raise ConfigError(f"{folder}: a run goes on with the settings it began with: {'; '.join(changed)}")


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """The state of a run, tensors and plain values, in one move."""
    import torch

    with replacing(path) as partial, writing(path), GuardedFile(partial) as file:
        torch.save(state, file)
        file.check()


def read_state(path: Path) -> dict[str, Any]:
    """The state of a run that `write_state` wrote."""
    import torch

    with parsing(path, "the state of a run"):
        state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise CheckpointError(f"{path}: holds something else than the state of a run")
    return state


def _sync(path: Path) -> None:
    """Have a file's contents, or a folder's names, on the disk itself: a power cut must not undo a move."""
    if os.name != "posix" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _take_place(folder: Path, path: Path) -> None:
    """Put a folder where another may be, which goes: both change places in one step, where the system can."""
    if path.exists() and _exchanged(folder, path):
        return
    old = folder.with_suffix(".old")
    if path.exists():
        path.rename(old)
    folder.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _remove_leftovers(folder: Path, beginning: str, part: str = "") -> None:
    """Remove what processes that were killed have left in a folder under names that begin so, and hold the part.

    A folder that was to be replaced, and whose successor had not yet taken its name, gets it back.
    """
    with suppress(OSError):  # a folder that is none, or may only be read: whoever writes there tells
        for file in list(folder.iterdir()):
            if file.name.startswith(beginning) and part in file.name:
                _remove_leftover(file)


def _remove_leftover(file: Path) -> None:
    match = _LEFTOVER.fullmatch(file.name)
    if match and file.absolute() not in _OURS and not _is_running_elsewhere(int(match["process"])):
        if file.suffix == ".old" and not (first := file.with_name(match["name"] or file.name)).exists():
            file.rename(first)
        else:
            shutil.rmtree(file, ignore_errors=True) if file.is_dir() else file.unlink(missing_ok=True)


def _is_running_elsewhere(process: int) -> bool:
    if os.name != "posix":
        return True  # there is no harmless way to ask
    with suppress(PermissionError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
    return process != os.getpid()


def _locked_file(path: Path) -> io.FileIO:
    while True:
        with writing(path.parent):
            file = path.open("a+b", buffering=0)  # what a full disk has no room for would be written again on closing
        if fcntl is None:
            return file
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().decode() or "another process"
            file.close()
            raise OutputError(f"{path.parent} is in use by {owner}: wait for it, or choose another") from None
        except OSError:
            return file  # a file system without locks
        with suppress(FileNotFoundError):  # taken away by its owner just now: make a new one
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
