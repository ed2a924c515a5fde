"""Tokenizers as data, so that a page can tokenize as elmokit does: their patterns in JavaScript, jieba's dictionary."""

import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import zstandard

from elmokit.config import Tokenization
from elmokit.errors import ConfigError
from elmokit.text.tokenizers import patterns, with_settings

NAMES = ("whitespace", "words", "jieba", "characters", "auto")  # of tokenizers that a page has too
FRAME = b"\x28\xb5\x2f\xfd"  # where zstd's data begin
ENTRIES = re.compile(r"(?:\S+ \d+ \w+\n)+")  # a word, how often it was counted, its part of speech
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])+\]")
_ANY_CASE = re.compile(r"\(\?i:([^()]+)\)")
_WORD = r"\p{L}\p{N}_"
_SPACE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def describe_tokenizer(given: Tokenization) -> dict[str, Any]:
    """A tokenizer's settings, and how often jieba is to think that the words of its own dictionary occur."""
    config = with_settings(given)
    wrong = {"ICU": config.name not in NAMES, "hmm": config.hmm, "simplify": config.simplify}
    if named := [name for name, holds in wrong.items() if holds]:
        raise ConfigError(f"the model's tokenizer needs {' and '.join(named)}, which a page without a server lacks")
    words = {}
    if config.dictionary:
        import rjieba

        jieba = rjieba.Jieba()
        words = {word: jieba.add_word(word, None, None) for word in config.dictionary}
    return {"name": config.name, "normalize": config.normalize, "words": words}


def javascript_patterns() -> dict[str, dict[str, str]]:
    """The patterns of all tokenizers, as JavaScript's RegExp takes them."""
    return {name: {"source": to_javascript(one.pattern), "flags": _flags(one)} for name, one in patterns().items()}


def to_javascript(pattern: str) -> str:
    r"""Python's pattern with JavaScript's flag "u".

    Possessive quantifiers become greedy ones: in our patterns, what follows never matches what these could give back.
    \w, \d and \s are Unicode's, as in Python; [^\W…] is a word character that is none of the others.
    """
    pattern = _ANY_CASE.sub(lambda match: f"(?:{_outside(match[1], _either_case)})", pattern)
    pattern = re.sub(r"(?<=[*+?}])\+", "", pattern).replace("(?P<", "(?<")
    pattern = re.sub(r"\\U([0-9a-f]{8})", lambda match: rf"\u{{{int(match[1], 16):x}}}", pattern)
    pattern = _CLASS.sub(_class, pattern)
    return _outside(pattern, _shorthands)


def jieba_dictionary() -> str:
    """The words that rjieba knows, a line each with how often it was counted.

    rjieba does not give them by a function: they are read from its library, in which they lie compressed by zstd.
    """
    library = Path(str(import_module("rjieba.rjieba").__file__)).read_bytes()
    for found in re.finditer(re.escape(FRAME), library):
        try:
            content = zstandard.ZstdDecompressor().decompressobj().decompress(library[found.start() :])
        except zstandard.ZstdError:
            continue
        if ENTRIES.match(content[:1000].decode("utf-8", "ignore")):
            return "\n".join(line.rpartition(" ")[0] for line in content.decode("utf-8").splitlines())
    raise ConfigError(f"rjieba {version('rjieba')} keeps its dictionary in another form: install rjieba 0.2.2")


def _flags(pattern: re.Pattern[str]) -> str:
    names = {re.IGNORECASE: "i", re.DOTALL: "s"}
    return "gu" + "".join(name for flag, name in names.items() if pattern.flags & flag)


def _class(found: re.Match[str]) -> str:
    inside = found[0][1:-1]
    if inside.startswith(r"^\W"):
        return f"(?:(?![{inside[3:]}])[{_WORD}])"
    return f"[{_shorthands(inside, '{}')}]"


def _shorthands(text: str, form: str = "[{}]") -> str:
    text = text.replace(r"\w", form.format(_WORD)).replace(r"\d", r"\p{Nd}")
    return text.replace(r"\s", form.format(_SPACE)).replace(r"\S", f"[^{_SPACE}]")


def _outside(pattern: str, change: Callable[[str], str]) -> str:
    """Change what stands outside of classes."""
    parts = re.split(f"({_CLASS.pattern})", pattern)
    return "".join(part if index % 2 else change(part) for index, part in enumerate(parts))


def _either_case(text: str) -> str:
    """Letters in both cases; long s, which Unicode takes for an s."""
    return re.sub(r"[a-z]", lambda match: f"[{match[0]}{match[0].upper()}{'ſ' if match[0] == 's' else ''}]", text)
