"""How often the guess of an encoding is right: each line of a text, recoded and cut short, is a text by itself.

python benchmarks/encodings.py gb18030 zh-xiyou.txt zh-hongloumeng.txt zh-sanguo.txt --lines 1500
python benchmarks/encodings.py big5 zh-xiyou.txt zh-hongloumeng.txt zh-sanguo.txt --lines 1500 --traditional
python benchmarks/encodings.py cp1252 en-modern.txt.xz --lines 1700 --characters 10000
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from elmokit.text.documents import iter_documents, open_texts
from elmokit.text.encodings import guess_encoding


def lines_of(path: Path, encoding: str, characters: int, *, traditional: bool) -> Iterator[bytes]:
    """The lines with anything outside ASCII, all in the encoding, and 20 characters; so many characters of each."""
    convert = str
    if traditional:
        from opencc import OpenCC

        convert = OpenCC("s2t").convert
    for document in iter_documents(open_texts([path], lines="paragraphs")):
        for line in document.text.split("\n"):
            text = convert(line[:characters])
            content = text.encode(encoding, "ignore")
            if len(line) >= 20 and not text.isascii() and content.decode(encoding) == text:
                yield content


def main() -> None:
    """Count right guesses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoding")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--lines", type=int, default=1500, help="of each file")
    parser.add_argument("--characters", type=int, default=60, help="of each line")
    parser.add_argument("--traditional", action="store_true", help="convert to traditional characters first")
    given = parser.parse_args()
    guesses: Counter[str | None] = Counter()
    for path in given.files:
        lines = lines_of(path, given.encoding, given.characters, traditional=given.traditional)
        guesses.update(map(guess_encoding, islice(lines, given.lines)))
    print(f"{guesses[given.encoding]:,} of {guesses.total():,} right; {dict(guesses.most_common())}")


if __name__ == "__main__":
    main()
