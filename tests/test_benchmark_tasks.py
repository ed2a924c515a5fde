"""The benchmark of tasks: every trial once, tables of what is there."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_tasks_cli import column_lines
from test_tasks_contract import ENTITIES
from test_tasks_fit import static_vectors

HOME = Path(__file__).parents[1]
SCRIPT = HOME / "benchmarks" / "tasks.py"


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
    file = data.parent / "out" / "trials.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    trials = [json.loads(line) for line in lines]
    assert len(trials) == 6  # static, with ELMo, with its top layer; two seeds
    assert "6/6" in told
    tables = told[told.index("\n| task") :]
    first, second = tables.strip().split("\n\n")
    [row] = [line.split(" | ") for line in first.splitlines() if "WNUT-17" in line]
    scores = [one["scores"]["f1"] for one in trials if one["trial"]["vectors"] == ["vectors"]]
    assert row[2:4] == ["vectors", f"{50 * sum(scores):.1f} ± {100 * abs(scores[0] - scores[1]) / 2**0.5:.1f}"]
    [row] = [line.split(" | ") for line in second.splitlines() if "WNUT-17" in line]
    assert sum(map(float, row[4].split())) == pytest.approx(1, abs=0.02)

    assert run(data, "--tables") == f"\n{tables.lstrip()}"
    file.write_text("".join(f"{line}\n" for line in lines[1:]), encoding="utf-8")
    told = run(data, "--seeds", "2", "--study", "layers")
    assert "1/1" in told
    assert told.endswith(tables)


@pytest.mark.parametrize(
    ("model", "static"), [("en-fiction", ["glove", "skip-gram"]), ("zh-classics", ["zh-glove", "zh-skip-gram"])]
)
def test_published_tables_are_what_was_measured(tmp_path, model, static):
    shutil.copy(SCRIPT.with_suffix(".jsonl"), tmp_path / "trials.jsonl")
    named = [part for name in static for part in ("--static", name)]
    command = [sys.executable, str(SCRIPT), "nowhere", "-o", str(tmp_path), "--model", model, *named, "--tables"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500).stdout
    rows = [line for line in told.splitlines() if line and "---" not in line]
    published = (HOME / "docs" / "tasks.md").read_text(encoding="utf-8").splitlines()
    assert len(rows) > 3
    assert [row for row in rows if row not in published] == []
