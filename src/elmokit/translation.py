"""Texts in the reader's language: Chinese where the locale is, by the catalogue of translations; else as they are.

Rooms write their messages in English, as f-strings. What shows one to a person asks for it here: it is found whole, or
as a text with {0}, {1} … for what varies, or {n} for a number alone, or after the name before its first colon.
"""

import os
import re
from ast import literal_eval
from functools import cache
from pathlib import Path

CATALOGUE = Path(__file__).parent / "locale" / "zh_CN" / "LC_MESSAGES" / "elmokit.po"
LOCALES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides
QUOTED = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
ENTRY = re.compile(rf"(?<!#, fuzzy\n)^msgid {QUOTED}^msgstr {QUOTED}", re.MULTILINE)
PLACE = re.compile(r"\\\{(n|\d)\\\}")  # as re.escape leaves it


def in_chinese() -> bool:
    """Whether the locale is a Chinese one."""
    return next(filter(None, map(os.environ.get, LOCALES)), "").startswith("zh")


def translate(text: str) -> str:
    """The text in the reader's language, if it has a translation."""
    return (find_translation(text) or text) if in_chinese() else text


def find_translation(text: str) -> str | None:
    """The text in Chinese, if the catalogue has it."""
    normal = " ".join(text.split())
    if normal in catalogue():
        return catalogue()[normal]
    for pattern, translation in patterns():
        if match := pattern.fullmatch(text.strip()):
            return translation.format(*map(_part, match.groups()))
    name, _, rest = text.partition(": ")
    return f"{name}：{_part(rest)}" if _part(rest) != rest else None


def _part(text: str) -> str:
    """A part of a text: a single word may be a name, and stays."""
    return (find_translation(text) or text) if " " in text else text


@cache
def catalogue() -> dict[str, str]:
    """The translations by the English texts, whose white space does not count; empty and fuzzy ones are left out."""
    entries = ENTRY.findall(CATALOGUE.read_text(encoding="utf-8"))
    texts = ((literal_eval(f"({english})"), literal_eval(f"({chinese})")) for english, chinese in entries)
    return {" ".join(english.split()): chinese for english, chinese in texts if english and chinese}


@cache
def patterns() -> list[tuple[re.Pattern[str], str]]:
    """The texts in which something varies, those that say most first."""
    varied = {english: chinese for english, chinese in catalogue().items() if PLACE.search(re.escape(english))}
    longest_first = sorted(varied, key=len, reverse=True)
    return [(_pattern(english), varied[english].replace("{n}", "{0}")) for english in longest_first]


def _pattern(english: str) -> re.Pattern[str]:
    """A word where another part follows at once, a number for {n}, else anything; white space of any kind."""
    words = re.sub(r"\\\{\d\\\}(?=\\\{)", r"([\\w.'-]*)", re.escape(english))
    parts = PLACE.sub(lambda place: r"([\d.,]+)" if place[1] == "n" else "(.*?)", words)
    return re.compile(parts.replace("\\ ", r"\s+"), re.DOTALL)
