"""New HDF5 files, safe on a disk that fills up."""

import io
from pathlib import Path


class _Guarded(io.FileIO):
    """A file that keeps its first error for later: HDF5 crashes the process when it cannot flush what it holds."""

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


class NewHdf5:
    """An HDF5 file to be filled; `check` and leaving raise the OSError that writing met with."""

    def __init__(self, path: Path) -> None:
        import h5py  # only those who read or write such a file wait for it

        self._guarded = _Guarded(path)
        self.file = h5py.File(self._guarded, "w", libver="latest")

    def check(self) -> None:
        """Raise what has gone wrong so far."""
        if self._guarded.error is not None:
            raise self._guarded.error

    def close(self) -> None:
        self.file.close()
        self._guarded.close()
        self.check()

    def __enter__(self) -> "NewHdf5":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
