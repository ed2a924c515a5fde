"""TensorFlow's checkpoints, read without TensorFlow: an index of tensors, and their numbers in one file or several."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmokit.checkpoints.sorted_table import read_table, read_varint
from elmokit.errors import CheckpointError

INDEX_ENDING = ".index"
LARGEST_INDEX = 1 << 26  # bytes
HEADER = b""
DTYPES = {1: "<f4", 2: "<f8", 19: "<f2"}


class Entry(NamedTuple):
    """Where a tensor is."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    sliced: bool


class TensorBundle:
    """The tensors of one checkpoint; their numbers are read when asked for."""

    def __init__(self, index: Path) -> None:
        self.index = index
        try:
            if index.stat().st_size > LARGEST_INDEX:
                raise ValueError("it is far too large for an index")
            table = read_table(index.read_bytes())
            header = dict(_fields(table.pop(HEADER)))
            self.entries = {name.decode(): _entry(value) for name, value in table.items()}
            self.shards = int(header.get(1, 1))
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise CheckpointError(
                f"{index}: cannot be read as the index of a TensorFlow checkpoint: {error}. Is it complete?"
            ) from None
        if header.get(2, 0):
            raise CheckpointError(f"{index}: written on a big-endian machine, which is not read")

    def read(self, name: str) -> Tensor:
        """A tensor in single precision."""
        entry = self.entries[name]
        self._check(name, entry)
        path = self._shard(entry.shard)
        dtype = np.dtype(DTYPES[entry.dtype])
        if entry.offset + entry.size > path.stat().st_size:
            raise CheckpointError(f"{path}: ends before or within '{name}'. Is it complete?")
        numbers = np.fromfile(path, dtype, math.prod(entry.shape), offset=entry.offset)
        return torch.from_numpy(numbers.astype(np.float32, copy=False)).view(entry.shape)

    def _check(self, name: str, entry: Entry) -> None:
        if entry.dtype not in DTYPES:
            raise CheckpointError(f"{self.index}: '{name}' holds type {entry.dtype}, expected floating-point numbers")
        if entry.sliced:
            raise CheckpointError(f"{self.index}: '{name}' is stored in slices, which are not read")
        if entry.size != math.prod(entry.shape) * np.dtype(DTYPES[entry.dtype]).itemsize:
            raise CheckpointError(f"{self.index}: '{name}' has {entry.size} bytes, which its shape does not fill")

    def _shard(self, number: int) -> Path:
        path = self.index.with_suffix(f".data-{number:05}-of-{self.shards:05}")
        if not path.exists():
            raise CheckpointError(f"{path}: the file is missing; the numbers that {self.index.name} lists are in it")
        return path


def _entry(content: bytes) -> Entry:
    fields = dict(_fields(content))
    numbers = [fields.get(field, 0) for field in (1, 3, 4, 5)]
    dtype, shard, offset, size = (number for number in numbers if isinstance(number, int))
    shape = fields.get(2, b"")
    return Entry(dtype, tuple(_sizes(shape)) if isinstance(shape, bytes) else (), shard, offset, size, 7 in fields)


def _sizes(shape: bytes) -> Iterator[int]:
    for field, dimension in _fields(shape):
        if field == 2 and isinstance(dimension, bytes):
            size = dict(_fields(dimension)).get(1, 0)
            yield size if isinstance(size, int) else 0


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol-buffer message: numbers, and bytes for all that has a length."""
    place = 0
    while place < len(message):
        key, place = read_varint(message, place)
        kind = key & 7
        if kind == 0:
            number, place = read_varint(message, place)
            yield key >> 3, number
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"a field in it is of a kind not known ({kind})")
        length, place = read_varint(message, place) if kind == 2 else (8 if kind == 1 else 4, place)
        part = message[place : place + length]
        if len(part) != length:
            raise ValueError("it ends within a field")
        place += length
        yield key >> 3, part if kind == 2 else int.from_bytes(part, "little")
