"""Scripts that put no blanks between words: Thai, Lao, Khmer, Burmese and their kin, Tibetan, Japanese.

ICU finds the words of Thai, Lao, Khmer, Burmese, Japanese and Chinese by its dictionaries: the tokenizer "icu". The
others divide such text, all but Japanese, into grapheme clusters. Of Tibetan every tokenizer finds the syllables.
"""

import logging
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any

from elmokit.errors import MissingExtraError

logger = logging.getLogger(__name__)

# Of the scripts whose lines Unicode breaks by dictionaries (class SA) the letters, without digits and marks.
LETTERS = (
    r"\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf"  # Thai, Lao
    r"\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e"  # Burmese
    r"\u1780-\u17b3\u17d7\u17dc\u1950-\u19ab\u1a20-\u1a54\ua9e0-\ua9ef\uaa60-\uaa76\uaa80-\uaaaf"  # Khmer, Tai
)
TIBETAN = r"\u0f00\u0f40-\u0fbc"
SYLLABLE = rf"[{TIBETAN}\u0f18\u0f19\u0f35\u0f37\u0f39]++[\u0f0b\u0f0c]?"
"""A pattern for a syllable of Tibetan and the dot after it."""


def cluster(mark: str) -> str:
    """A pattern for a grapheme cluster: a letter, its marks and the letters below it; `mark` is the pattern for one."""
    return rf"[{LETTERS}](?:{mark}|[\u0e33\u0eb3]|(?<=[\u1039\u17d2])[{LETTERS}])*+"


@cache
def report_clusters() -> None:
    """Tell the logger, once, that these are no words."""
    logger.info(
        "Thai, Lao, Khmer or Burmese: with no blanks between words, grapheme clusters are tokens; "
        'the tokenizer icu finds words (pip install "elmokit[languages]")'
    )


def icu_bounds(text: str) -> Iterator[int]:
    """Where the words of a text without blanks begin, one where another ends, and where the last ends, by ICU."""
    # ICU refuses lone surrogates; "?" has the same length.
    words = word_breaker()(text.encode("utf-8", "replace").decode("utf-8"), "en")
    return accumulate(map(len, words), initial=0)


@cache
def word_breaker() -> Any:
    """ICU's, if it is installed."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise MissingExtraError("words of languages without blanks are found by ICU", "languages") from None
    return WordBreaker
