"""Every study of words gives the same numbers as JSON, as a table and from Python."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from test_lexicon_substitutes import random_predictor
from test_surprisal_tables import run

import elmokit
from elmokit import lexicon
from elmokit.lexicon.tables import table_row
from elmokit.static.embedders import StaticVectors
from elmokit.static.surroundings import StaticSurroundings
from elmokit.text.brackets import read_brackets
from elmokit.text.tables import read_table

QUERY = "the [bank] of the river"
TEXTS = {
    "a.txt": "The bank of the river was steep and green. She sat on the bank.\nThe bank raised its wages.",
    "b.txt": "A bank holds her wages, too. The bank of the river was green. The river, the bank and the green.",
}


class Study(NamedTuple):
    """A command and what Python says: its rows."""

    command: list[Any]
    python: Callable[["Workshop"], list[dict[str, Any]]]
    key: str | None = None  # of the JSON object that holds the rows


class Workshop:
    """A model, two texts with their metadata, static vectors, an index."""

    def __init__(self, folder):
        self.folder = folder
        random_predictor("adaptive").save(folder / "model")
        (folder / "texts").mkdir()
        for name, text in TEXTS.items():
            (folder / "texts" / name).write_text(text, encoding="utf-8")
        (folder / "dates.csv").write_text("document,date\na,1813\nb,1897\n", encoding="utf-8")
        words = ["bank", "river", "green", "wages", "the"]
        StaticVectors(words, np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)).save(folder / "v.txt")
        self.elmo = elmokit.load(folder / "model")
        self.static = StaticVectors.load(folder / "v.txt", lower_case=True)
        self.corpus = self.open("texts")
        run("index", "build", *self.filled(["{texts}", "{metadata}", "{model}", "-o", "{index}"]))

    def open(self, *names):
        paths = [self.folder / name for name in names]
        return lexicon.open_corpus(paths, self.elmo.tokenizer, metadata=self.folder / "dates.csv")

    def filled(self, arguments):
        given = {
            "{model}": ["-m", self.folder / "model"],
            "{metadata}": ["--metadata", self.folder / "dates.csv"],
            "{corpus}": ["--corpus", self.folder / "texts"],
            "{texts}": [self.folder / "texts"],
            "{a}": [self.folder / "texts" / "a.txt"],
            "{b}": [self.folder / "texts" / "b.txt"],
            "{static}": ["--static", self.folder / "v.txt"],
            "{index}": [self.folder / "index"],
        }
        return [one for argument in arguments for one in given.get(argument, [argument])]

    def query(self):
        return read_brackets(QUERY, self.elmo.tokenizer)


def rows(found, **more):
    return [table_row(one, **more) for one in found]


def types(shop, **options):
    vectors = lexicon.type_vectors(shop.corpus, shop.elmo, min_count=1)
    return lexicon.word_neighbors("bank", vectors, k=5, **options)


def lines(shop, **options):
    return rows(lexicon.find_lines("bank", shop.corpus, **options))


def with_static(shop, near):
    beside = lexicon.word_neighbors("bank", shop.static, k=5)
    return rows(near, vectors="contextual") + rows(beside, vectors="static")


EVERYTHING = ["{corpus}", "{metadata}", "{model}"]
STUDIES = {
    "neighbors of a word": Study(
        ["neighbors", "bank", *EVERYTHING, "-k", 5, "--min-count", 1], lambda shop: rows(types(shop)), "neighbors"
    ),
    "neighbors of a word, centered": Study(
        ["neighbors", "bank", *EVERYTHING, "-k", 5, "--min-count", 1, "--center"],
        lambda shop: rows(types(shop, center=True)),
        "neighbors",
    ),
    "neighbors beside static ones": Study(
        ["neighbors", "bank", *EVERYTHING, "-k", 5, "--min-count", 1, "{static}"],
        lambda shop: with_static(shop, types(shop)),
    ),
    "neighbors in context": Study(
        ["neighbors", QUERY, *EVERYTHING, "-k", 3],
        lambda shop: rows(lexicon.context_neighbors(shop.query(), shop.corpus, shop.elmo, k=3)),
        "neighbors",
    ),
    "index, a word": Study(
        ["index", "search", "{index}", "bank", "-k", 5, "--min-count", 1],
        lambda shop: rows(lexicon.open_index(shop.folder / "index").word_neighbors("bank", k=5, min_count=1)),
        "neighbors",
    ),
    "index, in context": Study(
        ["index", "search", "{index}", QUERY, "-k", 3],
        lambda shop: rows(lexicon.open_index(shop.folder / "index").search_word(shop.query(), shop.elmo, k=3)),
        "neighbors",
    ),
    "concordance": Study(
        ["concordance", "bank", *EVERYTHING, "--sort", "right"], lambda shop: lines(shop, sort="right"), "lines"
    ),
    "concordance by similarity": Study(
        ["concordance", "bank", *EVERYTHING, "--example", QUERY, "{static}"],
        lambda shop: lines(
            shop, sort="similarity", example=QUERY, embedder=shop.elmo, static=StaticSurroundings(shop.static)
        ),
        "lines",
    ),
    "concordance by sense": Study(
        ["concordance", "bank", *EVERYTHING, "--sort", "sense"],
        lambda shop: lines(shop, sort="sense", embedder=lexicon.Surroundings(shop.elmo), layers="top"),
        "lines",
    ),
    "collocations": Study(
        ["collocations", "bank", "{corpus}", "--min-count", 1, "--ignore-case"],
        lambda shop: rows(lexicon.find_collocations("bank", shop.corpus, min_count=1, ignore_case=True)),
        "collocations",
    ),
    "keyness": Study(
        ["keyness", "{a}", "{b}", "--min-count", 1, "--by", "log-ratio"],
        lambda shop: rows(
            lexicon.find_keyness(shop.open("texts/a.txt"), shop.open("texts/b.txt"), min_count=1, by="log-ratio")
        ),
        "keywords",
    ),
    "substitutes": Study(
        ["substitutes", QUERY, "{model}", "-k", 4],
        lambda shop: rows(lexicon.substitutes(shop.elmo, QUERY, k=4).candidates),
        "candidates",
    ),
    "substitutes that fit, by static vectors": Study(
        ["substitutes", QUERY, "{model}", "{static}", "--view", "fits", "--among", "river", "--among", "green"],
        lambda shop: rows(lexicon.substitutes(shop.elmo, QUERY, view="fits", among=["river", "green"]).candidates),
        "candidates",
    ),
    "surprisal": Study(
        ["surprisal", "{texts}", "{metadata}", "{model}"],
        lambda shop: [table_row(row) for row in lexicon.iter_surprisal(shop.corpus, shop.elmo)],
    ),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    pytest.importorskip("lancedb")
    return Workshop(tmp_path_factory.mktemp("words"))


def as_written(row):
    """The cells as a table has them; numbers with all their digits."""
    shown = {"None": "", "True": "true", "False": "false"}
    return {name: cell if isinstance(cell, str) else shown.get(str(cell), str(cell)) for name, cell in row.items()}


@pytest.mark.parametrize("name", STUDIES)
def test_the_same_numbers(name, shop, tmp_path, capsys):
    command, python, key = STUDIES[name]
    expected = python(shop)
    assert expected
    run(*shop.filled(command), "-o", tmp_path / "t.csv", "--json")
    answer = json.loads(capsys.readouterr().out)
    assert read_table(tmp_path / "t.csv").rows == [as_written(row) for row in expected]
    if key:
        assert rows(answer[key]) == expected
    run(*shop.filled(command), "-o", tmp_path / "t.parquet")
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(tmp_path / "t.parquet")
    assert table.columns.tolist() == list(expected[0])
    for row, found in zip(expected, table.to_dict("records"), strict=True):
        assert {name: None if pandas.isna(cell) else cell for name, cell in found.items()} == row


@pytest.mark.parametrize("name", ["neighbors in context", "index, in context", "concordance", "surprisal"])
def test_metadata_is_there(name, shop):
    assert {row["date"] for row in STUDIES[name].python(shop)} == {"1813", "1897"}


def test_a_sentence(shop, capsys):
    run("surprisal", "The bank of the river", *shop.filled(["{model}"]), "--json")
    found = json.loads(capsys.readouterr().out)
    expected = lexicon.surprisal(shop.elmo, "The bank of the river")
    assert found["words"] == [word._asdict() for word in expected.words]
    assert (found["begin"], found["end"]) == (expected.begin, expected.end)
