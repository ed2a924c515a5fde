"""The table of formulas names functions that are there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| what"))
]
REFERENCE = re.compile(r"`([\w/]+\.py)::([\w.]+)`")


def defined_in(path: Path) -> set[str]:
    """The qualified name of every class and function of a module."""
    names = set()

    def collect(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                names.add(prefix + child.name)
                collect(child, f"{prefix}{child.name}.")

    collect(ast.parse(path.read_text(encoding="utf-8")), "")
    return names


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_formula_has_its_function(row):
    _, formula, function, fast = row
    assert formula
    assert len(REFERENCE.findall(function)) == 1
    for file, name in REFERENCE.findall(function + fast):
        assert name in defined_in(ROOT / "src" / "elmokit" / file), f"{file}::{name}"


def test_each_formula_stands_once():
    assert len(ROWS) > 20
    for column in (0, 1):
        cells = [row[column] for row in ROWS]
        assert len(set(cells)) == len(cells)


def test_the_architecture_names_files_that_are_there():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`(\w+/[\w/]+(?:\.py|/))`", page)
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / "src" / "elmokit" / path).exists(), path
    rooms = re.search(r"^layers = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert rooms is not None
    named = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == set(re.findall(r'"(\w+)"', rooms[1])) - {"__main__"}
