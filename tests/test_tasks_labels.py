"""Tables of texts and labels on the command line: which columns are taken, and what is said of them."""

import csv
from collections import Counter

import pytest
from test_tasks_cli import run
from test_tasks_contract import CLASSES
from test_tasks_fit import static_vectors

import elmokit.tasks
from elmokit.errors import ConfigError, DataError

ROWS = tuple((one.text if isinstance(one.text, str) else " ".join(one.text), one.label) for one in CLASSES)


@pytest.fixture
def train(tmp_path):
    """Trains on rows of a table, and gives what task.json then says."""
    static_vectors().save(tmp_path / "vectors.txt")

    def train_task(*options, rows=ROWS, name="classify", file="table.tsv", header=""):
        path = tmp_path / file
        with path.open("w", encoding="utf-8", newline="") as table:
            table.write(header)
            csv.writer(table, delimiter="," if path.suffix == ".csv" else "\t").writerows(rows)
        data = ("--train", path, "--dev", path, "--static", tmp_path / "vectors.txt", "-o", tmp_path / "trained")
        run("train", name, *data, "-s", "hidden=4", "--epochs", "1", *options)
        return elmokit.tasks.load(tmp_path / "trained").config

    return train_task


def test_the_text_may_stand_first(train, capsys):
    config = train()
    assert config.labels == ("bad", "good", "neither")
    said = capsys.readouterr().err
    assert "table.tsv: the label is column 2, the text is column 1" in said
    counts = Counter(label for _, label in ROWS)
    assert all(f"{label} ({count})" in said for label, count in counts.items())


def test_a_trained_task_reads_other_files_the_same(train, tmp_path, capsys):
    """One line does not show which column is which."""
    train()
    (tmp_path / "test.tsv").write_text("good\tbad\n", encoding="utf-8")
    run("evaluate", tmp_path / "trained", tmp_path / "test.tsv")
    assert "accuracy" in capsys.readouterr().out
    run("evaluate", tmp_path / "trained", tmp_path / "test.tsv", "--label-column", "1", "--text-column", "2")


@pytest.mark.parametrize("columns", [("3", "1"), ("opinion", "said")])
def test_columns_that_are_said(columns, train):
    rows = [(text, "bad" if number % 2 else "good", label) for number, (text, label) in enumerate(ROWS)]
    options = ("--label-column", columns[0], "--text-column", columns[1])
    header = "" if columns[0].isdigit() else "said,label,opinion\n"
    config = train(*options, rows=rows, file="table.csv", header=header)
    assert config.labels == ("bad", "good", "neither")


def test_texts_are_no_labels(train, tmp_path):
    rows = [(f"a film of {number} minutes", f"it was shown {number} times") for number in range(60, 80)]
    message = r"table.tsv: 20 of 20 labels are different, '.*' is one: choose the column .* by --label-column"
    with pytest.raises(DataError, match=message):
        train(rows=rows)
    assert not (tmp_path / "trained").exists()


def test_pairs(train):
    rows = [(text, f"it is {label}", "yes" if number % 2 else "no") for number, (text, label) in enumerate(ROWS)]
    config = train(rows=rows, name="pairs")
    assert config.labels == ("no", "yes")
    assert config.settings["label"] == 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("classify", ("--label-column", "0"), "columns count from 1"),
        ("classify", ("--text-column", "1", "--text-column", "2"), "unknown setting 'first'"),
        ("tagging", ("--label-column", "2"), "unknown setting 'label': this task has .*column"),
    ],
)
def test_mistakes(name, options, message, train):
    with pytest.raises(ConfigError, match=message):
        train(*options, name=name)
