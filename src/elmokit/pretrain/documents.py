"""Text files of any size, read as a stream of documents."""

import gzip
import json
import lzma
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from elmokit.errors import DataError

BLOCK_BYTES = 100_000
LONGEST_LINE = 1 << 20  # bytes; a longer line of a text file is read in pieces
LONGEST_OBJECT = 1 << 26  # bytes; a longer line of a .jsonl file is refused


class Document(NamedTuple):
    """What stays together when a part is held out."""

    text: str
    """Paragraphs, one a line; never blank."""
    position: int
    """Bytes read of all files so far, as they lie on the disk."""


def find_files(paths: Iterable[Path]) -> list[Path]:
    """The text files among and under the paths, each once; a folder's hidden and other files are passed over."""
    files = [file for path in paths for file in (_under(path) if path.is_dir() else [_checked(path)])]
    return list({file.resolve(): file for file in files}.values())


def iter_documents(files: Sequence[Path], *, field: str = "text", block_bytes: int = BLOCK_BYTES) -> Iterator[Document]:
    """Each object of a .jsonl file; of a text file blocks of whole lines, with at least so many bytes."""
    done = 0
    for file in files:
        with _open(file) as raw:
            source = _Source(file, raw)
            texts = source.blocks(block_bytes) if ending(file)[0] == ".txt" else _objects(source, field)
            yield from (Document(text, done + raw.tell()) for text in texts if text.strip())
            done += raw.tell()


class _Source:
    """An open file that is unpacked, checked and decoded as it is read."""

    def __init__(self, path: Path, raw: BinaryIO) -> None:
        self.path, self.line = path, 1
        self.file = _UNPACKERS[ending(path)[1]](raw)
        self.decoder = getincrementaldecoder("utf-8-sig")()

    def blocks(self, size: int, longest: int = LONGEST_LINE) -> Iterator[str]:
        """So many bytes and the rest of their last line, but no more than `longest` bytes of that."""
        while content := self._read(size, longest):
            yield self._decode(content)
            self.line += content.count(b"\n")
        yield self._decode(b"")  # half a character at the end is an error now

    def _read(self, size: int, longest: int) -> bytes:
        try:
            content = self.file.read(size) + self.file.readline(longest)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise DataError(f"{self.path}: broken after line {self.line}: {error}. Pack or copy it again") from None
        if b"\0" in content:
            line = self.line + content.count(b"\n", 0, content.index(b"\0"))
            raise DataError(f"{self.path}, line {line}: a zero byte: a binary file, or UTF-16? Save it as UTF-8 text")
        return content

    def _decode(self, content: bytes) -> str:
        try:
            return self.decoder.decode(content, final=not content)
        except UnicodeDecodeError as error:
            line = self.line + error.object.count(b"\n", 0, error.start)
            found = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
            raise DataError(f"{self.path}, line {line}: {found}: save the file as UTF-8") from None


def _objects(source: _Source, field: str) -> Iterator[str]:
    for line in source.blocks(0, LONGEST_OBJECT):
        if line.strip():
            yield _text_of(line, field, f"{source.path}, line {source.line}")


def _text_of(line: str, field: str, place: str) -> str:
    if not line.endswith("\n") and len(line.encode()) > LONGEST_OBJECT - 4:  # less a character cut in two
        raise DataError(f"{place}: longer than {LONGEST_OBJECT >> 20} MB: divide it into several objects")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON ({error}): a .jsonl file has one object a line") from None
    text = found.get(field) if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise DataError(f"{place}: no text in the field {field!r}, found {_shape(found, field)}: name the right field")
    # JSON can spell half a character ("\ud800"), which no file of words could hold.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _shape(found: Any, field: str) -> str:
    if not isinstance(found, dict):
        return f"{type(found).__name__} in place of an object"
    if field in found:
        return f"{type(found[field]).__name__} in it"
    return f"the fields {', '.join(map(repr, found)) or 'of an empty object: none'}"


def _plain(raw: BinaryIO) -> BinaryIO:
    return raw


def _gzip(raw: BinaryIO) -> BinaryIO:
    return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]


def _xz(raw: BinaryIO) -> BinaryIO:
    return lzma.LZMAFile(raw)  # type: ignore[return-value]


_UNPACKERS: dict[str, Callable[[BinaryIO], BinaryIO]] = {"": _plain, ".gz": _gzip, ".xz": _xz}
ENDINGS = tuple("".join(ending) for ending in product((".txt", ".jsonl"), _UNPACKERS))


def ending(path: Path) -> tuple[str, str]:
    """How a file is read and how it is unpacked: (".txt", ".gz")."""
    packing = path.suffix.lower()
    if packing not in _UNPACKERS:
        return packing, ""
    return path.with_suffix("").suffix.lower(), packing


def _readable(path: Path) -> bool:
    return "".join(ending(path)) in ENDINGS


def _checked(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path}: there is no such file or folder")
    if not _readable(path):
        raise DataError(f"{path}: unknown ending {path.suffix!r}: a corpus is read from {', '.join(ENDINGS)}")
    return path


def _under(folder: Path) -> list[Path]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and _readable(file))
    visible = [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]
    if not visible:
        raise DataError(f"{folder}: the folder holds no text: a corpus is read from {', '.join(ENDINGS)}")
    return visible


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
