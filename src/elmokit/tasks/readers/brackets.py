"""Columns of bracketed spans: (A0*, *, *)."""

import re
from collections.abc import Sequence

from elmokit.tasks.examples import LabelledSpan, Place

_CELL = re.compile(r"(?:\((?P<label>[^()*]+))?\*(?P<closed>\)?)")


def read_spans(cells: Sequence[str], places: Sequence[Place]) -> tuple[LabelledSpan, ...]:
    """The spans of a column, a cell a token; they follow one another."""
    spans: list[LabelledSpan] = []
    opened: LabelledSpan | None = None
    for position, (cell, place) in enumerate(zip(cells, places, strict=True)):
        found = _CELL.fullmatch(cell)
        if found is None:
            raise place.error(f"found {cell!r}: expected '*', '(A0*', '*)' or '(A0*)', for spans may not overlap")
        if found["label"]:
            if opened:
                raise place.error(f"found {cell!r} within {opened.label}: spans of a column may not overlap")
            opened = LabelledSpan(position, position, found["label"])
        if found["closed"]:
            if opened is None:
                raise place.error(f"unbalanced bracket: {cell!r} closes nothing")
            spans.append(opened._replace(end=position + 1))
            opened = None
    if opened:
        raise places[opened.start].error(f"unbalanced bracket: '({opened.label}*' is not closed in its sentence")
    return tuple(spans)
