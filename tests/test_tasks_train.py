"""A task trained from files in Python, as the command line does it."""

import json

import pytest
from test_tasks_cli import column_lines
from test_tasks_contract import ENTITIES, PARTS
from test_tasks_fit import Told, static_vectors

import elmokit
from elmokit.errors import ConfigError, DataError
from elmokit.static.embedders import StaticVectors
from elmokit.tasks import load, train


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Labelled data and static vectors, in the folder where we are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ner.conll").write_text(column_lines(ENTITIES), encoding="utf-8")
    (tmp_path / "pos.conll").write_text(column_lines(PARTS), encoding="utf-8")
    static_vectors().save(tmp_path / "vectors.txt")
    return tmp_path


NER = {"train": "ner.conll", "dev": "ner.conll", "settings": {"hidden": 8}}


def test_models_by_name(files, model_folder):
    told = Told()
    tagger = train("tagging", **NER, embedders=[model_folder], folder="ner", epochs=2, mix="last", progress=told)
    assert told.messages[0] == "8 examples to learn from, 8 to measure on"
    assert told.epochs == 2
    assert tagger.config.inputs.mix == "last"
    assert tagger.settings.hidden == 8
    assert load("ner").predict(["London"]) == tagger.predict(["London"])


def test_embedders_of_any_kind_are_found_again_from_anywhere(files, model_folder, tmp_path_factory, monkeypatch):
    embedders = {"vectors.txt": StaticVectors.load("vectors.txt"), str(model_folder): elmokit.load(model_folder)}
    tagger = train("tagging", **NER, embedders=embedders, folder="ner", epochs=1, tokenizer="whitespace", sample=0.5)
    assert tagger.config.tokenizer == "whitespace"
    assert json.loads((files / "ner" / "report.json").read_text())["train_examples"] == 4
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert load(files / "ner").predict(["London"]) == tagger.predict(["London"])


def test_a_bundled_model_is_found_beside_a_folder_of_its_name(files):
    tagger = train("tagging", **NER, embedders=["en"], folder="en", epochs=1)
    assert load("en").predict(["London"]) == tagger.predict(["London"])


def test_homes(files, monkeypatch):
    monkeypatch.setenv("HOME", str(files))
    data = {"train": "~/ner.conll", "dev": "~/ner.conll", "embedders": {"vectors.txt": static_vectors()}}
    train("tagging", **data, folder="~/ner", epochs=1)
    assert (files / "ner" / "report.json").exists()


def test_texts_are_cut_as_the_model_does(files, model_folder):
    tagger = train("tagging", **NER, embedders=[model_folder], folder="ner", epochs=1)
    assert tagger.config.tokenizer == elmokit.load(model_folder).config.tokenizer


@pytest.mark.parametrize(
    ("name", "options", "kind", "message"),
    [
        ("tagging", {"epoch": 2}, ConfigError, "unknown option 'epoch': known are mix, .*epochs.*sample"),
        ("tagging", {"epochs": 0}, ConfigError, "epochs is 0"),
        ("tagging", {"embedders": "en"}, ConfigError, r"embedders came as one: put it in a list, \[\"en\"\]"),
        ("tagging", {"mix": "lst"}, ConfigError, "the options have a mistake: Invalid enum value 'lst'.*mix"),
        ("tagging", {"output_mix": "no"}, ConfigError, "the options have a mistake: .*output_mix"),
        ("tagging", {"mix": "apart", "output_mix": True}, ConfigError, "output_mix is a second mix"),
        ("tagging", {"epochs": "2"}, ConfigError, "the options have a mistake: .*epochs"),
        ("tagging", {"cache": "float64"}, ConfigError, "the options have a mistake: .*cache"),
        ("tagging", {"sample": "1%"}, ConfigError, "sample is '1%'"),
        ("tagging", {"embedders": ["en", "en"]}, ConfigError, "en is given twice"),
        ("coref", {"settings": {"longest": 1_000_000}}, ConfigError, "longest is 1000000: it goes from 1 to 100"),
        ("coref", {"settings": {"spans_per_token": 1e308}}, ConfigError, "spans_per_token is 1e[+]308"),
        ("tagging", {"dev": "missing.conll"}, DataError, "missing.conll"),
        ("nap", {}, ConfigError, "unknown task 'nap': known are tagging, .*wsd"),
        ("probe", {"mix": "last"}, ConfigError, "probe sees each layer as it is: mix is not for it"),
        (
            "probe",
            {"input_dropout": 0.5, "trainable": "top"},
            ConfigError,
            "probe sees each layer as it is: input_dropout and trainable are not for it",
        ),
        ("wsd", {"sample": 0.5, "mix": "last"}, ConfigError, "wsd learns in one reading: sample and mix are not for"),
    ],
)
def test_mistakes(name, options, kind, message, files, model_folder):
    given = {"train": "ner.conll", "dev": "ner.conll", "embedders": [model_folder], "folder": "task"} | options
    with pytest.raises(kind, match=message):
        train(name, **given)
    assert not (files / "task").exists()


def test_a_probe_takes_what_the_loop_does(files, model_folder):
    probe = train("probe", train="pos.conll", dev="pos.conll", embedders=[model_folder], folder="probe", epochs=1)
    assert probe.config.inputs.mix == "apart"


def test_phrases_are_learned_from_and_sentences_measured(files):
    trees = "(3 (2 It) (4 works))\n(1 (2 It) (0 fails))\n"
    (files / "trees.txt").write_text(trees, encoding="utf-8")
    data = {"train": "trees.txt", "dev": "trees.txt", "embedders": {"vectors.txt": StaticVectors.load("vectors.txt")}}
    train("classify", **data, folder="sentences", epochs=1)
    train("classify", **data, folder="phrases", epochs=1, settings={"phrases": True})
    reports = [json.loads((files / name / "report.json").read_text()) for name in ("sentences", "phrases")]
    assert [report["train_examples"] for report in reports] == [2, 5]  # "It" once
    assert [report["dev_examples"] for report in reports] == [2, 2]
