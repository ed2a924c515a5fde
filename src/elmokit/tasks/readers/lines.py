"""Files of examples, line by line, plain or packed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from itertools import groupby
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from elmokit.errors import DataError
from elmokit.tasks.examples import Place
from elmokit.text.documents import TextFile
from elmokit.text.encodings import AUTO, UTF8, as_utf8, check_encoding, find_encoding, not_utf8
from elmokit.text.packing import BROKEN, UNPACKERS, ending

P = ParamSpec("P")
T = TypeVar("T")
Reader = Callable[Concatenate[Path, P], Iterator[T]]
LONGEST_LINE = 1 << 26  # bytes
_ENCODING = ContextVar("encoding", default=UTF8)  # of the labelled data: every reader ends here, none is told of it
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


class Line(NamedTuple):
    """A line without its end, and where it stands."""

    text: str
    place: Place


def read_lines(path: Path, *, blank: bool = True) -> Iterator[Line]:
    """The lines of a file, ended by LF or CRLF, packed or not; without the blank ones unless they count."""
    for number, content in enumerate(read_bytes(path, LONGEST_LINE, lines=True), 1):
        place = Place(str(path), number)
        if len(content) == LONGEST_LINE and not content.endswith(b"\n"):
            raise place.error(f"longer than {LONGEST_LINE >> 20} MB: expected lines of text")
        text = decode(content, place, "utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        if blank or text.strip():
            yield Line(text, place)


@contextmanager
def reading_as(encoding: str) -> Iterator[None]:
    """Within it, readers take files to be in that encoding; "auto" guesses it from each."""
    token = _ENCODING.set(check_encoding(encoding))
    try:
        yield
    finally:
        _ENCODING.reset(token)


def read_bytes(path: Path, size: int, *, lines: bool = False, recode: bool = True) -> Iterator[bytes]:
    """A file, unpacked as its ending says and recoded as UTF-8, in pieces or in lines of so many bytes at most."""
    encoding = _ENCODING.get()
    try:
        if encoding == AUTO:
            with TextFile(path).open() as raw:
                encoding = find_encoding(UNPACKERS[ending(path)[1]](raw))
        with TextFile(path).open() as raw:
            file = UNPACKERS[ending(path)[1]](raw)
            if recode:
                file = as_utf8(file, encoding, str(path))
            yield from iter(partial(file.readline if lines else file.read, size), b"")
    except BROKEN as error:
        raise DataError(f"{path}: cannot be read to its end: {error}. Pack or copy it again") from None


def decode(content: bytes, place: Place, encoding: str) -> str:
    """The text of bytes that begin at a place."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = place.line + error.object.count(b"\n", 0, error.start)
        raise place._replace(line=line).error(not_utf8(error)) from None


def blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines between those that are blank, be there a tab in them or nothing."""
    for is_block, block in groupby(lines, key=lambda line: bool(line.text.strip())):
        if is_block:
            yield list(block)


def fields(line: Line) -> list[str]:
    """A line divided at its tabs, or, if it has none, wherever blanks are; other white space may be part of a word."""
    if "\t" in line.text:
        return [field.strip(" ") for field in line.text.split("\t")]
    return [field for field in line.text.split(" ") if field]


def unescape(word: str) -> str:
    """A word of a treebank as it is read elsewhere: "-LRB-" is "(" and "and\\/or" is "and/or"."""
    return _ESCAPED.get(word, word).replace("\\/", "/").replace("\\*", "*")


def expecting(expected: str) -> Callable[[Reader[P, T]], Reader[P, T]]:
    """For readers: a file without any examples is not what was expected."""

    def decorate(read: Reader[P, T]) -> Reader[P, T]:
        @wraps(read)
        def read_some(path: Path, /, *args: P.args, **options: P.kwargs) -> Iterator[T]:
            example = None
            for example in read(path, *args, **options):
                yield example
            if example is None:
                raise DataError(f"{path}: there are no examples in it: expected {expected}")

        return read_some

    return decorate
