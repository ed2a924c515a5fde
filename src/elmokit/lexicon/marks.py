"""A word marked in its sentence by brackets: "He sat on the [bank] of the river"."""

import re
from typing import NamedTuple

from elmokit.errors import DataError
from elmokit.lexicon.corpus import Context
from elmokit.text.tokenizers import Token, Tokenizer

_BRACKETS = re.compile(r"[\[\]【】［］]")
_MARK = re.compile(r"\[([^\[\]]*)\]|【([^【】]*)】|［([^［］]*)］")
EXAMPLE = "'He sat on the [bank] of the river'"


class MarkedWord(NamedTuple):
    """A sentence and the position of one of its tokens."""

    context: Context
    position: int

    @property
    def word(self) -> str:
        """The token itself."""
        return self.context.tokens[self.position].text


def has_mark(text: str) -> bool:
    """Whether there is any bracket in the text."""
    return _BRACKETS.search(text) is not None


def read_mark(text: str, tokenizer: Tokenizer) -> MarkedWord:
    """The sentence without its brackets, cut so that what stood in them is one token."""
    marks = list(_MARK.finditer(text))
    if not marks:
        raise DataError(f"{text!r} marks no word: put brackets around one, as in {EXAMPLE}")
    if len(_BRACKETS.findall(text)) > 2:
        raise DataError(f"{text!r} has more brackets than one pair: mark one word, as in {EXAMPLE}")
    word = marks[0].group()[1:-1].strip()
    if not word:
        raise DataError(f"{text!r} has nothing in its brackets: put a word there, as in {EXAMPLE}")
    before, after = text[: marks[0].start()], text[marks[0].end() :]
    return _cut(before, word, after, tokenizer)


def _cut(before: str, word: str, after: str, tokenizer: Tokenizer) -> MarkedWord:
    """The tokens of the whole sentence, or of the parts around the word where those would cross its bounds."""
    text = before + word + after
    mark = Token(word, len(before), len(before) + len(word))
    tokens = tokenizer(text)
    if mark not in tokens:
        later = [Token(piece, mark.end + start, mark.end + end) for piece, start, end in tokenizer(after)]
        tokens = [*tokenizer(before), mark, *later]
    return MarkedWord(Context(text, tokens, ""), tokens.index(mark))
