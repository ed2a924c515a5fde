"""New HDF5 files, safe on a disk that fills up."""

import io
from pathlib import Path

import h5py


class _Guarded(io.RawIOBase):
    """A file that keeps its first error for later: HDF5 crashes the process when it cannot flush what it holds."""

    def __init__(self, path: Path) -> None:
        self.raw = path.open("w+b", buffering=0)
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.raw.seek(offset, whence)

    def tell(self) -> int:
        return self.raw.tell()

    def write(self, content: memoryview, /) -> int:  # type: ignore[override]
        """Write, or pretend to once a write has failed."""
        try:
            written = 0
            while written < len(content) and self.error is None:
                written += self.raw.write(content[written:])
        except OSError as error:
            self.error = error
        return len(content)

    def readinto(self, content: memoryview, /) -> int:  # type: ignore[override]
        """Read what was written; what never was is zeros."""
        count = self.raw.readinto(content) or 0
        content[count:] = bytes(len(content) - count)
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        try:
            return self.raw.truncate(size) if self.error is None else 0
        except OSError as error:
            self.error = error
            return 0

    def close(self) -> None:
        self.raw.close()
        super().close()


class NewHdf5:
    """An HDF5 file to be filled; `check` and leaving raise the OSError that writing met with."""

    def __init__(self, path: Path) -> None:
        self._guarded = _Guarded(path)
        self.file = h5py.File(self._guarded, "w", libver="latest")

    def check(self) -> None:
        """Raise what has gone wrong so far."""
        if self._guarded.error is not None:
            raise self._guarded.error

    def close(self) -> None:
        """Write what is left."""
        self.file.close()
        self._guarded.close()
        self.check()

    def __enter__(self) -> "NewHdf5":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
