"""Text to tokens that know their place in it."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

from elmokit.config import TOKENIZER_NAMES
from elmokit.errors import ConfigError
from elmokit.text.sentences import ABBREVIATIONS


class Token(NamedTuple):
    """A token and where it stands: text == source[start:end]."""

    text: str
    start: int
    end: int


Tokenizer = Callable[[str], list[Token]]

_HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = r"\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_LETTER = rf"[^\W{_HAN}{_KANA}]"
_JOINT = r"(?:[-‐‑.'’]|(?<=\d)[,:/](?=\d))"

_PICTURE = (
    r"[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff]"
    r"[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*+"  # style, keycap, skin tone, letters of a flag
)
_EMOJI = rf"[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_PICTURE}(?:\u200d{_PICTURE})*+"

_URL = r"(?i:https?://|ftp://|www\.)[!#-;=?-~]*[A-Za-z0-9_/=#~&%+$*@-]"
# The bounds keep "a+a+a+..." linear; no longer address is valid.
_EMAIL = r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,9}+"
_STOPPED = (  # U.S. and e.g., J. K. Rowling, Mr.
    rf"(?:[A-Za-z]\.){{2,}}+(?!{_LETTER})|[A-HJ-Z]\.(?=\s[A-Z])"
    rf"|(?:{'|'.join(re.escape(word) for word in sorted(ABBREVIATIONS))})\.(?!{_LETTER})"
)
_CLITIC = re.compile(r"(?<=.)(?:n['’]t|['’](?:s|m|d|ll|re|ve))(?![^'’])", re.IGNORECASE)
_CLITIC_ALONE = r"['’](?i:s|m|d|ll|re|ve)(?![\w'’])"
_PUNCTUATION_RUN = r"-{2,}+|\.{2,}+|…++|—++"


@cache
def get_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name: one of config.TOKENIZER_NAMES."""
    if name not in _BUILDERS:
        raise ConfigError(f"there is no tokenizer {name!r}: choose one of {', '.join(TOKENIZER_NAMES)}")
    return _BUILDERS[name]()


def _whitespace() -> Tokenizer:
    """Whatever stands between white space."""
    return partial(_find, re.compile(r"\S++"))


def _words() -> Tokenizer:
    """Words and punctuation as in the Penn Treebank; each Han character is a word (for Chinese words take jieba)."""
    word = rf"(?P<word>(?:{_STOPPED}|{_word()})(?:{_JOINT}{_word()})*+)"
    others = (rf"[{_KANA}]++", _CLITIC_ALONE, _PUNCTUATION_RUN, rf"\S{_mark()}*+")
    return partial(_find_and_split_clitics, re.compile("|".join((_EMOJI, _URL, _EMAIL, word, *others))))


def _characters() -> Tokenizer:
    """Each Han character and each punctuation mark; other words and numbers whole."""
    return partial(_find, re.compile(rf"{_EMOJI}|{_word()}(?:{_JOINT}{_word()})*+|[{_KANA}]++|\S{_mark()}*+"))


def _jieba() -> Tokenizer:
    """Chinese words by jieba's dictionary, and by its hidden Markov model where the dictionary has none."""
    return _find_with_jieba


_BUILDERS: dict[str, Callable[[], Tokenizer]] = {
    "whitespace": _whitespace,
    "words": _words,
    "jieba": _jieba,
    "characters": _characters,
}


@cache
def _mark() -> str:
    """A pattern for what stays with the letter before it: combining marks, joiners, soft hyphens, variants."""
    # Marks of scripts beyond U+FFFF are left out: re searches those one by one, which made this pattern 7 times slower.
    marks = (chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code)).startswith("M"))
    return rf"[{''.join(marks)}\u00ad\u200c\u200d\U000e0100-\U000e01ef]"


def _word() -> str:
    """A pattern for letters, digits and their marks, without Han or kana."""
    return rf"{_LETTER}++(?:{_mark()}++{_LETTER}*+)*+"


def _find(pattern: re.Pattern[str], text: str) -> list[Token]:
    return [Token(match.group(), *match.span()) for match in pattern.finditer(text)]


def _find_with_jieba(text: str) -> list[Token]:
    import rjieba

    # rjieba counts code points, as Python does, but refuses lone surrogates: "replace" puts one "?" for each.
    pieces = rjieba.tokenize(text.encode("utf-8", "replace").decode("utf-8"), hmm=True)
    return [Token(text[start:end], start, end) for word, start, end in pieces if not word.isspace()]


def _find_and_split_clitics(pattern: re.Pattern[str], text: str) -> list[Token]:
    return [
        Token(text[start:end], start, end)
        for match in pattern.finditer(text)
        for start, end in pairwise((match.start(), *_clitic_starts(match), match.end()))
    ]


def _clitic_starts(match: re.Match[str]) -> list[int]:
    """Where "don't" and "it's" are cut: before "n't" and "'s"."""
    if match.lastgroup != "word":
        return []
    return [match.start() + clitic.start() for clitic in _CLITIC.finditer(match.group())]
