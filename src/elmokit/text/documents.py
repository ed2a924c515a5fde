"""Text files of any size, read as a stream of documents, each a few paragraphs, one per line."""

import io
import json
import logging
import os
import sys
import weakref
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b, file_digest
from itertools import product
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple

from elmokit.errors import DataError
from elmokit.text import fasta
from elmokit.text.encodings import (
    AUTO,
    UTF8,
    as_utf8,
    check_encoding,
    decode_head,
    find_encoding,
    guess_encoding,
    not_utf8,
)
from elmokit.text.layout import Lines, is_wrapped, unwrap
from elmokit.text.packing import BROKEN, UNPACKERS, ending

logger = logging.getLogger(__name__)

STANDARD_INPUT = "-"
ENDINGS = tuple("".join(ending) for ending in product((".txt", ".jsonl", *fasta.ENDINGS), UNPACKERS))
BLOCK_BYTES = 100_000
HEAD_BYTES = 1 << 18  # of a file, from which its layout is seen
LONGEST_LINE = 1 << 20  # bytes; a longer line of a text file is read in pieces, and so is a longer wrapped paragraph
LONGEST_OBJECT = 1 << 26  # bytes; a longer line of a .jsonl file is refused


class Document(NamedTuple):
    """What stays together when a part is held out: an object of a .jsonl file, or some paragraphs of a text file."""

    text: str
    """Paragraphs, one per line, or sentences, if that is what lines are."""
    name: str
    """The file; of a .jsonl file the object too, by its number."""
    position: int
    """Bytes read of all files so far, as they lie on the disk."""


@dataclass(frozen=True)
class TextFile:
    """A file and how its lines are read."""

    path: Path
    lines: Lines = "paragraphs"
    field: str | None = "text"
    """What holds the text of a .jsonl object; none for lines as they are."""
    stream: BinaryIO | None = None
    """Standard input or a pipe, or a copy of it that can be read again."""
    encoding: str = UTF8
    """What its text is decoded by, unless it begins with a byte order mark."""

    @property
    def name(self) -> str:
        return "standard input" if str(self.path) == STANDARD_INPUT else str(self.path)

    @property
    def bytes(self) -> int:
        """Its length on the disk; 0 for a stream, which has none yet."""
        if self.stream is None:
            return self.path.stat().st_size
        return self.stream.seek(0, io.SEEK_END) if self.stream.seekable() else 0

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes as they lie there."""
        if self.stream is not None:
            if self.stream.seekable():
                self.stream.seek(0)
            yield self.stream
            return
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None
        with file:
            yield file

    def digest(self) -> str:
        """A hash of the contents."""
        with self.open() as file:
            return file_digest(file, blake2b).hexdigest()  # type: ignore[arg-type]

    def head(self) -> str:
        """The text it begins with; of a stream what has come of it, which is still there to be read."""
        if self.stream is not None and not self.stream.seekable():
            assert isinstance(self.stream, io.BufferedReader)
            return decode_head(self.stream.peek(HEAD_BYTES), self.encoding)
        texts: list[str] = []
        with self.open() as raw:
            for text in _Source(self, raw).texts(HEAD_BYTES):
                texts.append(text)
                if sum(map(len, texts)) >= HEAD_BYTES:
                    break
        return "\n".join(texts)


Paths = Iterable[Path | str | TextFile] | Path | str


def open_texts(
    paths: Paths,
    *,
    lines: Lines = "auto",
    field: str | None = "text",
    encoding: str = UTF8,
    repeatable: bool = True,
) -> list[TextFile]:
    """The text files among and under the paths, or the path, each once; a folder's hidden and other files are left out.

    What their lines are is seen from each file unless it is told, and reported to the logger. "-" is standard input; to
    be repeatable, it is first copied to a temporary file. The encoding "auto" is guessed from each file. Files that are
    open already stay as they are.
    """
    encoding = check_encoding(encoding)
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    opened = [path for path in paths if isinstance(path, TextFile)]
    given = [Path(path).expanduser() for path in paths if not isinstance(path, TextFile)]
    for path in given:  # whatever their endings: what is not text is found out when it is read
        if str(path) != STANDARD_INPUT and not path.exists():
            raise DataError(f"{path}: there is no such file or folder")
    found = [file for path in given for file in (_under(path) if path.is_dir() else [path])]
    distinct = {file.resolve(): file for file in found}.values()
    files = [TextFile(file, lines, field, _stream(file, repeatable=repeatable), encoding) for file in distinct]
    if encoding == AUTO:
        files = [replace(file, encoding=_encoding(file)) for file in files]
    if lines == "auto":
        files = [replace(file, lines=_layout(file)) for file in files]
        if running := [file for file in files if not is_fasta(file.path)]:
            logger.info(_described(running))
    return [*opened, *files]


def iter_documents(files: Sequence[TextFile], *, block_bytes: int = BLOCK_BYTES) -> Iterator[Document]:
    """Each object of a .jsonl file; of a text file blocks of whole paragraphs, with at least so many bytes."""
    done = 0
    for file in files:
        with file.open() as raw:
            source = _Source(file, raw)
            for number, text in enumerate(source.texts(block_bytes), 1):
                if text.strip() or file.lines == "sentences":
                    name = f"{file.name}:{source.record or number}" if source.is_records else file.name
                    yield Document(text, name, done + source.read)
            done += source.read


def total_bytes(files: Iterable[TextFile]) -> int:
    """The length of all files, as they lie on the disk."""
    return sum(file.bytes for file in files)


class _Source:
    """An open file that is unpacked, checked and decoded as it is read."""

    def __init__(self, file: TextFile, raw: BinaryIO) -> None:
        self.name, self.lines, self.field, self.raw = file.name, file.lines, file.field, raw
        self.is_fasta = is_fasta(file.path)
        self.is_records = self.is_fasta or (ending(file.path)[0] == ".jsonl" and file.field is not None)
        self.record = ""
        self.line, self.read = 1, 0
        with self._whole():
            self.file = as_utf8(UNPACKERS[ending(file.path)[1]](raw), file.encoding, file.name)
        self.decoder = getincrementaldecoder("utf-8-sig")()

    def texts(self, size: int) -> Iterator[str]:
        """The text of each object or block, with one paragraph or sentence per line."""
        # Of a stream each line is handed on when it has come.
        for text in self._records() if self.is_records else self._blocks(size if self.raw.seekable() else 0):
            text = text.removesuffix("\n")
            yield "\n".join(unwrap(text.split("\n"))) if self.lines == "wrapped" else text

    def _blocks(self, size: int, longest: int = LONGEST_LINE) -> Iterator[str]:
        """So many bytes and the rest of their last line, or wrapped paragraph, but no more than `longest` of that."""
        while content := self._read(size, longest):
            yield self._decode(content)
            self.line += content.count(b"\n")
        if rest := self._decode(b""):  # half a character at the end is an error now
            yield rest

    def _read(self, size: int, longest: int) -> bytes:
        with self._whole():
            content = self.file.read(size) + self.file.readline(longest)
            most = len(content) + longest
            while self.lines == "wrapped" and not self.is_records and (more := self.file.readline(longest)):
                content += more
                if not more.strip() or len(content) > most:
                    break
        self.read = self.raw.tell() if self.raw.seekable() else self.read + len(content)
        if b"\0" in content:
            line = self.line + content.count(b"\n", 0, content.index(b"\0"))
            likely = guess_encoding(content)
            advice = f": say --encoding {likely}" if likely else "? Save it as UTF-8 text"
            raise DataError(f"{self.name}, line {line}: a zero byte: a binary file, or UTF-16{advice}")
        return content

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            raise DataError(f"{self.name}: broken after line {self.line}: {error}. Pack or copy it again") from None

    def _decode(self, content: bytes) -> str:
        try:
            return self.decoder.decode(content, final=not content)
        except UnicodeDecodeError as error:
            line = self.line + error.object.count(b"\n", 0, error.start)
            raise DataError(f"{self.name}, line {line}: {not_utf8(error)}") from None

    def _records(self) -> Iterator[str]:
        if self.is_fasta:
            for record in fasta.read_records(self._blocks(0), self.name):
                self.record = record.name
                yield record.text
            return
        for line in self._blocks(0, LONGEST_OBJECT):
            if line.strip():
                yield _text_of(line, self.field or "", f"{self.name}, line {self.line}")


def _encoding(file: TextFile) -> str:
    if file.stream is not None and not file.stream.seekable():
        assert isinstance(file.stream, io.BufferedReader)
        found = guess_encoding(file.stream.peek(HEAD_BYTES)) or UTF8
    else:
        with file.open() as raw:
            try:
                found = find_encoding(UNPACKERS[ending(file.path)[1]](raw))
            except BROKEN:
                found = UTF8  # what is wrong is said when it is read
    if found != UTF8:
        logger.info(f"{file.name}: {found}")
    return found


def _layout(file: TextFile) -> Lines:
    return "wrapped" if not is_fasta(file.path) and is_wrapped(file.head().split("\n")) else "paragraphs"


def _described(files: Sequence[TextFile]) -> str:
    name = files[0].name if len(files) == 1 else f"{len(files)} files"
    wrapped = sum(file.lines == "wrapped" for file in files)
    if 0 < wrapped < len(files):
        return f"{name}: in {wrapped} of them blank lines end paragraphs, in the others each line is one"
    return f"{name}: {'wrapped lines, blank lines end paragraphs' if wrapped else 'each line is a paragraph'}"


def _stream(path: Path, *, repeatable: bool) -> BinaryIO | None:
    """Standard input, or a pipe with a name; none for an ordinary file."""
    if path.is_file():
        return None
    given: Any = sys.stdin.buffer
    if str(path) != STANDARD_INPUT:
        given = _opened(os.open(path, os.O_RDONLY))
    elif not repeatable:
        # Reading below the buffer gives what has arrived, without waiting for more.
        given = io.BufferedReader(getattr(given, "raw", given), HEAD_BYTES)
    if not repeatable:
        return given  # type: ignore[no-any-return]
    with TemporaryFile() as copy:
        copyfileobj(given, copy)
        copy.flush()
        return _opened(os.dup(copy.fileno()))


def _opened(handle: int) -> BinaryIO:
    """A stream whose file is closed when nobody has it any more."""
    stream = io.BufferedReader(io.FileIO(handle, closefd=False), HEAD_BYTES)
    weakref.finalize(stream, os.close, handle)
    return stream


def _text_of(line: str, field: str, place: str) -> str:
    if not line.endswith("\n") and len(line.encode()) > LONGEST_OBJECT - 4:  # less a character cut in two
        raise DataError(f"{place}: longer than {LONGEST_OBJECT >> 20} MB: divide it into several objects")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON ({error}): a .jsonl file has one object per line") from None
    text = found.get(field) if isinstance(found, dict) else None
    if not isinstance(text, str):
        if not isinstance(found, dict):
            shape = f"{type(found).__name__} in place of an object"
        elif field in found:
            shape = f"{type(found[field]).__name__} in it"
        else:
            shape = f"the fields {', '.join(map(repr, found)) or 'of an empty object: none'}"
        raise DataError(f"{place}: no text in the field {field!r}, found {shape}: name the right field")
    # JSON can spell half a character ("\ud800"), which no file of words could hold.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_fasta(path: Path) -> bool:
    """Whether it holds sequences, a residue a token, and no running text."""
    return ending(path)[0] in fasta.ENDINGS


def _under(folder: Path) -> list[Path]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and "".join(ending(file)) in ENDINGS)
    visible = [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]
    if not visible:
        raise DataError(f"{folder}: the folder holds no text: a corpus is read from {', '.join(ENDINGS)}")
    return visible
