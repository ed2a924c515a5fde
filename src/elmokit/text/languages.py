"""Which language a text is in, as far as its script tells, and where sentences end outside English and Chinese."""

import re
from collections import Counter
from itertools import accumulate

import sentencex

from elmokit.errors import ConfigError

AUTO = "auto"
OWN = ("en", "zh")  # whose sentences sentences.py splits
LETTERS = 500  # of a paragraph, by which its script is seen
_CODE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]+)*")
_SCRIPTS = {  # a script's letters, and its most usual language
    "el": r"\u0370-\u03ff\u1f00-\u1fff",
    "ru": r"\u0400-\u052f",
    "hy": r"\u0531-\u058f",
    "he": r"\u0590-\u05ff",
    "ar": r"\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff",
    "hi": r"\u0900-\u097f",
    "bn": r"\u0980-\u09ff",
    "pa": r"\u0a00-\u0a7f",
    "gu": r"\u0a80-\u0aff",
    "or": r"\u0b00-\u0b7f",
    "ta": r"\u0b80-\u0bff",
    "te": r"\u0c00-\u0c7f",
    "kn": r"\u0c80-\u0cff",
    "ml": r"\u0d00-\u0d7f",
    "si": r"\u0d80-\u0dff",
    "th": r"\u0e00-\u0e7f",
    "lo": r"\u0e80-\u0eff",
    "bo": r"\u0f00-\u0fff",
    "my": r"\u1000-\u109f",
    "ka": r"\u10a0-\u10ff",
    "am": r"\u1200-\u137f",
    "km": r"\u1780-\u17ff",
    "ja": r"\u3041-\u30ff",
    "ko": r"\u1100-\u11ff\uac00-\ud7af",
}
_OTHER_SCRIPT = re.compile(f"[{''.join(_SCRIPTS.values())}]")
_GROUPS = (_SCRIPTS | {"zh": r"\u3400-\u9fff", "en": r"^\W\d_"}).items()
_LETTER = re.compile("|".join(f"(?P<{code}>[{letters}])" for code, letters in _GROUPS))
# What sentencex does not know: the stops of Khmer, and of Tibetan, where a blank follows.
_MORE_ENDS = re.compile(r"[។៕]+\s*|[།༎]+\s+")
# sentencex counts every blank as one byte and takes no half characters.
_PLAIN = re.compile(r"[^\S ]|[\ud800-\udfff]")


def check_language(language: str) -> str:
    """The language; what is not a code is refused."""
    if language != AUTO and not _CODE.fullmatch(language):
        raise ConfigError(f"{language!r} is no code of a language: write en, zh, de, hi … or auto")
    return language


def language_of(text: str) -> str:
    """The most usual language of the script that most letters of a text are in; "en" for Latin."""
    if text.isascii() or not _OTHER_SCRIPT.search(text):
        return "en"
    counts = Counter(match.lastgroup for match in _LETTER.finditer(text[:LETTERS]))
    if 4 * counts["ja"] > counts["zh"]:  # kana stands among Han characters
        counts["ja"] += counts.pop("zh", 0)
    return max(counts, key=counts.__getitem__, default=None) or "en"


def sentence_bounds(text: str, language: str) -> list[int]:
    """Where the sentences of a text begin, one where another ends, and the end of the last."""
    plain = _PLAIN.sub(lambda match: " " if match[0].isspace() else "?", text)
    bounds = set(accumulate(map(len, sentencex.segment(language, plain)), initial=0))
    return sorted(bounds | {match.end() for match in _MORE_ENDS.finditer(text)})
