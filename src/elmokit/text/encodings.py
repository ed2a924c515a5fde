"""Text in other encodings than UTF-8: recognised by a mark, guessed or named, and read as UTF-8."""

import codecs
import io
import re
from collections import Counter
from functools import cache
from typing import Any, BinaryIO, NamedTuple

from elmokit.errors import ConfigError, DataError

UTF8, AUTO = "utf-8", "auto"
READ_BYTES = 1 << 16
HEAD_BYTES = 1 << 18  # from which an encoding is guessed
_OUTSIDE_ASCII = re.compile(r"[^\0-\x7f]+")
SURE = 0.7  # of the letters outside ASCII: what fewer of them are common in is no guess
_MARKS = {  # UTF-32 first: its mark begins with UTF-16's
    codecs.BOM_UTF8: UTF8,
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# As browsers do: files called by the older name hold what the wider one has.
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "euc_kr": "cp949"}

_PUNCTUATION = frozenset("，。、；：？！“”‘’（）《》「」『』…—·～\u3000")
_SIGNS = "“”‘’„…–—«»°§€·½²³×±£µ©®\xa0"
_CENTRAL = "áčďéěíňóřšťúůýžČŘŠŽ áäčďéíĺľňóôŕšťúýž ąćęłńóśźżŁŚŻ áéíóöőúüűÁÉ ăâîşţ čćđšž"  # Czech … Croatian
_LATIN = {  # letters of languages, by blanks
    "cp1252": "àâçéèêëîïôùûüœæÀÇÉÊ äöüßÄÖÜé áéíñóúü¿¡ÁÉÑ àèéìòùÈ áâãàçéêíóôõúÉ åäöéæøÅÄÖØ éèëïöüá áéíóúýþæöðš",
    "cp1254": "âçğıîöşüûÇİÖŞÜ",
    "cp1250": _CENTRAL,
    "iso8859_2": _CENTRAL,
}
_OTHERS = {
    "cp1255": "אבגדהוזחטיךכלםמןנסעףפץצקרשת",
    "cp1251": "абвгдежзийклмнопрстуфхцчшщъыьэюяё абвгґдеєжзиіїйклмнопрстуфхцчшщьюя абвгдђежзијклљмнњопрстћуфхцчџш",
    "koi8_r": "абвгдежзийклмнопрстуфхцчшщъыьэюяё",
    "cp1253": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋ",
    "cp1256": "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژگ،؛؟",
    "cp874": "กขคงจชดตถทนบปผพมยรลวสหอะาำิีึืุูเแโใไัๆ็่้์",
}


def check_encoding(name: str) -> str:
    """The name as it is used here; one that Python does not know is refused."""
    try:
        known = name if name == AUTO else codecs.lookup(name).name
        "".encode("ascii" if name == AUTO else known)  # base64 and the like are known, but encode no text
    except LookupError:
        examples = "utf-8, utf-16, gb18030, big5, shift_jis, euc_kr, latin-1, cp1252, cp1251 … or auto"
        raise ConfigError(f"there is no encoding {name!r}: name one such as {examples}") from None
    return UTF8 if known == "utf-8-sig" else known


def as_utf8(file: Any, encoding: str, name: str) -> BinaryIO:
    """The file itself if it is UTF-8, else a stream of its text as UTF-8; a byte order mark says more than a name."""
    found = _marked(file.peek(4)) or encoding
    if found == UTF8:
        return file  # type: ignore[no-any-return]
    return io.BufferedReader(_Recoded(file, found, name), READ_BYTES)


def decode_head(content: bytes, encoding: str) -> str:
    """The text of the first bytes of a file, of which the last may be half a character."""
    return content.decode(_codec(_marked(content) or encoding), "replace")


def find_encoding(file: Any) -> str:
    """The encoding of a file by its mark, or as the first bytes outside ASCII suggest; UTF-8 if nothing does."""
    while content := file.read1(HEAD_BYTES):
        if found := _marked(content):
            return found
        if not content.isascii() or b"\0" in content:
            return guess_encoding(content) or UTF8
    return UTF8


def _marked(content: bytes) -> str | None:
    return next((encoding for mark, encoding in _MARKS.items() if content.startswith(mark)), None)


def _codec(encoding: str) -> str:
    return _WIDER.get(encoding, encoding)


class _Recoded(io.RawIOBase):
    """Bytes of any encoding, decoded as they come and encoded as UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str, name: str) -> None:
        self.file, self.encoding, self.name = file, encoding, name
        self.decoder = codecs.getincrementaldecoder(_codec(encoding))()
        self.line, self.waiting, self.ended = 1, b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self.waiting and not self.ended:
            content = self.file.read1(READ_BYTES)  # type: ignore[attr-defined]
            self.ended = not content
            self.waiting = self._decode(content).encode("utf-8", "replace")
        count = min(len(buffer), len(self.waiting))
        buffer[:count], self.waiting = self.waiting[:count], self.waiting[count:]
        return count

    def _decode(self, content: bytes) -> str:
        try:
            text = self.decoder.decode(content, final=not content)
        except UnicodeDecodeError as error:
            line = self.line + error.object.count(b"\n", 0, error.start)
            likely = guess_encoding(error.object)
            other = f", such as {likely}" if likely and _codec(likely) != _codec(self.encoding) else ""
            advice = f"is the file damaged there, or in another encoding{other}?"
            raise DataError(f"{self.name}, line {line}: {_byte(error)} is not {self.encoding}: {advice}") from None
        self.line += text.count("\n")
        return text


def _byte(error: UnicodeDecodeError) -> str:
    return f"byte 0x{error.object[error.start]:02x}"


def not_utf8(error: UnicodeDecodeError) -> str:
    """What is to be said of bytes that were to be UTF-8: the likely encoding and how to name it."""
    likely = guess_encoding(error.object)
    if likely == UTF8:
        return f"{_byte(error)} is not UTF-8, as the text around it is: is the file damaged there?"
    advice = "name its encoding by --encoding NAME"
    if likely:
        advice = f'it looks like {likely}: say --encoding {likely}, or in Python encoding="{likely}"'
    return f"{_byte(error)} is not UTF-8; {advice}, or save the file as UTF-8"


def guess_encoding(content: bytes) -> str | None:
    """The encoding in which most letters outside ASCII are common ones; None if there is no such encoding."""
    if b"\0" in content:
        return _guess_utf16(content)
    runs = _OUTSIDE_ASCII.findall(content.decode(UTF8, "replace"))
    if sum(run.count("\ufffd") for run in runs) <= (1 - SURE) * sum(map(len, runs)):
        return UTF8
    scores = {name: candidate.score(name, content) for name, candidate in _candidates().items()}
    best = max(scores, key=scores.__getitem__)  # of equals the first
    return best if scores[best] >= SURE else None


def _guess_utf16(content: bytes) -> str | None:
    """UTF-16 without its mark, in which line ends, blanks and letters of ASCII have a zero byte."""
    known = frozenset().union(*(common for candidate in _candidates().values() for common in candidate.languages))
    scores = {}
    for name in ("utf-16-le", "utf-16-be"):
        text = content.decode(name, "replace")
        plain = sum(character.isspace() or "!" <= character <= "~" or character in known for character in text)
        scores[name] = plain / len(text)
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= SURE else None


class _Candidate(NamedTuple):
    """What is common in texts of an encoding, and how many letters outside ASCII stand together there."""

    languages: tuple[frozenset[str], ...]
    """The common letters of each language."""
    shortest: int = 1
    longest: int = 1 << 30
    needed: frozenset[str] = frozenset()
    """Some of which are in every text."""

    def score(self, name: str, content: bytes) -> float:
        """The share of the characters outside ASCII that are common in one language and stand as they should."""
        runs = _OUTSIDE_ASCII.findall(content.decode(_codec(name), "replace"))
        if self.needed and self.needed.isdisjoint("".join(runs)):
            return 0.0
        counts = Counter("".join(run for run in runs if self.shortest <= len(run) <= self.longest))
        most = max(sum(counts[letter] for letter in common & counts.keys()) for common in self.languages)
        return most / (sum(map(len, runs)) or 1)


@cache
def _candidates() -> dict[str, _Candidate]:
    """What a text may be in; of equals the first is taken.

    Where two bytes are a character, the common ones are those of the standard's first level. A letter of a Latin
    alphabet stands among those of ASCII, one of another alphabet among its like, mostly small.
    """
    return (
        {name: _Candidate(_common(letters), longest=2) for name, letters in _LATIN.items()}
        | _wide_candidates()
        | {name: _Candidate(_common(letters), shortest=2) for name, letters in _OTHERS.items()}
    )


def _common(letters: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(language + _SIGNS) for language in letters.split())


def _wide_candidates() -> dict[str, _Candidate]:
    kana = frozenset(map(chr, [*range(0x3041, 0x3097), *range(0x30A1, 0x30FB)]))
    endings = frozenset("이다는을를가에의은고하지도로한")
    found = {
        "euc_kr": (_first_level("cp949", 0xB0, 0xC8), endings),
        "gb18030": (_first_level("gb18030", 0xB0, 0xD7), frozenset[str]()),
        "euc_jp": (_first_level("euc_jp", 0xB0, 0xCF) | kana, kana),
        "shift_jis": (_first_level("cp932", 0x88, 0x98, 0x40) | kana, kana),
        "big5": (_first_level("big5hkscs", 0xA4, 0xC6, 0x40), frozenset[str]()),
    }
    return {name: _Candidate((common | _PUNCTUATION,), needed=needed) for name, (common, needed) in found.items()}


def _first_level(encoding: str, first: int, last: int, least: int = 0xA1) -> frozenset[str]:
    """The characters of two bytes, the first within these and the second at least that."""
    pairs = (bytes((lead, trail)) for lead in range(first, last + 1) for trail in range(least, 0xFF))
    return frozenset(text for pair in pairs if len(text := pair.decode(encoding, "ignore")) == 1)
