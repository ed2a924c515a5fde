"""The benchmark of tasks: every trial once, tables of what is there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_tasks_cli import column_lines
from test_tasks_contract import ENTITIES
from test_tasks_fit import static_vectors

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "tasks.py"


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "tagging" / "wnut17"
    folder.mkdir(parents=True)
    for part in ("train", "dev"):
        (folder / f"{part}.conll").write_text(column_lines(ENTITIES), encoding="utf-8")
    static_vectors().save(tmp_path / "vectors.txt")
    return tmp_path / "data"


def run(data, *arguments):
    command = [sys.executable, str(SCRIPT), str(data), "-o", "out", "--static", "vectors.txt", *arguments, "ner"]
    done = subprocess.run(command, cwd=data.parent, capture_output=True, text=True, check=True, timeout=500)
    return done.stdout


def test_trials_and_tables(data):
    told = run(data, "--seeds", "2", "--study", "layers")
    trials = sorted((data.parent / "out").glob("*.json"))
    assert len(trials) == 6  # static, with ELMo, with its top layer; two seeds
    assert "6/6" in told
    tables = told[told.index("\n| task") :]
    first, second = tables.strip().split("\n\n")
    [row] = [line.split(" | ") for line in first.splitlines() if "WNUT-17" in line]
    scores = [
        json.loads(path.read_text())["scores"]["f1"] for path in trials if path.name.startswith("ner vectors.txt l")
    ]
    assert row[2:4] == ["vectors", f"{50 * sum(scores):.1f} ± {100 * abs(scores[0] - scores[1]) / 2**0.5:.1f}"]
    [row] = [line.split(" | ") for line in second.splitlines() if "WNUT-17" in line]
    assert sum(map(float, row[4].split())) == pytest.approx(1, abs=0.02)

    assert run(data, "--tables") == f"\n{tables.lstrip()}"
    trials[0].unlink()
    told = run(data, "--seeds", "2", "--study", "layers")
    assert "1/1" in told
    assert told.endswith(tables)
