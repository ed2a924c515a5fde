"""The demo: its texts, what it shows, its page, and that it leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from conftest import hear_interrupts

import elmokit
from elmokit.cli.demo import TRAINING, compare, curve, demo, find_sample, read_lessons
from elmokit.errors import DataError, OutputError
from elmokit.text.brackets import read_brackets

QUICK = {"training.epochs": "2", "training.batch": "8", "training.unroll": "10", "training.evaluate_steps": "10"}
QUICK |= {"model.hidden": "16", "model.projection": "8", "model.characters.filters": "[[1, 8], [2, 8]]"}
SENSES = {"en": "bank spring play match light bat letter".split(), "zh": "打 东西 意思 包 花".split()}
LESSONS = read_lessons()


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Few steps of training; the folder where temporary files go, which is not the one for pages."""
    for name, value in QUICK.items():
        monkeypatch.setitem(TRAINING, name, value)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "temporary"


def left_behind(folder) -> list[Path]:
    """What the demo has left there; torch makes a folder of its own for code that it compiles."""
    return [path for path in folder.iterdir() if not path.name.startswith("torchinductor")]


class TestSamples:
    @pytest.mark.parametrize("name", SENSES)
    def test_lines(self, name):
        lines = find_sample(f"{name}.txt").read_bytes().decode("utf-8").splitlines()
        assert len(lines) >= 300
        assert len(set(lines)) == len(lines)
        assert all(line == line.strip() != "" for line in lines)

    @pytest.mark.parametrize("name", SENSES)
    def test_words_of_many_meanings(self, name):
        text = find_sample(f"{name}.txt").read_text(encoding="utf-8")
        for word in SENSES[name]:
            assert len(re.findall(rf"\b{word}\b" if name == "en" else word, text)) >= 50, word

    @pytest.mark.parametrize("name", LESSONS)
    def test_two_senses_of_as_many_sentences(self, name):
        tokenizer = elmokit.load(name).tokenizer
        for word, senses in LESSONS[name]["words"].items():
            assert [len(sense) for sense in senses] == [4, 4]
            assert {read_brackets(sentence, tokenizer).word for sense in senses for sentence in sense} == {word}

    def test_missing(self):
        with pytest.raises(DataError, match=r"the sample text fr.txt is missing"):
            find_sample("fr.txt")


class TestDemo:
    @pytest.mark.parametrize("name", LESSONS)
    def test_one_language(self, name, quick, capsys):
        demo(lang=name)
        output, lesson = capsys.readouterr().out, LESSONS[name]
        assert [other["title"] for other in LESSONS.values() if other["title"] in output] == [lesson["title"]]
        for word, senses in lesson["words"].items():
            assert f"\n{word}\n" in output
            assert all(sense[0].replace("[", "").replace("]", "") in output for sense in senses)
        assert output.count("____") == len(lesson["guesses"])
        assert left_behind(quick) == []

    def test_cosines(self, quick, capsys):
        """Of all pairs of sentences, one by one; without its neighbours a word is always the same."""
        demo(lang="en")
        rows = re.findall(r"(?:same sense|different senses) +([\d.-]+) +([\d.-]+) +([\d.-]+)", capsys.readouterr().out)
        elmo = elmokit.load("en")
        expected = []
        for senses in LESSONS["en"]["words"].values():
            kinds = {True: [], False: []}
            uses = [(number, use) for number, sense in enumerate(senses) for use in sense]
            vectors = []
            for _number, use in uses:
                query = read_brackets(use, elmo.tokenizer)
                vectors.append(elmo.embed([query.context.words], layers="all")[0][:, query.position].astype(float))
            for first in range(len(uses)):
                for second in range(first):
                    lengths = np.linalg.norm(vectors[first], axis=-1) * np.linalg.norm(vectors[second], axis=-1)
                    cosine = (vectors[first] * vectors[second]).sum(axis=-1) / lengths
                    kinds[uses[first][0] == uses[second][0]].append(cosine)
            expected += [np.mean(kinds[True], axis=0), np.mean(kinds[False], axis=0)]
        assert len(rows) == len(expected) == 6
        for found, cosines in zip(rows, expected, strict=True):
            assert [float(cosine) for cosine in found] == pytest.approx(cosines, abs=0.0051)
            assert found[0] == "1.00"

    @pytest.mark.parametrize("name", LESSONS)
    def test_context_tells_meanings_apart(self, name):
        """In the top layer, for every word of the demo."""
        elmo = elmokit.load(name)
        for senses in LESSONS[name]["words"].values():
            same, other = compare(senses, elmo).cosines
            assert same[-1] > other[-1]

    def test_perplexity_falls(self, quick, capsys):
        demo(lang="zh")
        output = capsys.readouterr().out.replace(",", "")
        perplexities = [float(found) for found in re.findall(r"steps +(\d+\.\d)", output)]
        assert len(perplexities) >= 3
        assert perplexities[-1] < perplexities[0] / 2

    def test_page(self, quick, tmp_path, capsys):
        demo(page=tmp_path / "page.html")
        assert "page.html: all this with plots" in capsys.readouterr().out
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        plots = [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
        words = sum(len(lesson["words"]) for lesson in LESSONS.values())
        assert len(plots) == 2 * words + 1
        dots = [title.text for plot in plots for title in plot.iter("title")]
        assert len(dots) == len(set(dots)) == 8 * words
        assert all(dot in re.sub("</?b>", "", page) for dot in dots)
        assert "http" not in page.replace("http-equiv", "")

    def test_a_page_that_cannot_be_written(self, quick, capsys):
        """Said before anything is shown."""
        with pytest.raises(OutputError, match="cannot be written"):
            demo(page=Path("/proc/demo.html"))
        with pytest.raises(OutputError, match="is a folder"):
            demo(page=Path())
        assert capsys.readouterr().out == ""

    def test_ctrl_c_leaves_nothing(self, tmp_path):
        command = [sys.executable, "-m", "elmokit", "demo"]
        settings = {"env": os.environ | {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}, "cwd": tmp_path}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=hear_interrupts, **settings)
        deadline = time.monotonic() + 300
        while not list(tmp_path.glob("*/model/training.pt")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(tmp_path.glob("*/model/training.pt"))
        time.sleep(2)  # past imports, some of which swallow an interrupt
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=300)
        assert process.returncode == 130
        assert error.endswith(b"elmokit: interrupted; nothing half-written is left\n")
        assert left_behind(tmp_path) == []


def test_bars_follow_the_numbers():
    lines = list(curve({0: 1000.0, 100: 250.0, 150: 2.0}))
    assert [line.count("█") for line in lines] == [40, 10, 1]
    assert "1,000.0" in lines[0]
    assert lines[2].startswith("after   150 steps")
