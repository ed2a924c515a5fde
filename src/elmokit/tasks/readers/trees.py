"""Trees as the Stanford Sentiment Treebank writes them, one a line: (3 (2 It) (4 works))."""

from collections.abc import Iterator
from pathlib import Path

from elmokit.tasks.examples import LabelledSpan, LabelledText
from elmokit.tasks.readers.lines import Line, at_least_one, read_lines
from elmokit.tasks.readers.penn import unescape


def read_trees(path: Path, *, phrases: bool = False) -> Iterator[LabelledText]:
    """The sentences with the labels of their roots, or all phrases with theirs; brackets are written out."""
    lines = (line for line in read_lines(path) if line.text.strip())
    examples = (example for line in lines for example in _examples(line, phrases=phrases))
    return at_least_one(examples, path, "a tree a line: (3 (2 It) (4 works))")


def _examples(line: Line, *, phrases: bool) -> Iterator[LabelledText]:
    tokens, nodes = _parse(line)
    for start, end, label in nodes if phrases else nodes[-1:]:
        yield LabelledText(tokens[start:end], label, line.place)


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
            opened.append((len(tokens), _label(piece, line)))
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


def _label(piece: str, line: Line) -> str:
    label = piece[1:]
    if not label or "(" in label or ")" in label:
        raise line.place.error(f"found {piece!r}: expected a bracket and a label, '(3'")
    return label
