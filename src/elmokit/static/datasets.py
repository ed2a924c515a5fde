"""Word similarity and analogy sets in the formats they are handed around in, told apart by what is in them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from elmokit.errors import DataError

T = TypeVar("T")
Question = tuple[str, ...]
"""Four words: a is to b as c is to d."""


class Pair(NamedTuple):
    """Two words and how similar people find them."""

    first: str
    second: str
    score: float


class WordInContext(NamedTuple):
    """A text with one of its words between <b> and </b>: tokens[start:end]."""

    tokens: list[str]
    start: int
    end: int


class PairInContext(NamedTuple):
    """Two words, each in a text, and how similar people find them there."""

    first: WordInContext
    second: WordInContext
    score: float


@dataclass(frozen=True)
class Dataset:
    """One file; only one of its lists has anything in it."""

    name: str
    """The file's, without its ending."""
    pairs: tuple[Pair, ...] = ()
    """WordSim-353, SimLex-999, MEN, 240 and 297 and others: two words, then a number among the other columns."""
    questions: tuple[tuple[str, tuple[Question, ...]], ...] = ()
    """questions-words, CA8: ": group", then four words per line."""
    in_context: tuple[PairInContext, ...] = ()
    """SCWS: tab-separated, with the words between <b> and </b>."""


def read_dataset(path: Path) -> Dataset:
    """Read a file of any of these formats."""
    lines = list(_read_lines(path))
    if not lines:
        raise DataError(f"{path}: an empty file")
    first = lines[0][1]
    if "<b>" in first:
        return Dataset(path.stem, in_context=tuple(_each(path, lines, _pair_in_context)))
    if first.startswith(":"):
        return Dataset(path.stem, questions=tuple(_groups(path, lines)))
    if _pair(first) is None:
        del lines[0]  # names of the columns
    return Dataset(path.stem, pairs=tuple(_each(path, lines, _pair)))


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are neither blank nor remarks, with their numbers."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig").rstrip("\r")
        except UnicodeDecodeError:
            raise DataError(f"{path}, line {number}: not UTF-8: save the file as UTF-8") from None
        if text.strip() and not text.startswith("#"):
            yield number, text


def _each(path: Path, lines: list[tuple[int, str]], parse: Callable[[str], T | None]) -> Iterator[T]:
    for number, line in lines:
        item = parse(line)
        if item is None:
            raise DataError(
                f"{path}, line {number}: found {line[:60]!r}; expected two words and a number, or the format of "
                "questions-words (': group', then four words per line) or of SCWS (words between <b> and </b>)"
            )
        yield item


def _pair(line: str) -> Pair | None:
    """The first two columns and the first number after them."""
    separator = next((mark for mark in ("\t", ",", ";") if mark in line), None)
    fields = [field.strip() for field in line.split(separator)]
    score = next((score for score in map(_number, fields[2:]) if score is not None), None)
    return None if score is None or not fields[0] or not fields[1] else Pair(fields[0], fields[1], score)


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None


def _groups(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[str, tuple[Question, ...]]]:
    starts = [index for index, (_, line) in enumerate(lines) if line.startswith(":")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start][1].removeprefix(":").strip(), tuple(_each(path, lines[start + 1 : end], _question))


def _question(line: str) -> Question | None:
    words = tuple(line.split())
    return words if len(words) == 4 else None


def _pair_in_context(line: str) -> PairInContext | None:
    """Number, word, part of speech, word, part of speech, text, text, mean score, single scores."""
    fields = line.split("\t")
    found = [word for word in map(_word_in_context, fields) if word is not None]
    score = _number(fields[7]) if len(fields) > 7 else None
    return PairInContext(found[0], found[1], score) if len(found) == 2 and score is not None else None


def _word_in_context(text: str) -> WordInContext | None:
    before, opened, rest = text.partition("<b>")
    word, closed, after = rest.partition("</b>")
    if not opened or not closed or not word.strip():
        return None
    start = len(before.split())
    tokens = [*before.split(), *word.split(), *after.split()]
    return WordInContext(tokens, start, start + len(word.split()))
