"""New HDF5 files, safe on a disk that fills up."""

from pathlib import Path

import h5py

from elmokit.files import GuardedFile


class NewHdf5:
    """An HDF5 file to be filled; `check` and leaving raise the OSError that writing met with."""

    def __init__(self, path: Path) -> None:
        self._guarded = GuardedFile(path)
        self.file = h5py.File(self._guarded, "w", libver="latest")

    def check(self) -> None:
        """Raise what has gone wrong so far."""
        self._guarded.check()

    def close(self) -> None:
        self.file.close()
        self._guarded.close()
        self.check()

    def __enter__(self) -> "NewHdf5":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
