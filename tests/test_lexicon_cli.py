"""The commands about words, as a user types them."""

import gzip
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import zstandard
from cyclopts import App
from test_lexicon import MONEY, RIVER, TOKENIZER, around
from test_lexicon_substitutes import random_predictor

import elmokit
from elmokit.cli import app as all_commands
from elmokit.cli.neighbors import neighbors
from elmokit.cli.predictions import substitutes, surprisal
from elmokit.cli.words import senses, shift
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.lexicon.neighbors import word_neighbors
from elmokit.lexicon.occurrences import type_vectors
from elmokit.lexicon.substitution import substitutes as find_substitutes
from elmokit.static.files import write_vectors
from elmokit.text.brackets import read_brackets
from elmokit.text.corpus import open_corpus

COMMANDS = (neighbors, senses, substitutes, surprisal, shift)


def run(*arguments) -> None:
    app = App(result_action="return_none")
    for command in COMMANDS:
        app.command(command)
    app([str(argument) for argument in arguments], exit_on_error=False, print_error=False)


def run_app(*arguments) -> None:
    all_commands([str(argument) for argument in arguments], exit_on_error=False, print_error=False)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    lines = [" ".join(words) + " ." for words in around("bank", RIVER, 30) + around("bank", MONEY, 20, seed=1)]
    path = tmp_path_factory.mktemp("text") / "river.txt"
    path.write_text("\n".join([*lines, "宝玉 笑 道 。"]), encoding="utf-8")
    return path


@pytest.fixture
def options(text, model_folder):
    return ("--corpus", text, "-m", model_folder)


class TestNeighbors:
    def test_of_a_word(self, options, text, model_folder, capsys):
        run("neighbors", "bank", *options, "-k", 3, "--layer", "top", "--min-count", 2)
        lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
        elmo = elmokit.load(model_folder)
        types = type_vectors(open_corpus([text], elmo.tokenizer), elmo, layers="top", min_count=2)
        assert lines == [[f"{cosine:.3f}", word] for word, cosine in word_neighbors("bank", types, k=3)]

    def test_in_a_sentence(self, options, capsys):
        run("neighbors", "the steep [bank] of the stream", *options, "-k", 5, "--json")
        found = json.loads(capsys.readouterr().out)["neighbors"]
        assert len(found) == 5
        assert {near["occurrence"]["token"] for near in found} == {"bank"}
        assert [near["cosine"] for near in found] == sorted((near["cosine"] for near in found), reverse=True)
        run("neighbors", "the steep [bank] of the stream", *options, "-k", 5)
        assert [line[7:] for line in capsys.readouterr().out.splitlines()] == [
            near["occurrence"]["sentence"].replace("bank", "[bank]") for near in found
        ]

    def test_any_word(self, options, capsys):
        run("neighbors", "宝玉【笑】道", *options, "--tokenizer", "jieba", "--any-word", "--json", "-k", 40)
        tokens = {near["occurrence"]["token"] for near in json.loads(capsys.readouterr().out)["neighbors"]}
        assert len(tokens) > 1

    def test_static_vectors_beside(self, options, tmp_path, capsys):
        vectors = np.array([[1, 0], [1, 0.1], [0, 1]], np.float32)
        write_vectors(tmp_path / "v.txt", ["bank", "shore", "coin"], vectors)
        for query in ("bank", "the [bank]"):
            run("neighbors", query, *options, "-k", 2, "--static", tmp_path / "v.txt", "--json")
            static = json.loads(capsys.readouterr().out)["static"]
            assert [near["word"] for near in static] == ["shore", "coin"]
        run("neighbors", "water", *options, "-k", 1, "--static", tmp_path / "v.txt")
        assert capsys.readouterr().out.endswith("\nv.txt: the word is not in it\n")

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            ("bnak", "no word 'bnak'; near spellings that it has: bank"),
            ("the [bank] of the [stream]", "more brackets than one pair"),
            ("the [bank of", "no word in brackets"),
            ("the bank of the stream", "no word in brackets"),
        ],
    )
    def test_mistakes(self, options, query, message):
        with pytest.raises(DataError, match=message):
            run("neighbors", query, *options)

    @pytest.mark.parametrize(
        ("query", "more", "kind", "message"),
        [
            ("bank", ["--any-word"], ConfigError, r"choose occurrences: put the word .* as in 'the \[bank\] of it'"),
            ("bank", ["--token", "shore"], ConfigError, "choose occurrences"),
            ("bank", ["--document", "x"], ConfigError, "choose occurrences"),
            ("a [bank]", ["--any-word", "--token", "shore"], ConfigError, "of any word, or of 'shore': ask for one"),
            (
                "a [bank]",
                ["--document", "sea.txt"],
                DataError,
                "no document 'sea.txt' has .* some that have: .*river.txt",
            ),
            ("a [bank]", ["--token", "bnak"], DataError, "no word 'bnak'; near spellings that it has: bank"),
            ("a [bank]", ["-k", "0"], ConfigError, "k is 0"),
            ("bank", ["-k", "0"], ConfigError, "k is 0"),
        ],
    )
    def test_wrong_options(self, options, query, more, kind, message):
        with pytest.raises(kind, match=message):
            run("neighbors", query, *options, *more)

    def test_of_another_word_in_one_document(self, options, text, tmp_path, capsys):
        (tmp_path / "more.txt").write_text("A shore by the stream .\nThe shore .", encoding="utf-8")
        both = (*options, "--corpus", tmp_path / "more.txt", "--token", "shore", "--json")
        for document in (str(text), str(tmp_path / "more.txt")):
            run("neighbors", "the [bank]", *both, "--document", document)
            near = json.loads(capsys.readouterr().out)["neighbors"]
            assert {(one["occurrence"]["token"], one["occurrence"]["document"]) for one in near} == {
                ("shore", document)
            }
        run("neighbors", "the [bank]", *both[:-1])
        assert f"({tmp_path / 'more.txt'})" in capsys.readouterr().out

    def test_missing_corpus(self, model_folder, tmp_path):
        with pytest.raises(DataError, match="no such file"):
            run("neighbors", "bank", "--corpus", tmp_path / "missing.txt", "-m", model_folder)


class TestKept:
    """The second question about a corpus embeds nothing of it."""

    @pytest.mark.parametrize(
        ("first", "second", "kept"),
        [
            (["bank"], ["water", "--min-count", 2], "each word's mean vector is computed and kept"),
            (["the [bank]"], ["the [bank] of it", "-k", 3], "'bank' is embedded where it stands and kept"),
            (["the [bank]"], ["a [stream]", "--token", "bank"], "'bank' is embedded where it stands and kept"),
        ],
    )
    def test_for_the_next_question(self, first, second, kept, options, capsys, monkeypatch, tmp_path):
        run("neighbors", *second, *options)
        expected = capsys.readouterr().out
        monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "another"))
        run("neighbors", *first, *options)
        assert kept in capsys.readouterr().err
        run("neighbors", *second, *options)
        again = capsys.readouterr()
        assert (again.out, again.err) == (expected, "")

    def test_any_word_names_the_index(self, options, capsys):
        run("neighbors", "the [bank]", *options, "--any-word")
        assert "all words are embedded for this question alone; `elmokit index build` keeps" in capsys.readouterr().err


class TestStaticNeighbors:
    @pytest.fixture
    def vectors(self, tmp_path):
        numbers = np.array([[1, 0], [1, 0.1], [0, 1], [0.5, 0.5]], np.float32)
        for ending in (".txt", ".bin", ".safetensors"):
            write_vectors(tmp_path / f"v{ending}", ["bank", "shore", "coin", "宝玉"], numbers)
        return tmp_path

    @pytest.mark.parametrize("ending", [".txt", ".bin", ".safetensors"])
    def test_nearest_words(self, ending, vectors, capsys):
        run_app("static", "neighbors", "bank", "--vectors", vectors / f"v{ending}", "-k", 2)
        assert capsys.readouterr().out == "0.995  shore\n0.707  宝玉\n"
        run_app("static", "neighbors", "Bank", "--vectors", vectors / f"v{ending}", "--json")
        found = json.loads(capsys.readouterr().out)["neighbors"]
        assert [near["word"] for near in found] == ["shore", "宝玉", "coin"]

    @pytest.mark.parametrize(
        ("arguments", "kind", "message"),
        [
            (["shoer"], DataError, "there is no vector for 'shoer'; near spellings that have one: shore"),
            (["zyx"], DataError, "there is no vector for 'zyx'$"),
            (["Bank", "--no-lower-case"], DataError, "there is no vector for 'Bank'; near .*: bank"),
            (["bank", "-k", "0"], ConfigError, "k is 0"),
        ],
    )
    def test_mistakes(self, arguments, kind, message, vectors):
        with pytest.raises(kind, match=message):
            run_app("static", "neighbors", *arguments, "--vectors", vectors / "v.txt")


class TestSenses:
    def test_words_and_plot(self, options, tmp_path, capsys):
        run("senses", "bank", *options, "--count", 2, "--examples", 1, "--plot", tmp_path / "bank.html")
        output = capsys.readouterr().out
        assert output.startswith("bank: 2 senses in 50 occurrences, silhouette ")
        assert output.count("[bank]") == 2
        assert (tmp_path / "bank.html").stat().st_size > 5000

    @pytest.mark.parametrize("by", ["around", "word"])
    def test_json(self, by, options, capsys):
        run("senses", "bank", *options, "--count", 3, "--json", "--by", by)
        found = json.loads(capsys.readouterr().out)
        assert sum(sense["count"] for sense in found["senses"]) == len(found["labels"]) == 50
        assert {"token", "sentence", "position", "document"} == set(found["occurrences"][0])

    def test_a_wrong_plot_is_refused_at_once(self, options, tmp_path):
        with pytest.raises(ConfigError, match="unknown ending"):
            run("senses", "no-such-word", *options, "--plot", tmp_path / "bank.gif")


class TestShift:
    def test_table_and_json(self, text, model_folder, tmp_path, capsys):
        late = [" ".join(words) for words in around("bank", MONEY, 25, seed=7)]
        (tmp_path / "late.txt").write_text("\n".join(late), encoding="utf-8")
        arguments = ["shift", text, tmp_path / "late.txt", "-m", model_folder, "--min-count", 5, "-k", 3]
        run(*arguments, "--json")
        found = json.loads(capsys.readouterr().out)
        assert len(found) == 3
        assert found[0]["apd"] >= found[1]["apd"] >= found[2]["apd"] > 0
        run(*arguments)
        rows = [line for line in capsys.readouterr().out.splitlines() if line[0].isdigit()]
        assert [row.split()[2] for row in rows] == [change["word"] for change in found]
        run(*arguments, "--words", "bank", "--json")
        assert [change["counts"] for change in json.loads(capsys.readouterr().out)] == [[50, 25]]


class TestPredictions:
    @pytest.fixture
    def model(self, tmp_path):
        folder = tmp_path / "softmax"
        random_predictor("full").save(folder)
        return folder

    def test_substitutes(self, model, capsys):
        run("substitutes", "The [bank] of the river", "-m", model, "-k", 4, "--direction", "forward")
        own, *lines = capsys.readouterr().out.splitlines()
        found = find_substitutes(
            elmokit.load(model), read_brackets("The [bank] of the river", TOKENIZER), k=4, direction="forward"
        )
        assert own.startswith(f"bank, what means the same; the word itself: rank {found.rank} of ")
        assert [line.split("  ")[-1] for line in lines] == [word for word, _ in found.candidates]
        run("substitutes", "The [zebra] of the river", "-m", model)
        assert capsys.readouterr().out.startswith(
            "zebra, what means the same; the word itself: not in the model's vocabulary\n"
        )
        run("substitutes", "The [bank] of the river", "-m", model, "-k", 4, "--json")
        assert len(json.loads(capsys.readouterr().out)["candidates"]) == 4

    def test_surprisal(self, model, capsys):
        run("surprisal", "The bank of zebras", "-m", model)
        lines = capsys.readouterr().out.splitlines()
        assert [line[39:] for line in lines[1:]] == ["(begin)", "The", "bank", "of", "zebras  (as <UNK>)", "(end)"]
        run("surprisal", "The bank of zebras", "-m", model, "--json")
        found = json.loads(capsys.readouterr().out)
        assert [word["known"] for word in found["words"]] == [True, True, True, False]
        assert f"{found['words'][1]['forward']:.2f}" in lines[3]


def _last(lines: str) -> str:
    return lines.splitlines()[-1]


class TestIntake:
    """Every command reads standard input, several files, folders, and packed ones, and all say the same."""

    @pytest.fixture
    def texts(self, text, tmp_path):
        folder = tmp_path / "texts"
        folder.mkdir()
        lines = text.read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / "a.txt.zst").write_bytes(zstandard.compress("".join(lines[:20]).encode()))
        (folder / "b.txt.gz").write_bytes(gzip.compress("".join(lines[20:]).encode()))
        return folder

    @pytest.mark.parametrize(
        ("command", "settings"),
        [
            (["neighbors", "bank"], ["--min-count", "2"]),
            (["neighbors", "the [bank] of it"], ["--any-word"]),
            (["senses", "bank"], ["--count", "2", "--examples", "0"]),
        ],
    )
    def test_corpora(self, command, settings, text, texts, model_folder, capsys, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        found = []
        files = sorted(texts.iterdir())
        for name, paths in {str(text): [text], "2 files": [texts], "2 files ": files, "standard input": ["-"]}.items():
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
            corpora = [part for path in paths for part in ("--corpus", path)]
            monkeypatch.setenv("ELMOKIT_CACHE", f"cache of {name}")
            run(*command, *corpora, "-m", model_folder, *settings)
            output = capsys.readouterr()
            found.append(re.sub(r"  \(\S+\)$", "", output.out, flags=re.MULTILINE))  # documents are named differently
            assert re.fullmatch(rf"{re.escape(name.strip())}: done, 51 sentences, \d+ seconds?", _last(output.err))
        assert found[0]
        assert found == found[:1] * 4

    def test_shift(self, text, texts, model_folder, capsys, monkeypatch):
        found = []
        for first, second in ((text, text), ("-", texts), (texts, "-")):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
            run("shift", first, second, "-m", model_folder, "--words", "bank", "--examples", 0)
            output = capsys.readouterr()
            found.append(output.out)
            assert output.err.splitlines()[-1].startswith(
                {text: f"{text} and {text}: done", "-": "standard input and 2 files: done"}.get(first, "2 files and")
            )
        assert "bank  (50 and 50)" in found[0]
        assert found == found[:1] * 3

    def test_index(self, text, texts, model_folder, tmp_path, capsys, monkeypatch):
        pytest.importorskip("lancedb", reason="needs the extra 'search'")
        for number, paths in enumerate(([texts], sorted(texts.iterdir()), ["-"])):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
            folder = tmp_path / str(number)
            run_app("index", "build", *paths, "-m", model_folder, "-o", folder)
            output = capsys.readouterr()
            assert output.out == f"{folder}: 404 occurrences in 51 sentences\n"
            assert ": done, 51 sentences" in output.err


@pytest.mark.parametrize("command", ["substitutes", "surprisal"])
def test_a_model_that_predicts_nothing(command, model_folder):
    with pytest.raises(CheckpointError, match="no softmax"):
        run(command, "the [bank]" if command == "substitutes" else "the bank", "-m", model_folder)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_heavy_import(command):
    code = (
        f"import sys\nfrom cyclopts import App\nfrom {command.__module__} import {command.__name__}\n"
        f"app = App(name='elmokit', result_action='return_none')\napp.command({command.__name__})\n"
        f"app(['{command.__name__}', '--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'h5py')))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Example: elmokit" in done.stdout
