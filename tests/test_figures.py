"""Numbers in tables of the docs are those of the records that stand beside them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks/record.py"
PAGES = sorted([*ROOT.glob("README*.md"), *ROOT.glob("docs/**/*.md")])
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# A table, then the line that names its records, with no other table between.
TABLE = re.compile(
    r"((?:^\|.*\n)+)(?:(?!\|).*\n)*?(?:Data|数据)[:：] *((?:`benchmarks/data/[\w.-]+\.json`[,，、 ]*)+)", re.MULTILINE
)


def numbers(text: str) -> list[str]:
    return [number.replace(",", "") for number in NUMBER.findall(text)]


def shown(value: str, printed: set[str]) -> bool:
    """Whether a number was printed, with as many decimals or with more of them."""
    decimals = len(value.partition(".")[2])
    return any(f"{float(one):.{decimals}f}" == value for one in printed)


def tables(page: Path) -> list[tuple[str, list[str]]]:
    """The tables whose records are named, each with their names."""
    found = TABLE.findall(page.read_text(encoding="utf-8"))
    return [(table, re.findall(r"[\w.-]+\.json", names)) for table, names in found]


CASES = [
    pytest.param(table, names, id=f"{page.name}-{number}")
    for page in PAGES
    for number, (table, names) in enumerate(tables(page), 1)
]


@pytest.mark.parametrize(("table", "names"), CASES)
def test_numbers_are_those_that_were_printed(table, names):
    """In all cells that begin with a number, those of the head apart: others say what was measured."""
    records = [(SCRIPT.parent / "data" / name).read_text(encoding="utf-8") for name in names]
    printed = {number for record in records for number in numbers(record)}
    cells = [cell.strip(" *") for row in table.splitlines()[2:] for cell in row.split("|")]
    found = [number for cell in cells if NUMBER.match(cell) for number in numbers(cell)]
    assert found
    wrong = [number for number in found if not shown(number, printed)]
    assert not wrong


def test_a_command_is_run_shown_and_kept(tmp_path, monkeypatch):
    (tmp_path / "benchmarks").mkdir()
    script = tmp_path / "benchmarks/record.py"
    script.write_bytes(SCRIPT.read_bytes())
    (tmp_path / "print.py").write_text("print('so\\n\\n| a | b |\\n|---|---:|\\n| 1 | 2 \\u4e24 |\\nend')")
    command = [sys.executable, str(script), "one", "python", "print.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "so\n\n| a | b |\n|---|---:|\n| 1 | 2 两 |\nend\n"
    found = json.loads((tmp_path / "benchmarks/data/one.json").read_text(encoding="utf-8"))
    assert found["command"] == "python print.py"
    assert found["tables"] == [{"columns": ["a", "b"], "rows": [["1", "2 两"]]}]
    assert found["lines"] == ["so", "end"]
    failed = [sys.executable, str(script), "two", "python", "-c", "raise SystemExit(3)"]
    assert subprocess.run(failed, cwd=tmp_path, capture_output=True, check=False).returncode == 3
    assert not (tmp_path / "benchmarks/data/two.json").exists()
