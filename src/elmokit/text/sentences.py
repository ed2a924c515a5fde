"""Where sentences begin and end: in English and in Chinese by rules of its own, elsewhere by sentencex."""

import re
from itertools import pairwise
from typing import NamedTuple

from elmokit.text.languages import AUTO, OWN, language_of, sentence_bounds


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Case matters: "Rep. Smith" is an abbreviation, "one more rep." is not.
_NEVER_LAST = _words(
    "Mr Mrs Ms Mx Messrs Mme Dr Drs Prof Rev Hon Fr Gen Col Capt Cmdr Maj Lt Sgt Cpl Adm Gov Sen Rep Pres Supt Mt Ft "
    "vs cf viz approx e.g i.e"
)
_SOMETIMES_LAST = _words(
    "etc al Inc Ltd Co Corp Bros Jr Sr St Ave Blvd Rd Dept Univ Ph.D Jan Feb Apr Aug Sep Sept Oct Nov Dec"
)
_BEFORE_NUMBERS = _words("No no Nos nos Fig fig Figs figs Vol vol pp Sec sec Ch ch Eq eq Art art Mar Jun Jul")
_LONGEST_ABBREVIATION = 12  # dots included, as in "(U.S.S.R"
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*+[^\W\d_]")
# Capitalised words that are seldom names: the sentence before them has ended.
_STARTERS = _words(
    "A After All Although An And Another Any As At Because Before Both But By Each Even Every Everyone For From He "
    "Her Here His How However I If In It Its Later Many Meanwhile Most My Neither No Nobody Not Nothing Now On Once "
    "One Only Our Perhaps She Since So Some Soon Still That The Their Then There These They This Those Though Today "
    "Under Until We Were What When Where Whether Which While Who Why With Yes Yet You Your"
)
ABBREVIATIONS = _NEVER_LAST | _SOMETIMES_LAST

_MARKS = ".!?…。！？"
_CLOSERS = "\"'”’»」』）)\\]】》〉"
_CANDIDATE = re.compile(rf"(?:[{_MARKS}]++[{_CLOSERS}]*+)++|\n[^\S\n]*+\n")
# A word's own stop is read with it: the "A." of "J. A. Smith" begins no sentence.
_NEXT = re.compile(r"(?P<space>\s*+)(?P<first>[\"'“‘«「『（(\[【《〈]*+(?P<word>\w*+\.?))")
_CHINESE = re.compile("[。！？]")
_GOES_ON = re.compile(rf"[{_MARKS},;:，、；：]")


class Span(NamedTuple):
    """A stretch of text: text[start:end]."""

    start: int
    end: int


def split_sentences(text: str, language: str = AUTO) -> list[Span]:
    """The sentences of a text without the white space around them; every other character is in exactly one.

    The language is a code (de, hi, ja…); "auto" sees the script, and takes Latin for English.
    """
    if language == AUTO:
        language = language_of(text)
    spans = []
    for start, end in pairwise(_own_bounds(text) if language in OWN else sentence_bounds(text, language)):
        if sentence := text[start:end].lstrip():
            spans.append(Span(end - len(sentence), end - len(sentence) + len(sentence.rstrip())))
    return spans


def _own_bounds(text: str) -> list[int]:
    bounds = [0]
    for candidate in _CANDIDATE.finditer(text):
        if _ends(text, bounds[-1], candidate):
            bounds.append(candidate.end())
    return [*bounds, len(text)]


def _ends(text: str, start: int, candidate: re.Match[str]) -> bool:
    """Whether the sentence that began at `start` ends with these marks (or this blank line)."""
    run = candidate.group()
    if run[0] == "\n":
        return True
    following = _NEXT.match(text, candidate.end())
    if following is None or following.end("space") == len(text):
        return True
    if _GOES_ON.match(text, following.end("space")):
        return False
    if _CHINESE.search(run):
        return True
    if not following["space"]:
        letter = text[candidate.end()]
        return run != "." and ("\u3040" <= letter <= "\u9fff" or letter in "“「『《")  # Chinese or Japanese
    if following["word"][:1].islower() and (run[-1] not in _MARKS or run.endswith(("..", "…"))):
        return False  # "What?" he said. Well... perhaps.
    before = text[max(start, candidate.start() - _LONGEST_ABBREVIATION) : candidate.start()]
    return not (run.rstrip(_CLOSERS) == "." and _is_abbreviation(before, following["word"]))


def _is_abbreviation(before: str, following: str) -> bool:
    """Whether the stop after `before` belongs to its last word and ends no sentence."""
    word = re.split(r"[\s\"'“‘«（(\[-]", before)[-1]
    if word in _NEVER_LAST:
        return True
    if word in _BEFORE_NUMBERS:
        return following[:1].isdigit()
    if word.isdigit():
        return before.strip() == word and len(word) < 3  # "1. Heat the oven."
    return (word in _SOMETIMES_LAST or _INITIALS.fullmatch(word) is not None) and following not in _STARTERS
