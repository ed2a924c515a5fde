"""What a line of text is: a paragraph, or a part of one that was wrapped to a common width."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal
from unicodedata import east_asian_width

Lines = Literal["auto", "wrapped", "paragraphs", "sentences"]
"""What a line is: part of a wrapped text, whose paragraphs end at blank lines, a paragraph, a sentence; auto: see."""

NARROWEST, WIDEST = 30, 200  # columns: shorter lines are verse or lists, longer ones nobody wraps
FEWEST = 4  # lines that go on in another, to judge by
MOST_INDENTED = 0.9  # of all lines; where more are, it is the text that is indented, not the first lines of paragraphs
_FINAL = re.compile(r"[.!?…。！？；;:：—][\"'”’»」』）)\]】》〉]*$")
_FIRST_WORD = re.compile(r"[\u1100-\uffff]|[^\s\u1100-\uffff]+")
_LAST_LETTER, _FIRST_LETTER = re.compile(r"\w(?=\W*$)"), re.compile(r"\w")
_BROKEN_AFTER = re.compile(r"\S[-‐—–]+$")  # "well-" and "known", "wait--" and "what"
_BROKEN_BEFORE = re.compile(r"(--|—)\S")


def is_wrapped(lines: Iterable[str]) -> bool:
    """Whether most lines that another follows are full, for its first word would not have fitted, and unfinished."""
    stripped = [line.strip() for line in lines]
    pairs = [(line, after) for line, after in pairwise(stripped) if line and after]
    return len(pairs) >= FEWEST and (_goes_on(pairs, _columns) or _goes_on(pairs, len))


def unwrap(lines: Sequence[str]) -> Iterator[str]:
    """The paragraphs of wrapped lines, which end at a blank line, or before an indented one where those are more."""
    indented = sum(line[:1].isspace() and not line.isspace() for line in lines)
    blank = sum(not line.strip() for line in lines)
    by_indent = blank < indented < MOST_INDENTED * (len(lines) - blank)
    paragraph = ""
    for line in lines:
        if paragraph and (not line.strip() or (by_indent and line[:1].isspace())):
            yield paragraph
            paragraph = ""
        separator = " " if paragraph and line.strip() and _are_apart(paragraph, line.strip()) else ""
        paragraph += separator + line.strip()
    if paragraph:
        yield paragraph


def _goes_on(pairs: Sequence[tuple[str, str]], length: Callable[[str], int]) -> bool:
    width = sorted(length(line) for line, _ in pairs)[len(pairs) * 95 // 100]
    if not NARROWEST <= width <= WIDEST:
        return False
    full = (line for line, after in pairs if length(line) + 1 + length(next(_FIRST_WORD.finditer(after))[0]) > width)
    return 2 * sum(not _FINAL.search(line) for line in full) > len(pairs)


def _are_apart(paragraph: str, line: str) -> bool:
    """Whether a blank stood where the line was broken: not within "well-known", nor beside Chinese characters."""
    if _BROKEN_AFTER.search(paragraph) or _BROKEN_BEFORE.match(line) or _is_wide(paragraph[-1]) or _is_wide(line[0]):
        return False
    letters = filter(None, (_LAST_LETTER.search(paragraph), _FIRST_LETTER.search(line)))
    return not all(_is_wide(letter.group()) for letter in letters)


def _columns(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(map(_is_wide, text))


def _is_wide(character: str) -> bool:
    return east_asian_width(character) in "WF"
