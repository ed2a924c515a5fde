"""TREC's questions: `COARSE:fine question`, the question cut into tokens."""

import re
from collections.abc import Iterator
from pathlib import Path

from elmokit.tasks.examples import LabelledText
from elmokit.tasks.readers.lines import Line, at_least_one, read_lines

LINE = re.compile(r"(?P<coarse>[A-Z]+):(?P<fine>[A-Za-z]+) (?P<question>.*\S.*)")


def read_trec(path: Path, *, fine: bool = False) -> Iterator[LabelledText]:
    """The questions with their 6 coarse or 50 fine labels."""
    lines = (line for line in read_lines(path) if line.text.strip())
    return at_least_one((_example(line, fine=fine) for line in lines), path, "COARSE:fine and a question a line")


def _example(line: Line, *, fine: bool) -> LabelledText:
    found = LINE.fullmatch(line.text)
    if found is None:
        raise line.place.error(f"found {line.text[:60]!r}: expected COARSE:fine and a question")
    label = f"{found['coarse']}:{found['fine']}" if fine else found["coarse"]
    return LabelledText(tuple(token for token in found["question"].split(" ") if token), label, line.place)
