"""bilm-tf's own checkpoints, as TensorFlow saved them in training: with the softmax, so that training can go on.

They are read without TensorFlow: an index of tensors, and their numbers in one file or several. The index is a sorted
table as LevelDB writes them: blocks of keys and values, a block that lists them, a footer.
"""

import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmokit.checkpoints.checkpoint import Checkpoint, vocabulary_in
from elmokit.checkpoints.options import OPTIONS, Options, read_options, to_config
from elmokit.checkpoints.tables import WORDS, Row, same, tensorflow_rows, to_ours
from elmokit.config import ModelConfig
from elmokit.errors import CheckpointError

NAME = "bilm-tf"
LAYOUT = "a bilm-tf checkpoint (options.json, checkpoint, model.ckpt-….index, model.ckpt-….data-…)"
LATEST = "checkpoint"
HDF5 = "*.hdf5"
SCOPE = "lm/"
SOFTMAX_WEIGHT, SOFTMAX_BIAS = "softmax/W", "softmax/b"
OPTIMIZER = re.compile("/(Adagrad|Adam|Adam_1|Momentum|RMSProp|RMSProp_1)$")
INDEX_ENDING = ".index"
LARGEST_INDEX = 1 << 26  # bytes
FOOTER, TRAILER = 48, 5  # bytes; the latter of a block: whether it is compressed, and its checksum
MAGIC = 0xDB4775248B80FB57
HEADER = b""
DTYPES = {1: "<f4", 2: "<f8", 19: "<f2"}
RENAMED = (  # how TensorFlow's names became those of the HDF5 file; older versions said weights and biases
    ("/rnn/", "/RNN/"),
    ("/multi_rnn_cell/cell_", "/MultiRNNCell/Cell"),
    ("/RNN/lstm_cell/", "/RNN/MultiRNNCell/Cell0/lstm_cell/"),
    ("/lstm_cell/projection/(kernel|weights)$", "/LSTMCell/W_P_0"),
    ("/lstm_cell/(kernel|weights)$", "/LSTMCell/W_0"),
    ("/lstm_cell/(bias|biases)$", "/LSTMCell/B"),
)


def recognises(path: Path) -> bool:
    """A checkpoint's index, with or without its ending, the file that names the latest, or a folder with any."""
    if path.is_dir():  # weights dumped to HDF5 are the same model without the softmax, and quicker to read
        return any(path.glob(f"*{INDEX_ENDING}")) and not any(path.glob(HDF5))
    named = path.name == LATEST or path.suffix == INDEX_ENDING
    return (named and path.is_file()) or _index_of(path).is_file()


def read(path: Path) -> Checkpoint:
    """Find the checkpoint, and read it with its options and vocabulary."""
    index = _find(path)
    options_path = index.with_name(OPTIONS)
    if not options_path.exists():
        raise CheckpointError(f"{index}: its options are missing: {OPTIONS} should lie beside it")
    bundle, options = TensorBundle(index), read_options(options_path)
    kept = (name for name in bundle.entries if name.startswith(SCOPE) and not OPTIMIZER.search(name))
    found = {_canonical(name): bundle.entries[name] for name in kept}
    bias = found[SOFTMAX_BIAS].shape if SOFTMAX_BIAS in found else ()
    options.n_tokens_vocab = options.n_tokens_vocab or next(iter(bias), 0)
    config = to_config(options_path, options, softmax=SOFTMAX_BIAS in found)
    weights = to_ours(_rows(config, options), config, found, bundle.read, path=index, described_by=options_path)
    return Checkpoint(config, weights, vocabulary_in(index.parent, config), f"{NAME} ({index})")


def _index_of(path: Path) -> Path:
    return path.with_name(path.name + INDEX_ENDING)


def _find(path: Path) -> Path:
    """The index of the checkpoint meant; in a folder that of the latest."""
    if path.name == LATEST and path.is_file():
        path = path.parent
    if not path.is_dir():
        return path if path.suffix == INDEX_ENDING else _index_of(path)
    found = sorted(path.glob(f"*{INDEX_ENDING}"))
    if (path / LATEST).exists():
        text = (path / LATEST).read_text(encoding="utf-8", errors="replace")
        match = re.search(r'^model_checkpoint_path: "(?:.*[/\\])?([^/\\"]+)"', text, re.MULTILINE)
        if match is None:
            raise CheckpointError(f"{path / LATEST}: no model_checkpoint_path is named in it")
        index = _index_of(path / match[1])  # without the folder that it had where it was made
        if not index.exists():
            raise CheckpointError(f"{path / LATEST}: names {index.name}, which is not beside it")
        return index
    if len(found) == 1:
        return found[0]
    names = ", ".join(file.name for file in found)
    raise CheckpointError(f"{path}: {LATEST}, which names the latest of {names}, is missing. Name one of them")


def _canonical(name: str) -> str:
    name = name.removeprefix(SCOPE)
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def _rows(config: ModelConfig, options: Options) -> list[Row]:
    rows = tensorflow_rows(config)
    if config.softmax is None:
        return rows
    rows.append(same(SOFTMAX_BIAS, "softmax.bias"))
    if not options.share_embedding_softmax:
        return [*rows, same(SOFTMAX_WEIGHT, "softmax.weight")]
    rows = [row for row in rows if row.ours != (WORDS,)]
    shared = Row(("embedding",), (WORDS, "softmax.weight"), lambda w: (w, w.clone()), lambda w, _: (w,))
    return [shared, *rows]


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
            header, _ = _message(table.pop(HEADER))
            self.entries = {name.decode(): _entry(value) for name, value in table.items()}
            self.shards = header.get(1, 1)
        except (OSError, KeyError, ValueError) as error:
            wrong = f"cannot be read as the index of a TensorFlow checkpoint: {error}"
            raise CheckpointError(f"{index}: {wrong}. Is it complete?") from None
        if header.get(2, 0):
            raise CheckpointError(f"{index}: written on a big-endian machine, which is not read")

    def read(self, name: str, entry: Entry) -> Tensor:
        if entry.dtype not in DTYPES:
            raise CheckpointError(f"{self.index}: '{name}' holds type {entry.dtype}, expected floating-point numbers")
        if entry.sliced:
            raise CheckpointError(f"{self.index}: '{name}' is stored in slices, which are not read")
        if entry.size != math.prod(entry.shape) * np.dtype(DTYPES[entry.dtype]).itemsize:
            raise CheckpointError(f"{self.index}: '{name}' has {entry.size} bytes, which its shape does not fill")
        path = self.index.with_suffix(f".data-{entry.shard:05}-of-{self.shards:05}")
        if not path.exists():
            raise CheckpointError(f"{path}: the file is missing; the numbers that {self.index.name} lists are in it")
        if entry.offset + entry.size > path.stat().st_size:
            raise CheckpointError(f"{path}: ends before or within '{name}'. Is it complete?")
        numbers = np.fromfile(path, DTYPES[entry.dtype], math.prod(entry.shape), offset=entry.offset)
        return torch.from_numpy(numbers.astype(np.float32, copy=False)).view(entry.shape)


class _Reader:
    """Reads on in some bytes; a ValueError says what is wrong with them."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position = content, 0

    def __bool__(self) -> bool:
        return self.position < len(self.content)

    def take(self, size: int) -> bytes:
        part = self.content[self.position : self.position + size]
        if len(part) != size:
            raise ValueError("it ends within a field")
        self.position += size
        return part

    def varint(self) -> int:
        """A number in groups of seven bits, the lowest first."""
        number = 0
        for shift in range(0, 64, 7):
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise ValueError("a number in it does not end")


def read_table(content: bytes) -> dict[bytes, bytes]:
    """Everything in a sorted table; a ValueError says what is wrong with it."""
    if len(content) < FOOTER or int.from_bytes(content[-8:], "little") != MAGIC:
        raise ValueError("it does not end as a sorted table does")
    footer = _Reader(content[-FOOTER:])
    _, _ = footer.varint(), footer.varint()  # of a block that is always empty
    blocks = _entries(_block(content, footer)).values()
    return {key: value for block in blocks for key, value in _entries(_block(content, _Reader(block))).items()}


def _block(content: bytes, handle: _Reader) -> bytes:
    """The block that begins, and has as many bytes, as the handle says."""
    start = handle.varint()
    end = start + handle.varint()
    trailer = content[end : end + TRAILER]
    if len(trailer) < TRAILER:
        raise ValueError("a block lies beyond its end")
    if int.from_bytes(trailer[1:], "little") != masked_crc32c(content[start : end + 1]):
        raise ValueError("the checksum of a block is wrong")
    if trailer[0]:
        raise ValueError("a block is compressed, which TensorFlow never does: save the checkpoint anew")
    return content[start:end]


def _entries(block: bytes) -> dict[bytes, bytes]:
    """The keys and values of a block; a key is stored as what differs from the one before it."""
    end = len(block) - 4 * (1 + int.from_bytes(block[-4:], "little"))  # there the offsets of whole keys begin
    if len(block) < 4 or end < 0:
        raise ValueError("a block is too short")
    entries, key, reader = {}, b"", _Reader(block[:end])
    while reader:
        shared, added, size = reader.varint(), reader.varint(), reader.varint()
        key = key[:shared] + reader.take(added)
        entries[key] = reader.take(size)
    return entries


def _entry(content: bytes) -> Entry:
    numbers, parts = _message(content)
    dimensions = [part for shape in parts.get(2, []) for part in _message(shape)[1].get(2, [])]
    shape = tuple(_message(dimension)[0].get(1, 0) for dimension in dimensions)
    dtype, shard, offset, size = (numbers.get(field, 0) for field in (1, 3, 4, 5))
    return Entry(dtype, shape, shard, offset, size, 7 in parts)


def _message(content: bytes) -> tuple[dict[int, int], dict[int, list[bytes]]]:
    """The fields of a protocol-buffer message: its numbers, and all that has a length."""
    numbers: dict[int, int] = {}
    parts: dict[int, list[bytes]] = {}
    reader = _Reader(content)
    while reader:
        field, kind = divmod(reader.varint(), 8)
        if kind == 0:
            numbers[field] = reader.varint()
        elif kind == 2:
            parts.setdefault(field, []).append(reader.take(reader.varint()))
        elif kind in (1, 5):
            numbers[field] = int.from_bytes(reader.take(8 if kind == 1 else 4), "little")
        else:
            raise ValueError(f"a field in it is of a kind not known ({kind})")
    return numbers, parts


def _crc32c(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


_CRC32C = [_crc32c(byte) for byte in range(256)]


def masked_crc32c(content: bytes) -> int:
    """The Castagnoli checksum, rotated and shifted as tables store it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
