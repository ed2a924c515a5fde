"""Brackets as treebanks write them: trees, columns of spans, and words that would clash with them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmokit.tasks.examples import LabelledSpan, LabelledText, Place
from elmokit.tasks.readers.lines import Line, at_least_one, read_lines

_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_CELL = re.compile(r"(?:\((?P<label>[^()*]+))?\*(?P<closed>\)?)")


def unescape(word: str) -> str:
    """The word as it is read elsewhere: "-LRB-" is "(" and "and\\/or" is "and/or"."""
    return _ESCAPED.get(word, word).replace("\\/", "/").replace("\\*", "*")


def read_trees(path: Path, *, phrases: bool = False) -> Iterator[LabelledText]:
    """Trees as the Stanford Sentiment Treebank writes them, one per line: (3 (2 It) (4 works)).

    The sentences with the labels of their roots, or all phrases with theirs; brackets are written out.
    """
    lines = read_lines(path, blank=False)
    parsed = ((*_parse(line), line.place) for line in lines)
    examples = (
        LabelledText(tokens[start:end], label, place)
        for tokens, nodes, place in parsed
        for start, end, label in (nodes if phrases else nodes[-1:])
    )
    return at_least_one(examples, path, "a tree a line: (3 (2 It) (4 works))")


def read_spans(cells: Sequence[str], places: Sequence[Place]) -> tuple[LabelledSpan, ...]:
    """The spans of a column, (A0*, *, *), one cell per token; they follow one another."""
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


def _parse(line: Line) -> tuple[tuple[str, ...], list[LabelledSpan]]:
    """The leaves, and the nodes in the order in which they are closed: the root is the last."""
    tokens: list[str] = []
    nodes: list[LabelledSpan] = []
    opened: list[tuple[int, str]] = []
    expects_leaf = False
    for piece in line.text.strip(" ").split(" "):  # a leaf may hold U+00A0
        if nodes and not opened:
            raise line.place.error(f"unbalanced brackets: the tree ends before {piece!r}")
        if piece.startswith("("):
            label = piece[1:]
            if not label or "(" in label or ")" in label:
                raise line.place.error(f"found {piece!r}: expected a bracket and a label, '(3'")
            opened.append((len(tokens), label))
            expects_leaf = True
            continue
        leaf = piece.rstrip(")")
        if not expects_leaf or leaf == piece or not leaf:
            raise line.place.error(f"found {piece!r}: expected a node, '(label word)' or '(label (…) (…))'")
        expects_leaf = False
        tokens.append(unescape(leaf))
        for _ in range(len(piece) - len(leaf)):
            if not opened:
                raise line.place.error(f"unbalanced brackets: one too many is closed after {leaf!r}")
            start, label = opened.pop()
            nodes.append(LabelledSpan(start, len(tokens), label))
    if opened or not nodes:
        raise line.place.error(f"unbalanced brackets: {len(opened)} not closed at the end of the line")
    return tuple(tokens), nodes
