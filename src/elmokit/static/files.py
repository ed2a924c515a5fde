"""Static vectors ↔ files: words and their vectors, one after another.

| ending | layout |
|---|---|
| .txt, .vec, .txt.gz, .vec.gz | text, one word per line; word2vec's and fastText's begins with "words width" |
| .bin, .bin.gz | word2vec's binary: "words width", a line feed, then each word, a blank and its float32 numbers |
| .safetensors | `vectors` (V, D), and `words` as UTF-8 with a line feed after each; one-hot vectors are left out |

In text only the ASCII blank separates; where a word has blanks inside, as in GloVe's largest file, the last numbers of
the line are its vector.
"""

import codecs
import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from elmokit.embedder import Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.files import parsing, replacing, writing

ROWS_PER_BLOCK = 1000
WIDEST = 1_000_000
LONGEST_WORD = 10_000  # bytes
FASTTEXT_MODEL = b"\xba\x16\x4f\x2f"
_JSON = msgspec.json.Decoder(list[float])
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Block(NamedTuple):
    """Some words and their vectors."""

    words: list[str]
    vectors: Vectors
    """(words, width)"""


class Identity:
    """One-hot vectors of so many words, written out only where they are asked for."""

    def __init__(self, size: int) -> None:
        self.shape = (size, size)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> Vectors:
        indices = np.arange(self.shape[0])[rows]
        vectors = np.zeros((len(indices), self.shape[1]), dtype=np.float32)
        vectors[np.arange(len(indices)), indices] = 1
        return vectors


def read_vectors(path: Path) -> Block:
    """All words of a file, with their vectors in one array."""
    words: list[str] = []
    vectors = np.empty((0, 0), dtype=np.float32)
    for block in read_blocks(path):
        end = len(words) + len(block.words)
        if end > len(vectors):  # grown in place: there are never two arrays of the full size
            vectors.resize((max(end, 2 * len(vectors)), block.vectors.shape[1]), refcheck=False)
        vectors[len(words) : end] = block.vectors
        words += block.words
    vectors.resize((len(words), vectors.shape[1]), refcheck=False)
    return Block(words, vectors)


def read_blocks(path: Path) -> Iterator[Block]:
    """The words of a file in order, at least one, some at a time."""
    reader, block = READERS[_ending(path)], None
    with parsing(path, "vectors", kind=DataError):
        for block in reader(path):
            yield block
    if block is None:
        raise DataError(f"{path}: there are no vectors in it")


def write_vectors(path: Path, words: Sequence[str], vectors: Vectors | Identity, *, header: bool = True) -> None:
    """Write words and their vectors in the format of the ending; text without `header` is GloVe's.

    The file appears when it is complete.
    """
    ending = _ending(path)
    binary = ending.startswith(".bin")
    encoded = [_encoded(path, word, blanks=not binary) for word in words]
    with replacing(path) as new, writing(path, (OSError, SafetensorError)):
        if ending == ".safetensors":
            tensors = {"words": np.frombuffer(b"".join(word + b"\n" for word in encoded), dtype=np.uint8)}
            if not isinstance(vectors, Identity):
                tensors["vectors"] = np.ascontiguousarray(vectors)
            save_file(tensors, new)
            return
        with (
            new.open("wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if new.suffix == ".gz" else nullcontext(raw) as file,
        ):
            if header or binary:
                file.write(b"%d %d\n" % (len(words), vectors.shape[1]))
            # Nine digits give every float32 back to the bit.
            numbers = b" ".join([b"%.9g"] * vectors.shape[1])
            for row, word in enumerate(encoded):
                vector = vectors[row : row + 1][0]
                content = vector.astype("<f4").tobytes() if binary else numbers % tuple(vector.tolist())
                file.write(word + b" " + content + b"\n")


def check_output(path: Path) -> None:
    """Raise at once what `write_vectors` would raise in the end: a wrong ending, no permission, a missing folder."""
    _ending(path)
    with replacing(path, keep=False):
        pass


def _ending(path: Path) -> str:
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if ending not in READERS:
        raise ConfigError(f"{path}: unknown ending {ending!r}: vectors of words are kept in {', '.join(READERS)}")
    return ending


def _encoded(path: Path, word: str, *, blanks: bool) -> bytes:
    if not word or "\n" in word or (" " in word and not blanks):
        raise DataError(f"{path}: the word {word!r} cannot be told from others in this format: remove it")
    try:
        return word.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{path}: the word {word!r} holds half a character: remove it") from None


def _decoded(word: bytes, where: str) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: byte 0x{word[error.start]:02x} is not UTF-8: save the file as UTF-8") from None


def _open_old(path: Path) -> BinaryIO:
    return BufferedReader(gzip.GzipFile(path)) if path.suffix == ".gz" else path.open("rb")


def _header(line: bytes) -> tuple[int, int] | None:
    """Words and width, if the line says them."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 16 for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _read_tensors(path: Path) -> Iterator[Block]:
    with safe_open(path, framework="np") as file:
        names = set(file.keys())
        if "words" not in names:
            raise DataError(f"{path}: no vectors of words, for 'words' is missing: found {', '.join(sorted(names))}")
        words = _decoded(file.get_tensor("words").tobytes(), f"{path}, 'words'").split("\n")[:-1]
        vectors = file.get_slice("vectors") if "vectors" in names else Identity(len(words))
        shape = list(vectors.shape) if isinstance(vectors, Identity) else vectors.get_shape()
        if len(shape) != 2 or shape[0] != len(words):
            raise DataError(f"{path}: {len(words):,} words, but 'vectors' is {shape}")
        for start in range(0, len(words), ROWS_PER_BLOCK):
            end = min(start + ROWS_PER_BLOCK, len(words))
            block = vectors[start:end]
            if not np.isfinite(block).all():
                raise DataError(f"{path}: not all numbers of the words {start + 1} to {end} are finite")
            yield Block(words[start:end], block)


def _read_binary(path: Path) -> Iterator[Block]:
    with _open_old(path) as file:
        first = file.readline(LONGEST_WORD)
        count, width = _header(first) or (0, 0)
        if not 0 < width <= WIDEST:
            found = "a model of fastText's: take its .vec" if first.startswith(FASTTEXT_MODEL) else repr(first[:40])
            raise DataError(f"{path}, line 1: word2vec's binary begins with 'words width'; found {found}")
        for start in range(0, count, ROWS_PER_BLOCK):
            numbers = range(start + 1, min(start + ROWS_PER_BLOCK, count) + 1)
            rows = [_read_row(file, width, f"{path}, word {number} of {count}") for number in numbers]
            yield Block([word for word, _ in rows], np.stack([vector for _, vector in rows]))
        if file.read(LONGEST_WORD).strip():
            raise DataError(f"{path}: line 1 says {count:,} words, but the file goes on after them")


def _read_row(file: BinaryIO, width: int, where: str) -> tuple[str, Vectors]:
    word = bytearray()
    while (character := file.read(1)) != b" ":
        word += character
        if not character or len(word) > LONGEST_WORD:
            raise DataError(f"{where}: no blank after it: the file is cut short, or its width is not {width}")
    content = file.read(4 * width)
    if len(content) < 4 * width:
        raise DataError(f"{where}: the file ends within its {width} numbers")
    vector = np.frombuffer(content, dtype="<f4")
    if not np.isfinite(vector).all():
        raise DataError(f"{where}: not all of its {width} numbers are finite: is the width right?")
    return _decoded(bytes(word).lstrip(b"\n"), where), vector


def _read_text(path: Path) -> Iterator[Block]:
    with _open_old(path) as file:
        first = file.readline().removeprefix(codecs.BOM_UTF8)
        size = _header(first)
        width = size[1] if size else first.rstrip(b" \r\n").count(b" ")
        if first and not 0 < width <= WIDEST:
            raise DataError(f"{path}, line 1: found {first[:40]!r}, expected a word and its numbers, or 'words width'")
        line, lines = (1, []) if size else (0, [first] if first else [])  # lines read before these
        while lines := [*lines, *islice(file, ROWS_PER_BLOCK)]:
            yield _parsed(lines, width, path, line + 1)
            line, lines = line + len(lines), []
    if size and line - 1 != size[0]:
        raise DataError(f"{path}: line 1 says {size[0]:,} words, but the file ends with line {line:,}")


def _parsed(lines: list[bytes], width: int, path: Path, first: int) -> Block:
    words = []
    vectors = np.empty((len(lines), width), dtype=np.float32)  # (n, D)
    for row, line in enumerate(lines):
        word, numbers = _divided(line, width)
        found = _numbers(numbers)
        if len(found) != width or numbers.count(b" ") != width - 1 or not np.isfinite(found).all():
            raise DataError(f"{path}, line {first + row}: {_mistake(numbers, width)}")
        words.append(_decoded(word, f"{path}, line {first + row}"))
        vectors[row] = found
    return Block(words, vectors)


def _divided(line: bytes, width: int) -> tuple[bytes, bytes]:
    """The word and its numbers; the last ones, if the word has blanks inside."""
    line = line.rstrip(b" \r\n")
    word, _, numbers = line.partition(b" ")
    if numbers.count(b" ") < width:
        return word, numbers
    word, *last = line.rsplit(b" ", width)
    return word, b" ".join(last)


def _numbers(fields: bytes) -> Vectors:
    """As JSON, which is read fastest; numbers that JSON does not know, such as +1 and .5, one by one."""
    try:
        found = _JSON.decode(b"[" + fields.replace(b" ", b",") + b"]")
    except msgspec.DecodeError:
        known = fields.split(b" ")
        found = [float(field) for field in known] if all(map(_NUMBER.fullmatch, known)) else []
    with np.errstate(over="ignore"):
        return np.fromiter(found, dtype=np.float32, count=len(found))


def _mistake(numbers: bytes, width: int) -> str:
    fields = numbers.split(b" ") if numbers else []
    if len(fields) != width:
        return f"{len(fields)} numbers after the word, expected {width} as line 1 has it"
    wrong = next((field for field in fields if not _NUMBER.fullmatch(field)), None)
    if wrong is None:
        return "a number too large for float32"
    return f"{wrong[:40].decode('utf-8', 'replace')!r} is not a number"


READERS: dict[str, Callable[[Path], Iterator[Block]]] = {
    **dict.fromkeys((".txt", ".vec", ".txt.gz", ".vec.gz"), _read_text),
    **dict.fromkeys((".bin", ".bin.gz"), _read_binary),
    ".safetensors": _read_tensors,
}
