"""Every study of words gives the same numbers as JSON, as a table and from Python."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from test_lexicon_substitutes import random_predictor
from test_surprisal_tables import run

import elmokit
from elmokit import lexicon
from elmokit.lexicon.neighbors import static_similarity
from elmokit.static.embedders import StaticVectors
from elmokit.static.surroundings import StaticSurroundings
from elmokit.text.brackets import read_brackets
from elmokit.text.tables import read_table

QUERY = "the [bank] of the river"
TEXTS = {
    "a.txt": "The bank of the river was steep and green. She sat on the bank.\nThe bank raised its wages.",
    "b.txt": "A bank holds her wages, too. The bank of the river was green. The river, the bank and the green.",
}
READING = "sentence,word,rt\n1,The,310\n1,bank,355\n1,was,290\n1,steep.,402\n2,A,280\n2,river,333\n"


class Study(NamedTuple):
    """A command and what Python says: its rows."""

    command: list[Any]
    python: Callable[["Workshop"], list[dict[str, Any]]]
    shown: Callable[[Any], list[dict[str, Any]]] | None = None  # the rows that its JSON holds, where it holds them


class Workshop:
    """A model, two texts with their metadata, static vectors, an index."""

    def __init__(self, folder):
        self.folder = folder
        random_predictor("adaptive").save(folder / "model")
        (folder / "texts").mkdir()
        for name, text in TEXTS.items():
            (folder / "texts" / name).write_text(text, encoding="utf-8")
        for name, text in zip(("early.txt", "late.txt"), TEXTS.values(), strict=True):
            (folder / name).write_text(f"{text}\n" * 5, encoding="utf-8")  # enough of each word for skip-gram
        (folder / "dates.csv").write_text("document,date\na,1813\nb,1897\n", encoding="utf-8")
        (folder / "reading.csv").write_text(READING, encoding="utf-8")
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
            "{early}": [self.folder / "early.txt"],
            "{late}": [self.folder / "late.txt"],
            "{static}": ["--static", self.folder / "v.txt"],
            "{vectors}": [self.folder / "v.txt"],
            "{reading}": [self.folder / "reading.csv"],
            "{index}": [self.folder / "index"],
        }
        return [one for argument in arguments for one in given.get(argument, [argument])]

    def query(self):
        return read_brackets(QUERY, self.elmo.tokenizer)


rows = lexicon.table_rows


def listed(key):
    return lambda answer: rows(answer[key])


def sense_rows_of(answer):
    places = zip(answer["labels"], answer["occurrences"], strict=True)
    return [row for label, one in places for row in rows([one], sense=label + 1)]


def shift_rows_of(answer):
    found = []
    for rank, change in enumerate(answer, 1):
        counts = dict(zip(change["slices"], change["counts"], strict=True))
        for number, one in enumerate(change["distances"]):
            head = {"rank": rank, "word": change["word"]}
            head |= {"first_count": counts[one["first"]], "last_count": counts[one["last"]]}
            found.append(head | one | {"q": None if number else change["q"]})
    return found


def static_sense_rows_of(answer):
    places = zip(answer["labels"], answer["static"]["labels"], answer["occurrences"], strict=True)
    return [row for sense, other, one in places for row in rows([one], sense=sense + 1, static_sense=other + 1)]


def senses(shop, by, static=None):
    settings = lexicon.SenseSettings(count=2)
    found = lexicon.find_senses("bank", shop.corpus, by(shop.elmo), settings=settings)
    beside = static and lexicon.static_groups(found, shop.corpus, StaticSurroundings(shop.static))
    return list(lexicon.sense_rows(found, beside))


def shift(shop, *names, **options):
    slices = {Path(name).name: lexicon.open_corpus([shop.folder / name], shop.elmo.tokenizer) for name in names}
    settings = lexicon.ShiftSettings(min_count=1, permutations=20, **options)
    return list(lexicon.shift_rows(lexicon.find_shift(slices, shop.elmo, settings=settings)))


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
        ["neighbors", "bank", *EVERYTHING, "-k", 5, "--min-count", 1],
        lambda shop: rows(types(shop)),
        listed("neighbors"),
    ),
    "neighbors of a word, centered": Study(
        ["neighbors", "bank", *EVERYTHING, "-k", 5, "--min-count", 1, "--center"],
        lambda shop: rows(types(shop, center=True)),
        listed("neighbors"),
    ),
    "neighbors beside static ones": Study(
        ["neighbors", "bank", *EVERYTHING, "-k", 5, "--min-count", 1, "{static}"],
        lambda shop: with_static(shop, types(shop)),
    ),
    "neighbors in context": Study(
        ["neighbors", QUERY, *EVERYTHING, "-k", 3],
        lambda shop: rows(lexicon.context_neighbors(shop.query(), shop.corpus, shop.elmo, k=3)),
        listed("neighbors"),
    ),
    "index, a word": Study(
        ["index", "search", "{index}", "bank", "-k", 5, "--min-count", 1],
        lambda shop: rows(lexicon.open_index(shop.folder / "index").word_neighbors("bank", k=5, min_count=1)),
        listed("neighbors"),
    ),
    "index, in context": Study(
        ["index", "search", "{index}", QUERY, "-k", 3],
        lambda shop: rows(lexicon.open_index(shop.folder / "index").search_word(shop.query(), shop.elmo, k=3)),
        listed("neighbors"),
    ),
    "concordance": Study(
        ["concordance", "bank", *EVERYTHING, "--sort", "right"], lambda shop: lines(shop, sort="right"), listed("lines")
    ),
    "concordance by similarity": Study(
        ["concordance", "bank", *EVERYTHING, "--example", QUERY, "{static}"],
        lambda shop: lines(
            shop, sort="similarity", example=QUERY, embedder=shop.elmo, static=StaticSurroundings(shop.static)
        ),
        listed("lines"),
    ),
    "concordance by sense": Study(
        ["concordance", "bank", *EVERYTHING, "--sort", "sense"],
        lambda shop: lines(shop, sort="sense", embedder=lexicon.Surroundings(shop.elmo), layers="top"),
        listed("lines"),
    ),
    "collocations": Study(
        ["collocations", "bank", "{corpus}", "--min-count", 1, "--ignore-case"],
        lambda shop: rows(lexicon.find_collocations("bank", shop.corpus, min_count=1, ignore_case=True)),
        listed("collocations"),
    ),
    "keyness": Study(
        ["keyness", "{a}", "{b}", "--min-count", 1, "--by", "log-ratio"],
        lambda shop: rows(
            lexicon.find_keyness(shop.open("texts/a.txt"), shop.open("texts/b.txt"), min_count=1, by="log-ratio")
        ),
        listed("keywords"),
    ),
    "substitutes": Study(
        ["substitutes", QUERY, "{model}", "-k", 4],
        lambda shop: rows(lexicon.substitutes(shop.elmo, QUERY, k=4).candidates),
        listed("candidates"),
    ),
    "substitutes that fit, by static vectors": Study(
        ["substitutes", QUERY, "{model}", "{static}", "--view", "fits", "--among", "river", "--among", "green"],
        lambda shop: rows(lexicon.substitutes(shop.elmo, QUERY, view="fits", among=["river", "green"]).candidates),
        listed("candidates"),
    ),
    "senses": Study(
        ["senses", "bank", *EVERYTHING, "--count", 2], lambda shop: senses(shop, lexicon.Surroundings), sense_rows_of
    ),
    "senses by substitutes": Study(
        ["senses", "bank", *EVERYTHING, "--count", 2, "--by", "substitutes"],
        lambda shop: senses(shop, lexicon.SubstituteVectors),
        sense_rows_of,
    ),
    "senses beside static groups": Study(
        ["senses", "bank", *EVERYTHING, "--count", 2, "{static}"],
        lambda shop: senses(shop, lexicon.Surroundings, static=True),
        static_sense_rows_of,
    ),
    "shift": Study(
        ["shift", "{early}", "{late}", "{a}", "{model}", "--min-count", 1, "--permutations", 20],
        lambda shop: shift(shop, "early.txt", "late.txt", "texts/a.txt"),
        shift_rows_of,
    ),
    "shift, ranked by static vectors": Study(
        ["shift", "{early}", "{late}", "{model}", "--min-count", 1, "--permutations", 20, "--by", "static"],
        lambda shop: shift(shop, "early.txt", "late.txt", by="static"),
        shift_rows_of,
    ),
    "static neighbors": Study(
        ["static", "neighbors", "bank", "--vectors", "{vectors}"],
        lambda shop: rows(lexicon.word_neighbors("bank", shop.static)),
        listed("neighbors"),
    ),
    "surprisal of a table": Study(
        ["surprisal", "--tokens", "{reading}", "{model}"],
        lambda shop: list(lexicon.align_surprisal(read_table(shop.folder / "reading.csv"), shop.elmo)),
    ),
    "surprisal": Study(
        ["surprisal", "{texts}", "{metadata}", "{model}"],
        lambda shop: rows(lexicon.iter_surprisal(shop.corpus, shop.elmo)),
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
    command, python, held = STUDIES[name]
    expected = python(shop)
    assert expected
    run(*shop.filled(command), "-o", tmp_path / "t.csv", "--json")
    answer = json.loads(capsys.readouterr().out)
    assert read_table(tmp_path / "t.csv").rows == [as_written(row) for row in expected]
    if held:
        assert held(answer) == expected
    run(*shop.filled(command), "-o", tmp_path / "t.parquet")
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(tmp_path / "t.parquet")
    assert table.columns.tolist() == list(expected[0])
    for row, found in zip(expected, table.to_dict("records"), strict=True):
        assert {name: None if pandas.isna(cell) else cell for name, cell in found.items()} == row


@pytest.mark.parametrize("name", STUDIES)
def test_data_frames(name, shop):
    expected = STUDIES[name].python(shop)
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    assert polars.DataFrame(expected, infer_schema_length=None).to_dicts() == expected
    frame = pandas.DataFrame(expected)
    assert frame.columns.tolist() == list(expected[0])
    assert frame.astype(object).where(frame.notna(), None).to_dict("records") == expected


@pytest.mark.parametrize("static", [[], ["{static}"]])
def test_similarity(static, shop, capsys):
    sentences = QUERY, "The [bank] raised its wages."
    run("similarity", *sentences, *shop.filled(["{model}", *static]), "--json")
    expected = {"similarity": shop.elmo.similarity(*sentences)}
    if static:
        expected["static"] = static_similarity(*sentences, shop.static, shop.elmo.tokenizer)
    assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.parametrize("name", ["neighbors in context", "index, in context", "concordance", "senses", "surprisal"])
def test_metadata_is_there(name, shop):
    assert {row["date"] for row in STUDIES[name].python(shop)} == {"1813", "1897"}


def test_a_sentence(shop, capsys):
    run("surprisal", "The bank of the river", *shop.filled(["{model}"]), "--json")
    found = json.loads(capsys.readouterr().out)
    expected = lexicon.surprisal(shop.elmo, "The bank of the river")
    assert found["words"] == [word._asdict() for word in expected.words]
    assert (found["begin"], found["end"]) == (expected.begin, expected.end)
