"""Vectors ↔ files, streamed: memory does not grow with the vectors.

| ending | layout |
|---|---|
| .h5, .hdf5 | AllenNLP's: a dataset a sentence, "0", "1", …, and `sentence_to_index`, a JSON of sentence → dataset |
| .npz, .safetensors | `vectors`, all tokens end to end, and `lengths`, tokens a sentence |
| .parquet | a row a token: sentence, position, token, and a vector, or one a layer |

For all layers the arrays of .h5 are (layers, tokens, width), and `vectors` of the others (tokens, layers, width).
"""

import io
import json
import struct
import zipfile
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import copyfileobj
from typing import Any, NamedTuple, Protocol

import h5py
import numpy as np
from numpy.lib import format as npy
from safetensors import SafetensorError, safe_open

from elmokit.embedder import Vectors
from elmokit.errors import ConfigError, DataError, MissingExtraError
from elmokit.files import replacing, writing
from elmokit.hdf5 import NewHdf5

HEADER_ROOM = 512  # bytes kept free at the head of a file whose length is known only at its end
ROWS_A_GROUP = 8192
SENTENCES = "sentences"  # key of the sentence count in a parquet file's metadata


class Embedded(NamedTuple):
    """A sentence as it stood in the text, its tokens and their vectors."""

    text: str
    tokens: list[str]
    vectors: Vectors
    """(tokens, width) or (layers, tokens, width)"""


class Writer(Protocol):
    """Takes the sentences one after another."""

    def write(self, number: int, sentence: Embedded, /) -> None: ...

    def finish(self) -> None:
        """Write what can only be written last."""

    def close(self) -> None:
        """Let go of the file, finished or not."""


def write_vectors(path: Path, sentences: Iterable[Embedded]) -> int:
    """Write all sentences to one file in the format of its ending; the file appears when it is complete."""
    make_writer, _ = _format(path)
    number = -1
    with replacing(path) as partial:
        with writing(path):
            writer = make_writer(partial)
        try:
            for number, sentence in enumerate(sentences):
                with writing(path):
                    writer.write(number, sentence)
            with writing(path):
                writer.finish()
        finally:
            with writing(path):
                writer.close()
    return number + 1


def check_output(path: Path) -> None:
    """Raise at once what `write_vectors` would raise in the end: a wrong ending, no permission, a missing folder."""
    _format(path)
    with replacing(path, keep=False):
        pass


def read_vectors(path: Path) -> Iterator[Vectors]:
    """The arrays of a file that `write_vectors` wrote, in order."""
    _, reader = _format(path)
    try:
        yield from reader(path)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read as vectors: {error}") from None


def _format(path: Path) -> tuple[Callable[[Path], Writer], Callable[[Path], Iterator[Vectors]]]:
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path}: unknown ending {path.suffix!r}: vectors are kept in {', '.join(FORMATS)}")
    return FORMATS[path.suffix]


class Hdf5Writer:
    """AllenNLP's layout."""

    def __init__(self, path: Path) -> None:
        self.hdf5 = NewHdf5(path)
        self.index = io.StringIO()

    def write(self, number: int, sentence: Embedded) -> None:
        self.hdf5.file.create_dataset(str(number), data=sentence.vectors)
        self.index.write(f'{", " if number else ""}{json.dumps(sentence.text)}: "{number}"')
        self.hdf5.check()

    def finish(self) -> None:
        """Write the index; of a sentence that occurs twice, JSON readers keep the last, as AllenNLP did."""
        index = self.hdf5.file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype("utf-8"))
        index[0] = "{" + self.index.getvalue() + "}"

    def close(self) -> None:
        self.hdf5.close()


class FlatWriter:
    """All tokens end to end after a header that is filled in last."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.file.write(b" " * HEADER_ROOM)
        self.lengths = array("i")
        self.shape: tuple[int, ...] = (0,)

    def write(self, number: int, sentence: Embedded) -> None:  # noqa: ARG002
        """Add the tokens, each with all its layers."""
        tokens_first = np.moveaxis(sentence.vectors, -2, 0)  # (T, D) or (T, L, D)
        self.lengths.append(len(tokens_first))
        self.shape = tokens_first.shape[1:]
        self.file.write(np.ascontiguousarray(tokens_first, dtype="<f4").tobytes())

    @property
    def full_shape(self) -> tuple[int, ...]:
        """(N, …), all sentences together."""
        return (sum(self.lengths), *self.shape)

    def close(self) -> None:
        self.file.close()


class SafetensorsWriter(FlatWriter):
    """The header, then `vectors`, then `lengths`."""

    def finish(self) -> None:
        """Add the lengths and fill in the header, padded with blanks as the format allows."""
        start = self.file.tell() - HEADER_ROOM
        self.file.write(np.array(self.lengths, dtype="<i4").tobytes())
        end = self.file.tell() - HEADER_ROOM
        header = {
            "vectors": {"dtype": "F32", "shape": self.full_shape, "data_offsets": [0, start]},
            "lengths": {"dtype": "I32", "shape": [len(self.lengths)], "data_offsets": [start, end]},
        }
        self.file.seek(0)
        self.file.write(struct.pack("<Q", HEADER_ROOM - 8) + json.dumps(header).encode().ljust(HEADER_ROOM - 8))


class NpzWriter(FlatWriter):
    """Streams into a file of its own and packs it when its length is known."""

    def __init__(self, path: Path) -> None:
        self.path, self.flat = path, path.with_suffix(".flat")
        super().__init__(self.flat)

    def finish(self) -> None:
        self.file.close()
        with zipfile.ZipFile(self.path, "w") as archive:
            with archive.open("vectors.npy", "w", force_zip64=True) as entry, self.flat.open("rb") as vectors:
                npy.write_array_header_1_0(entry, {"descr": "<f4", "fortran_order": False, "shape": self.full_shape})
                vectors.seek(HEADER_ROOM)
                copyfileobj(vectors, entry, 1 << 20)
            with archive.open("lengths.npy", "w") as entry:
                npy.write_array(entry, np.array(self.lengths, dtype="<i4"))

    def close(self) -> None:
        try:
            super().close()
        finally:
            self.flat.unlink(missing_ok=True)


class ParquetWriter:
    """A row a token, written in groups."""

    def __init__(self, path: Path) -> None:
        self.pyarrow, self.parquet = _pyarrow()
        self.path, self.sentences = path, 0
        self.rows: dict[str, list[Any]] = defaultdict(list)
        self.file: Any = None

    def write(self, number: int, sentence: Embedded) -> None:
        count = len(sentence.tokens)
        self.sentences = number + 1
        self.rows["sentence"] += [number] * count
        self.rows["position"] += range(count)
        self.rows["token"] += sentence.tokens
        self.rows["vectors"].append(sentence.vectors)
        if len(self.rows["token"]) >= ROWS_A_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        types = {"sentence": self.pyarrow.int64(), "position": self.pyarrow.int32(), "token": self.pyarrow.string()}
        columns = {name: self.pyarrow.array(self.rows[name], kind) for name, kind in types.items()}
        vectors = np.concatenate(self.rows["vectors"] or [np.zeros((0, 1), np.float32)], axis=-2)
        layers = {"vector": vectors} if vectors.ndim == 2 else {f"layer_{i}": layer for i, layer in enumerate(vectors)}
        fixed = self.pyarrow.FixedSizeListArray.from_arrays
        columns |= {name: fixed(layer.ravel(), layer.shape[-1]) for name, layer in layers.items()}
        table = self.pyarrow.table(columns)
        if self.file is None:
            self.file = self.parquet.ParquetWriter(self.path, table.schema)
        self.file.write_table(table)
        self.rows.clear()

    def finish(self) -> None:
        """Write what is left, and how many sentences there were: empty ones have no rows."""
        self._write_group()
        self.file.add_key_value_metadata({SENTENCES: str(self.sentences)})
        self.file.close()

    def close(self) -> None:
        if self.file is not None:
            with suppress(self.pyarrow.ArrowException):
                self.file.close()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("parquet files need pyarrow", "parquet") from None
    return pyarrow, pyarrow.parquet


def _read_hdf5(path: Path) -> Iterator[Vectors]:
    with h5py.File(path, "r") as file:
        for number in range(len(file) - 1):
            yield file[str(number)][()]


def _read_npz(path: Path) -> Iterator[Vectors]:
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        yield from _sentences(file["vectors"], file["lengths"])


def _read_safetensors(path: Path) -> Iterator[Vectors]:
    with safe_open(path, framework="np") as file:
        yield from _sentences(file.get_tensor("vectors"), file.get_tensor("lengths"))


def _read_parquet(path: Path) -> Iterator[Vectors]:
    file = _pyarrow()[1].ParquetFile(path)
    sentences = int(file.metadata.metadata[SENTENCES.encode()])
    table = file.read().combine_chunks()
    lengths = np.bincount(table["sentence"].to_numpy(), minlength=sentences)
    columns = [column.combine_chunks() for column in table.columns[3:]]
    layers = [column.flatten().to_numpy().reshape(len(column), column.type.list_size) for column in columns]
    vectors = layers[0] if table.column_names[3] == "vector" else np.stack(layers, axis=1)
    yield from _sentences(vectors, lengths)


def _sentences(vectors: Vectors, lengths: Any) -> Iterator[Vectors]:
    for part in np.split(vectors, np.cumsum(lengths)[:-1]) if len(lengths) else ():
        yield np.moveaxis(part, 0, -2)


FORMATS: dict[str, tuple[Callable[[Path], Writer], Callable[[Path], Iterator[Vectors]]]] = {
    ".h5": (Hdf5Writer, _read_hdf5),
    ".hdf5": (Hdf5Writer, _read_hdf5),
    ".npz": (NpzWriter, _read_npz),
    ".safetensors": (SafetensorsWriter, _read_safetensors),
    ".parquet": (ParquetWriter, _read_parquet),
}
