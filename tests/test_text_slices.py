"""A corpus divided by the table of its documents: each sentence in one slice, slices in order, mistakes said."""

import json
import logging
import re

import pytest
from test_surprisal_tables import run

from elmokit.errors import ConfigError, DataError
from elmokit.text.corpus import open_corpus
from elmokit.text.slices import slices_by

TEXTS = {"a": "The bank was steep.", "b": "A bank holds money. It is old.", "c": "The bank of today.", "d": "No date."}
DATES = {"a": "1813-01-28", "b": "1897", "c": "1815", "d": ""}


@pytest.fixture
def corpus(tmp_path):
    lines = (json.dumps({"text": text}) for text in TEXTS.values())
    (tmp_path / "letters.jsonl").write_text("\n".join(lines), encoding="utf-8")
    rows = (f"letters.jsonl:{number},{date},{date[:2]}" for number, date in enumerate(DATES.values(), 1))
    (tmp_path / "dates.csv").write_text("\n".join(["document,date,century", *rows]), encoding="utf-8")
    return open_corpus(tmp_path / "letters.jsonl", "words", metadata=tmp_path / "dates.csv")


def texts_of(slices):
    return {name: [context.text for context in part] for name, part in slices.items()}


def test_by_value_in_order(corpus):
    assert texts_of(slices_by(corpus, "date")) == {
        "1813-01-28": ["The bank was steep."],
        "1815": ["The bank of today."],
        "1897": ["A bank holds money.", "It is old."],
    }


@pytest.mark.parametrize(("years", "names"), [(10, ["1810-1819", "1890-1899"]), (1, ["1813", "1815", "1897"])])
def test_by_years(years, names, corpus):
    slices = texts_of(slices_by(corpus, "date", years=years))
    assert list(slices) == names
    assert [text for texts in slices.values() for text in texts] == [
        context.text for context in sorted(corpus, key=date) if date(context)
    ]


def date(context):
    return context.metadata["date"]


def test_years_before_our_era(tmp_path):
    for name, year in (("a", -44), ("b", 14), ("c", -39)):
        (tmp_path / f"{name}.txt").write_text(f"{year} .")
    (tmp_path / "t.csv").write_text("document,year\na,-44\nb,14\nc,-39\n")
    files = [tmp_path / f"{name}.txt" for name in "abc"]
    corpus = open_corpus(files, "words", metadata=tmp_path / "t.csv")
    assert list(slices_by(corpus, "year", years=10)) == ["-50--41", "-40--31", "10-19"]


def test_documents_without_the_field_are_told(corpus, caplog):
    with caplog.at_level(logging.INFO, "elmokit"):
        slices_by(corpus, "date")
    assert re.search(r"1 of 4 documents, such as .*letters.jsonl:4, have no date: left out", caplog.text)


def test_mistakes(corpus, tmp_path):
    with pytest.raises(ConfigError, match="no column 'year': it has date, century"):
        slices_by(corpus, "year")
    with pytest.raises(DataError, match="has only 1800-1899 as date: two slices or more are compared"):
        slices_by(corpus, "date", years=100)
    with pytest.raises(ConfigError, match="a slice has 0 years: give 1 or more"):
        slices_by(corpus, "date", years=0)
    with pytest.raises(ConfigError, match="give --metadata TABLE"):
        slices_by(open_corpus(tmp_path / "letters.jsonl", "words"), "date")
    (tmp_path / "dates.csv").write_text("document,date\nletters.jsonl:1,unknown\nletters.jsonl:2,1897\n")
    spoiled = open_corpus(tmp_path / "letters.jsonl", "words", metadata=tmp_path / "dates.csv")
    with pytest.raises(DataError, match="date is 'unknown' of a document, and should begin with a year"):
        slices_by(spoiled, "date", years=10)


class TestShift:
    """The command: the same as with a file for each slice."""

    ARGUMENTS = ("--min-count", 1, "--words", "bank", "--json", "--permutations", 0)

    def test_same_as_slices_in_files(self, corpus, tmp_path, model_folder, capsys):
        (tmp_path / "old.txt").write_text("The bank was steep.\nThe bank of today.\n")
        (tmp_path / "new.txt").write_text("A bank holds money. It is old.\n")
        run("shift", tmp_path / "old.txt", tmp_path / "new.txt", "-m", model_folder, *self.ARGUMENTS)
        [by_files] = json.loads(capsys.readouterr().out)
        table = ["--metadata", tmp_path / "dates.csv", "--slice-by", "date", "--years", 10]
        run("shift", tmp_path / "letters.jsonl", "-m", model_folder, *table, *self.ARGUMENTS)
        [by_dates] = json.loads(capsys.readouterr().out)
        assert by_dates["slices"] == ["1810-1819", "1890-1899"]
        assert by_dates["counts"] == by_files["counts"] == [2, 1]
        assert by_dates["distances"][0]["apd"] == by_files["distances"][0]["apd"]

    def test_years_of_what(self, tmp_path, model_folder):
        (tmp_path / "old.txt").write_text("The bank.")
        with pytest.raises(ConfigError, match="name the column of dates too"):
            run("shift", tmp_path / "old.txt", "-m", model_folder, "--years", 10)
