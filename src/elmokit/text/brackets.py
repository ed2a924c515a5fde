"""A word in brackets in its sentence: "He sat on the [bank] of the river"."""

import re
from typing import NamedTuple

from elmokit.errors import DataError
from elmokit.text.corpus import Context
from elmokit.text.tokenizers import Token, Tokenizer

_BRACKETS = re.compile(r"[\[\]【】［］]")
_PAIR = re.compile(r"\[([^\[\]]*)\]|【([^【】]*)】|［([^［］]*)］")
EXAMPLE = "'He sat on the [bank] of the river'"


class BracketedWord(NamedTuple):
    """A sentence and the position of one of its tokens."""

    context: Context
    position: int

    @property
    def word(self) -> str:
        return self.context.tokens[self.position].text


def has_brackets(text: str) -> bool:
    """Whether there is any bracket in the text."""
    return _BRACKETS.search(text) is not None


def read_brackets(text: str, tokenizer: Tokenizer) -> BracketedWord:
    """The sentence without its brackets, tokenized so that what stood in them is one token."""
    pairs = list(_PAIR.finditer(text))
    if not pairs:
        raise DataError(f"{text!r} has no word in brackets: put brackets around one, as in {EXAMPLE}")
    if len(_BRACKETS.findall(text)) > 2:
        raise DataError(f"{text!r} has more brackets than one pair: put one word in them, as in {EXAMPLE}")
    word = pairs[0].group()[1:-1].strip()
    if not word:
        raise DataError(f"{text!r} has nothing in its brackets: put a word there, as in {EXAMPLE}")
    before, after = text[: pairs[0].start()], text[pairs[0].end() :]
    target = Token(word, len(before), len(before) + len(word))
    tokens = tokenizer(before + word + after)
    if target not in tokens:  # they would cross the word's bounds
        later = [Token(piece, target.end + start, target.end + end) for piece, start, end in tokenizer(after)]
        tokens = [*tokenizer(before), target, *later]
    return BracketedWord(Context(before + word + after, tokens, ""), tokens.index(target))
