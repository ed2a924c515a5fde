"""New HDF5 files, safe on a disk that fills up."""

from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO

from elmokit.files import GuardedFile

BLOCK = 1 << 20  # bytes


class NewHdf5:
    """An HDF5 file to be filled; `check` and leaving raise the OSError that writing met with."""

    def __init__(self, path: Path) -> None:
        import h5py  # only those who read or write such a file wait for it

        self._guarded = GuardedFile(path)
        self.file = h5py.File(self._guarded, "w", libver="latest")

    def write_text(self, name: str, content: BinaryIO) -> None:
        """Add a dataset of one text, (1,), copied block by block from an open file: HDF5 would hold it as a whole."""
        from h5py import h5d, h5p, h5s, h5t, string_dtype

        size = content.tell()
        content.seek(0)
        space, kind = h5s.create_simple((1,)), h5t.py_create(string_dtype("utf-8", size), logical=True)
        layout = h5p.create(h5p.DATASET_CREATE)
        layout.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        layout.set_fill_time(h5d.FILL_TIME_NEVER)
        layout.set_obj_track_times(False)  # the same text gives the same bytes
        offset = h5d.create(self.file.id, name.encode(), kind, space, layout).get_offset()
        self.file.flush()
        self._guarded.seek(offset)
        copyfileobj(content, self._guarded, BLOCK)  # type: ignore[misc]
        self.check()

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
