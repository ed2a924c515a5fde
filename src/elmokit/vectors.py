"""Vectors ↔ files, streamed: memory does not grow with the vectors.

| ending | layout |
|---|---|
| .h5, .hdf5 | AllenNLP's: a dataset a sentence, "0", "1", …, and `sentence_to_index`, a JSON of sentence → dataset |
| .npz, .safetensors | `vectors`, all tokens end to end, and the columns below |
| .parquet | a row a token: document, sentence, position, token, start, end, text, and a vector, or one a layer |

The columns are `lengths`, tokens a sentence; `starts` and `ends`, where a token stands in its sentence's text;
`tokens`, and of each sentence `texts` and `documents`: UTF-8 with a line feed after each, for an array of strings would
make each as wide as the longest. A line feed within is a blank.

For all layers the arrays of .h5 are (layers, tokens, width), and `vectors` of the others (tokens, layers, width).
"""

import json
import struct
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple, Protocol

import h5py
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors import safe_open

from elmokit.embedder import Vectors
from elmokit.errors import ConfigError, DataError, MissingExtraError
from elmokit.files import parsing, replacing, writing
from elmokit.hdf5 import NewHdf5
from elmokit.text.corpus import Context
from elmokit.text.tokenizers import Token

HEADER_ROOM = 1024  # bytes kept free at the head of a file whose length is known only at its end
ROWS_A_GROUP = 8192
BLOCK = 1 << 20
LINE_FEED = "\n"
COLUMNS = {"lengths": "<i4", "starts": "<i4", "ends": "<i4", "tokens": "|u1", "texts": "|u1", "documents": "|u1"}
MOST_SENTENCES = 1000  # for each byte of a parquet file, where an empty one takes no room; more was never written
SENTENCES = "sentences"  # key of the sentence count in a parquet file's metadata


class Embedded(NamedTuple):
    """A sentence and the vectors of its tokens."""

    context: Context
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
    with parsing(path, "vectors", kind=DataError):
        yield from reader(path)


def _format(path: Path) -> tuple[Callable[[Path], Writer], Callable[[Path], Iterator[Vectors]]]:
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path}: unknown ending {path.suffix!r}: vectors are kept in {', '.join(FORMATS)}")
    return FORMATS[path.suffix]


class Hdf5Writer:
    """AllenNLP's layout."""

    def __init__(self, path: Path) -> None:
        self.index = TemporaryFile(dir=path.parent)  # noqa: SIM115
        self.hdf5 = NewHdf5(path)

    def write(self, number: int, sentence: Embedded) -> None:
        self.hdf5.file.create_dataset(str(number), data=sentence.vectors)
        self.index.write(f'{", " if number else "{"}{json.dumps(sentence.context.text)}: "{number}"'.encode())
        self.hdf5.check()

    def finish(self) -> None:
        """Write the index; of a sentence that occurs twice, JSON readers keep the last, as AllenNLP did."""
        self.index.write(b"}" if self.index.tell() else b"{}")
        self.hdf5.write_text("sentence_to_index", self.index)

    def close(self) -> None:
        try:
            self.index.close()
        finally:  # HDF5 crashes at the very end of a process that leaves it open
            self.hdf5.close()


class FlatWriter:
    """All tokens end to end after a header that is filled in last; all else in nameless files until then."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.file.write(b" " * HEADER_ROOM)
        self.columns = {name: TemporaryFile(dir=path.parent) for name in COLUMNS}  # noqa: SIM115
        self.tokens, self.shape = 0, (0,)

    def write(self, number: int, sentence: Embedded) -> None:  # noqa: ARG002
        """Add the tokens, each with all its layers."""
        tokens_first = np.moveaxis(sentence.vectors, -2, 0)  # (T, D) or (T, L, D)
        self.tokens += len(tokens_first)
        self.shape = tokens_first.shape[1:]
        self.file.write(np.ascontiguousarray(tokens_first, dtype="<f4").tobytes())
        text, tokens, document, _ = sentence.context
        self._add("lengths", len(tokens))
        self._add("starts", *(token.start for token in tokens))
        self._add("ends", *(token.end for token in tokens))
        self._add("tokens", *(token.text for token in tokens))
        self._add("texts", text)
        self._add("documents", document)

    def _add(self, name: str, *values: Any) -> None:
        if COLUMNS[name] == "|u1":
            content = "".join(f"{str(value).replace(LINE_FEED, ' ')}\n" for value in values).encode()
        else:
            content = np.array(values, COLUMNS[name]).tobytes()
        self.columns[name].write(content)

    @property
    def full_shape(self) -> tuple[int, ...]:
        """(N, …), all sentences together."""
        return (self.tokens, *self.shape)

    def finished_columns(self) -> Iterator[tuple[str, str, int, BinaryIO]]:
        """All that is not the vectors: name, type, count and bytes."""
        for name, file in self.columns.items():
            count = file.tell() // np.dtype(COLUMNS[name]).itemsize
            file.seek(0)
            yield name, COLUMNS[name], count, file

    def close(self) -> None:
        for file in (self.file, *self.columns.values()):
            file.close()


class SafetensorsWriter(FlatWriter):
    """The header, then `vectors`, then the other columns."""

    def finish(self) -> None:
        """Add the columns and fill in the header, padded with blanks as the format allows."""
        end = self.file.tell() - HEADER_ROOM
        header: dict[str, Any] = {"vectors": {"dtype": "F32", "shape": self.full_shape, "data_offsets": [0, end]}}
        for name, kind, count, content in self.finished_columns():
            copyfileobj(content, self.file, BLOCK)
            start, end = end, self.file.tell() - HEADER_ROOM
            header[name] = {"dtype": "U8" if kind == "|u1" else "I32", "shape": [count], "data_offsets": [start, end]}
        self.file.seek(0)
        self.file.write(struct.pack("<Q", HEADER_ROOM - 8) + json.dumps(header).encode().ljust(HEADER_ROOM - 8))


class NpzWriter(FlatWriter):
    """Streams into a file of its own and packs it when its length is known."""

    def __init__(self, path: Path) -> None:
        self.path, self.flat = path, path.with_name(f"{path.name}.flat")
        super().__init__(self.flat)

    def finish(self) -> None:
        self.file.close()
        with zipfile.ZipFile(self.path, "w") as archive:
            with self.flat.open("rb") as vectors:
                vectors.seek(HEADER_ROOM)
                _add_array(archive, "vectors", "<f4", self.full_shape, vectors)
            for name, kind, count, content in self.finished_columns():
                _add_array(archive, name, kind, (count,), content)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self.flat.unlink(missing_ok=True)


def _add_array(archive: zipfile.ZipFile, name: str, kind: str, shape: tuple[int, ...], content: BinaryIO) -> None:
    """An array of a .npz file, from its bytes."""
    # A fixed date, that of ZipInfo itself: the same vectors make the same bytes.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
        npy.write_array_header_1_0(entry, {"descr": kind, "fortran_order": False, "shape": shape})
        copyfileobj(content, entry, BLOCK)


class ParquetWriter:
    """A row a token, written in groups."""

    def __init__(self, path: Path) -> None:
        self.pyarrow, self.parquet = import_pyarrow()
        self.path, self.sentences = path, 0
        string, number = self.pyarrow.string(), self.pyarrow.int32()
        self.types = {"document": string, "sentence": self.pyarrow.int64(), "position": number, "token": string}
        self.types |= {"start": number, "end": number, "text": string}
        self.rows: dict[str, list[Any]] = defaultdict(list)
        self.file: Any = None

    def write(self, number: int, sentence: Embedded) -> None:
        text, tokens, document, _ = sentence.context
        self.sentences = number + 1
        for position, (token, start, end) in enumerate(tokens):
            for name, value in zip(self.types, (document, number, position, token, start, end, text), strict=True):
                self.rows[name].append(value)
        self.rows["vectors"].append(sentence.vectors)
        if len(self.rows["token"]) >= ROWS_A_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        columns = {name: self.pyarrow.array(self.rows[name], kind) for name, kind in self.types.items()}
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


def import_pyarrow() -> tuple[Any, Any]:
    """pyarrow and its parquet module, or how to get them."""
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


def read_embedded(path: Path) -> Iterator[Embedded]:
    """The sentences that `SafetensorsWriter` wrote, without having more than one in memory."""
    content = np.memmap(path, np.uint8, mode="r")
    header = json.loads(content[8:HEADER_ROOM].tobytes())
    spans = {name: [HEADER_ROOM + offset for offset in one["data_offsets"]] for name, one in header.items()}
    columns = {name: content[start:end].view(COLUMNS.get(name, "<f4")) for name, (start, end) in spans.items()}
    vectors = columns["vectors"].reshape(header["vectors"]["shape"])  # (N, D) or (N, L, D)
    words, texts, documents = (_lines(columns[name]) for name in ("tokens", "texts", "documents"))
    end = 0
    for length, text, document in zip(columns["lengths"].tolist(), texts, documents, strict=True):
        start, end = end, end + length
        bounds = zip(columns["starts"][start:end].tolist(), columns["ends"][start:end].tolist(), strict=True)
        tokens = [Token(next(words), *bound) for bound in bounds]
        yield Embedded(Context(text, tokens, document), np.moveaxis(np.array(vectors[start:end]), 0, -2))


def _lines(column: NDArray[np.uint8]) -> Iterator[str]:
    """The strings of a column of UTF-8 with a line feed after each."""
    rest = b""
    for start in range(0, len(column), BLOCK):
        *lines, rest = (rest + column[start : start + BLOCK].tobytes()).split(b"\n")
        yield from (line.decode() for line in lines)


def _read_parquet(path: Path) -> Iterator[Vectors]:
    file = import_pyarrow()[1].ParquetFile(path)
    sentences = int(file.metadata.metadata[SENTENCES.encode()])
    table = file.read(columns=[name for name in file.schema_arrow.names if name not in ("document", "token", "text")])
    numbers = table["sentence"].to_numpy()
    if sentences > MOST_SENTENCES * path.stat().st_size or numbers.max(initial=-1) >= sentences:
        raise ValueError(f"it claims {sentences:,} sentences, and has rows of sentence {numbers.max(initial=-1):,}")
    lengths = np.bincount(numbers, minlength=sentences)
    names = [name for name in table.column_names if name == "vector" or name.startswith("layer_")]
    columns = [table[name].combine_chunks() for name in names]
    layers = [column.flatten().to_numpy().reshape(len(column), column.type.list_size) for column in columns]
    vectors = layers[0] if names == ["vector"] else np.stack(layers, axis=1)
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
