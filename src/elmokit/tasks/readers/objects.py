"""JSON lines, an object a line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from elmokit.tasks.examples import LabelledPair, LabelledText, Place
from elmokit.tasks.readers.lines import at_least_one, read_lines

UNDECIDED = "-"  # SNLI's mark for a pair that people could not agree upon


def read_objects(path: Path, *, label: str | None = None, text: str | None = None) -> Iterator[LabelledText]:
    """Texts, or lists of tokens, and their labels."""
    rows = _rows(path)
    examples = (
        LabelledText(_text(row, text or "text", place), _label(row, label or "label", place), place)
        for row, place in rows
    )
    return at_least_one(examples, path, 'an object a line: {"text": "…", "label": "…"}')


def read_snli(path: Path) -> Iterator[LabelledPair]:
    """SNLI and MultiNLI; pairs without a gold label are left out."""
    examples = (
        LabelledPair(
            _string(row, "sentence1", place), _string(row, "sentence2", place), _label(row, "gold_label", place), place
        )
        for row, place in _rows(path)
    )
    decided = (example for example in examples if example.label != UNDECIDED)
    return at_least_one(decided, path, "an object a line with gold_label, sentence1 and sentence2")


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], Place]]:
    for line in read_lines(path):
        if line.text.strip():
            try:
                yield msgspec.json.decode(line.text, type=dict[str, Any]), line.place
            except (msgspec.DecodeError, RecursionError) as error:
                raise line.place.error(f"found no JSON object ({error}): expected one a line") from None


def _string(row: dict[str, Any], name: str, place: Place) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise place.error(f"found {_found(row, name)}: expected a string in the field {name!r}")
    return value


def _text(row: dict[str, Any], name: str, place: Place) -> str | tuple[str, ...]:
    value = row.get(name)
    if isinstance(value, list) and all(isinstance(token, str) for token in value):
        return tuple(value)
    return _string(row, name, place)


def _label(row: dict[str, Any], name: str, place: Place) -> str:
    """Labels may be numbers."""
    value = row.get(name)
    return str(value) if isinstance(value, int) else _string(row, name, place)


def _found(row: dict[str, Any], name: str) -> str:
    return f"{name} = {row[name]!r}" if name in row else f"the fields {', '.join(map(repr, row)) or 'none'}"
