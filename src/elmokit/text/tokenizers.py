"""Text to tokens that know where in it they stand."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from elmokit.config import TOKENIZER_NAMES, Tokenization, TokenizerConfig
from elmokit.errors import ConfigError, MissingExtraError
from elmokit.text import unspaced
from elmokit.text.sentences import ABBREVIATIONS


class Token(NamedTuple):
    """A token and where it stands: text is source[start:end], normalised as its tokenizer does."""

    text: str
    start: int
    end: int


Tokenizer = Callable[[str], list[Token]]

_HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = r"\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_LETTER = rf"[^\W{_HAN}{_KANA}]"
HAN, _OTHER_WORD = re.compile(rf"[{_HAN}]"), re.compile(rf"{_LETTER}++|[{_KANA}]")
_SPACED_LETTER = rf"[^\W{_HAN}{_KANA}{unspaced.LETTERS}{unspaced.TIBETAN}]"
_JOINT = r"(?:[-‐‑.'’]|(?<=\d)[,:/](?=\d))"

_PICTURE = (
    r"[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff]"
    r"[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*+"  # style, keycap, skin tone, letters of a flag
)
_EMOJI = rf"[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_PICTURE}(?:\u200d{_PICTURE})*+"

_URL = r"(?i:https?://|ftp://|www\.)[!#-;=?-~]*[A-Za-z0-9_/=#~&%+$*@-]"
# The bounds keep "a+a+a+..." linear; no longer address is valid.
_EMAIL = r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,9}+"
_TAG = (  # #tag, #话题#, @name; one in Chinese characters needs an end that can be seen
    rf"[#＃](?:[\w·-]{{1,50}}+[#＃]|{_LETTER}{{1,100}}+)"
    rf"|(?<!\w)[@＠](?:[\w-]{{1,50}}+(?=[\s:：,，]|$)|{_LETTER}{{1,100}}+)"
)
_STOPPED = (  # U.S. and e.g., J. K. Rowling, Mr.
    rf"(?:[A-Za-z]\.){{2,}}+(?!{_LETTER})|[A-HJ-Z]\.(?=\s[A-Z])"
    rf"|(?:{'|'.join(re.escape(word) for word in sorted(ABBREVIATIONS))})\.(?!{_LETTER})"
)
_CLITIC = re.compile(r"(?<=.)(?:n['’]t|['’](?:s|m|d|ll|re|ve))(?![^'’])", re.IGNORECASE)
_CLITIC_ALONE = r"['’](?i:s|m|d|ll|re|ve)(?![\w'’])"
_PUNCTUATION_RUN = r"-{2,}+|\.{2,}+|…++|—++"


_VANISHING = re.compile("[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


@dataclass(frozen=True)
class _Tokenizer:
    """Finds tokens in text that was normalised, and says where they stand in the text as it was."""

    config: TokenizerConfig

    def __str__(self) -> str:
        config = self.config
        notes = {"NFKC": config.normalize == "nfkc", "HMM": config.hmm, "simplified": config.simplify}
        notes[f"{len(config.dictionary)} words of a dictionary"] = bool(config.dictionary)
        return ", ".join([config.name, *(note for note, holds in notes.items() if holds)])

    def __call__(self, text: str) -> list[Token]:
        found = _FINDERS[name_for(text) if self.config.name == "auto" else self.config.name]
        if self.config.name == "whitespace":
            return list(found(text, self.config))
        readable, spans = _readable(text, self.config)
        if spans is None:
            return list(found(readable, self.config))
        return [Token(word, spans[start][0], spans[end - 1][1]) for word, start, end in found(readable, self.config)]


@cache
def get_tokenizer(given: Tokenization) -> Tokenizer:
    """The tokenizer of that name, one of config.TOKENIZER_NAMES, or of these settings."""
    config = with_settings(given)
    if config.simplify:
        _simplifier()
    if config.name == "icu":
        unspaced.word_breaker()
    return _Tokenizer(config)


def with_settings(given: Tokenization, **settings: Any) -> TokenizerConfig:
    """The tokenizer's settings, changed to those that are given and not None."""
    if isinstance(given, str):
        if given not in TOKENIZER_NAMES:
            raise ConfigError(f"there is no tokenizer {given!r}: choose one of {', '.join(TOKENIZER_NAMES)}")
        given = TokenizerConfig(name=given)
    return replace(given, **{name: value for name, value in settings.items() if value is not None})


def name_for(text: str) -> Literal["jieba", "words"]:
    """What "auto" is for a text: jieba if it is mostly Han."""
    return "jieba" if is_mostly_han(text) else "words"


def is_mostly_han(text: str) -> bool:
    """Whether a text has more Han characters than words in letters and kana characters."""
    han = len(HAN.findall(text))
    return han > 0 and han > len(_OTHER_WORD.findall(text))


def _readable(text: str, config: TokenizerConfig) -> tuple[str, list[tuple[int, int]] | None]:
    """The text as tokens are sought in it, and where each of its characters was; None if that is the same."""
    if config.simplify:
        text = _simplified(text)
    plain = config.normalize == "none" or unicodedata.is_normalized("NFKC", text)
    if plain and not _VANISHING.search(text):
        return text, None
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _cluster().finditer(text):
        piece = match.group() if plain else unicodedata.normalize("NFKC", match.group())
        piece = _VANISHING.sub("", piece)
        pieces.append(piece)
        spans += [match.span()] * len(piece)
    return "".join(pieces), spans


def _simplified(text: str) -> str:
    """Simplified characters, each where the traditional one stood."""
    whole: str = _simplifier().convert(text)
    return whole if len(whole) == len(text) else "".join(map(_simplified_character, text))


def _simplified_character(character: str) -> str:
    found: str = _simplifier().convert(character)
    return found if len(found) == 1 else character


@cache
def _simplifier() -> Any:
    try:
        import opencc
    except ImportError:
        raise MissingExtraError("traditional characters are simplified by opencc", "chinese") from None
    return opencc.OpenCC("t2s")


def _whitespace(text: str, _config: TokenizerConfig) -> Iterator[Token]:
    """Whatever stands between white space."""
    return _find(re.compile(r"\S++"), text)


def _words(text: str, _config: TokenizerConfig) -> Iterator[Token]:
    """Words and punctuation as in the Penn Treebank; each Han character is a word (for Chinese words take jieba)."""
    for match in _word_pattern().finditer(text):
        if match.lastgroup == "cluster":
            unspaced.report_clusters()
        for start, end in pairwise((match.start(), *_clitic_starts(match), match.end())):
            yield Token(text[start:end], start, end)


def _icu(text: str, _config: TokenizerConfig) -> Iterator[Token]:
    """Words and punctuation, found by ICU's dictionaries where there are no blanks between them."""
    for match in _word_pattern(runs=True).finditer(text):
        first = match.start()
        if match.lastgroup == "run":
            bounds = [first + bound for bound in unspaced.icu_bounds(match.group())]
        else:
            bounds = [first, *_clitic_starts(match), match.end()]
        for start, end in pairwise(bounds):
            yield Token(text[start:end], start, end)


def _characters(text: str, _config: TokenizerConfig) -> Iterator[Token]:
    """Each Han character and each punctuation mark; other words and numbers whole."""
    return _find(_character_pattern(), text)


def _jieba(text: str, config: TokenizerConfig) -> Iterator[Token]:
    """Chinese words by jieba's dictionary, and by its hidden Markov model where the dictionary has none.

    Emoji, addresses, tags, words in letters and numbers are whole, unless jieba has a word, T恤, that goes beyond.
    """
    # rjieba counts code points, as Python does, but refuses lone surrogates: "replace" puts one "?" for each.
    pieces = _dictionary(config.dictionary).tokenize(text.encode("utf-8", "replace").decode("utf-8"), hmm=config.hmm)
    wholes = _whole_pattern().finditer(text)
    whole, done = next(wholes, None), 0
    for _, start, end in pieces:
        while whole and whole.end() <= start:
            whole = next(wholes, None)
        if start < done or text[start:end].isspace():
            continue
        if whole and whole.start() <= start and end <= whole.end():
            start, end = max(done, whole.start()), whole.end()
        yield Token(text[start:end], start, end)
        done = end


_FINDERS: dict[str, Callable[[str, TokenizerConfig], Iterator[Token]]] = {
    "whitespace": _whitespace,
    "words": _words,
    "icu": _icu,
    "jieba": _jieba,
    "characters": _characters,
}


@cache
def _dictionary(words: tuple[str, ...]) -> Any:
    """Jieba with its own dictionary and these words."""
    import rjieba

    if not words:
        return rjieba
    jieba = rjieba.Jieba()
    for word in words:
        jieba.add_word(word, None, None)
    return jieba


@cache
def _mark() -> str:
    """A pattern for what stays with the letter before it: combining marks, joiners, variants."""
    # Marks of scripts beyond U+FFFF are left out: re searches those one by one, which made this pattern 7 times slower.
    marks = (chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code)).startswith("M"))
    return rf"[{''.join(marks)}\u200c\u200d\U000e0100-\U000e01ef]"


@cache
def _cluster() -> re.Pattern[str]:
    """A character and its marks, or the letters of Korean syllables: what is normalised together."""
    return re.compile(rf"[\u1100-\u11ff]++|.{_mark()}*+", re.DOTALL)


def _word() -> str:
    """A pattern for letters, digits and their marks, of scripts with blanks between words."""
    return rf"{_SPACED_LETTER}++(?:{_mark()}++{_SPACED_LETTER}*+)*+"


@cache
def _word_pattern(*, runs: bool = False) -> re.Pattern[str]:
    """Tokens; where no blanks divide words, a run of such letters or a grapheme cluster."""
    run = rf"(?P<run>[{_HAN}{_KANA}{unspaced.LETTERS}](?:[{_HAN}{_KANA}{unspaced.LETTERS}]|{_mark()})*+)"
    unspaced_text = run if runs else rf"(?P<cluster>{unspaced.cluster(_mark())})|[{_KANA}]++"
    word = rf"(?P<word>(?:{_STOPPED}|{_word()})(?:{_JOINT}{_word()})*+)"
    others = (_CLITIC_ALONE, _PUNCTUATION_RUN, rf"\S{_mark()}*+")
    return re.compile("|".join((_EMOJI, _URL, _EMAIL, _TAG, word, unspaced.SYLLABLE, unspaced_text, *others)))


@cache
def _character_pattern() -> re.Pattern[str]:
    words = rf"{_word()}(?:{_JOINT}{_word()})*+"
    clusters = rf"{unspaced.SYLLABLE}|{unspaced.cluster(_mark())}"
    return re.compile(rf"{_EMOJI}|{_URL}|{_EMAIL}|{_TAG}|{words}|{clusters}|[{_KANA}]++|\S{_mark()}*+")


@cache
def _whole_pattern() -> re.Pattern[str]:
    """What jieba must not take apart."""
    clusters = rf"{unspaced.SYLLABLE}|{unspaced.cluster(_mark())}"
    return re.compile(rf"{_EMOJI}|{_URL}|{_EMAIL}|{_TAG}|{clusters}|{_word()}(?:{_JOINT}{_word()})*+")


def patterns() -> dict[str, re.Pattern[str]]:
    """What all tokenizers but icu are made of, by name, for those who write them in another language."""
    found = {"words": _word_pattern(), "characters": _character_pattern(), "whole": _whole_pattern()}
    found |= {"clitic": _CLITIC, "cluster": _cluster(), "vanishing": _VANISHING}
    return found | {
        "han": HAN,
        "other_word": _OTHER_WORD,
        "whitespace": re.compile(r"\S++"),
        "space": re.compile(r"\s"),
    }


def _find(pattern: re.Pattern[str], text: str) -> Iterator[Token]:
    return (Token(match.group(), *match.span()) for match in pattern.finditer(text))


def _clitic_starts(match: re.Match[str]) -> list[int]:
    """Where "don't" and "it's" are divided: before "n't" and "'s"."""
    if match.lastgroup != "word":
        return []
    return [match.start() + clitic.start() for clitic in _CLITIC.finditer(match.group())]
