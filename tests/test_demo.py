"""The demo: its texts, what it shows, and that it leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import hear_interrupts

import elmokit
from elmokit.cli.demo import LESSONS, curve, demo, find_sample
from elmokit.errors import DataError, OutputError
from elmokit.text.tokenizers import get_tokenizer

QUICK = {"training.epochs": "2", "training.batch": "8", "training.unroll": "10", "training.evaluate_steps": "10"}
QUICK |= {"model.hidden": "16", "model.projection": "8", "model.characters.filters": "[[1, 8], [2, 8]]"}
SENSES = {"en": "bank spring play match light bat letter".split(), "zh": "打 东西 意思 包 花".split()}


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """The lessons on a third of their texts, in few steps; the folder where temporary files go."""
    for name, lesson in LESSONS.items():
        lines = find_sample(lesson.sample).read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / lesson.sample).write_text("".join(lines[::3]), encoding="utf-8")
        settings = {**lesson.settings, **QUICK}
        monkeypatch.setitem(LESSONS, name, replace(lesson, sample=str(tmp_path / lesson.sample), settings=settings))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def left_behind(folder) -> list[Path]:
    """What the demo has left there; torch makes a folder of its own for code that it compiles."""
    return [path for path in folder.iterdir() if not path.name.startswith("torchinductor")]


class TestSamples:
    @pytest.mark.parametrize("name", LESSONS)
    def test_lines(self, name):
        lines = find_sample(LESSONS[name].sample).read_bytes().decode("utf-8").splitlines()
        assert len(lines) >= 300
        assert len(set(lines)) == len(lines)
        assert all(line == line.strip() != "" for line in lines)

    @pytest.mark.parametrize("name", LESSONS)
    def test_words_of_many_meanings(self, name):
        text = find_sample(LESSONS[name].sample).read_text(encoding="utf-8")
        for word in SENSES[name]:
            assert len(re.findall(rf"\b{word}\b" if name == "en" else word, text)) >= 50, word

    @pytest.mark.parametrize(("name", "tokenizer"), [("en", "words"), ("zh", "jieba"), ("zh", "characters")])
    def test_sentences_about_meaning_are_new(self, name, tokenizer):
        """The model has not read them, and their word stands alone in each."""
        lesson = LESSONS[name]
        text = find_sample(lesson.sample).read_text(encoding="utf-8")
        for use in lesson.uses:
            assert use not in text
            assert [token.text for token in get_tokenizer(tokenizer)(use)].count(lesson.word) == 1

    def test_missing(self):
        with pytest.raises(DataError, match=r"the sample text fr.txt is missing"):
            find_sample("fr.txt")


class TestDemo:
    @pytest.mark.parametrize("name", LESSONS)
    def test_one_language(self, name, quick, capsys):
        demo(lang=name)
        output, lesson = capsys.readouterr().out, LESSONS[name]
        assert [other.title for other in LESSONS.values() if other.title in output] == [lesson.title]
        for part in ("Perplexity", "Vectors", "Neighbours", "Context", *lesson.uses, "layer 2"):
            assert part in output
        perplexities = [float(found) for found in re.findall(r"steps +([\d,]+\.\d)", output.replace(",", ""))]
        assert len(perplexities) >= 3
        assert perplexities[-1] < perplexities[0] / 2
        assert left_behind(quick) == []

    def test_cosines(self, quick, tmp_path, capsys):
        """They are those of the model that is kept; without its neighbours a word is always the same."""
        demo(lang="en", keep=tmp_path / "kept")
        rows = re.findall(r"A and (\w), \w+ +([\d.-]+) +([\d.-]+) +([\d.-]+)", capsys.readouterr().out)
        elmo, lesson = elmokit.load(tmp_path / "kept" / "en"), LESSONS["en"]
        tokens = elmo.tokenize(lesson.uses)
        vectors = [
            layers[:, sentence.index("bank")]
            for layers, sentence in zip(elmo.embed(tokens, layers="all"), tokens, strict=True)
        ]
        for (letter, *found), other in zip(rows, vectors[1:], strict=True):
            lengths = np.linalg.norm(vectors[0], axis=-1) * np.linalg.norm(other, axis=-1)
            expected = (vectors[0] * other).sum(axis=-1) / lengths
            assert [float(cosine) for cosine in found] == pytest.approx(expected, abs=0.0051), letter
            assert found[0] == "1.00"

    def test_both_languages_are_as_each_alone(self, quick, capsys):
        outputs = []
        for lang in ("en", "zh", "both"):
            demo(lang=lang)
            outputs.append(capsys.readouterr().out)
        assert outputs[2] == outputs[0] + outputs[1]

    def test_without_jieba(self, quick, capsys, monkeypatch):
        settings = {**LESSONS["zh"].settings, "model.tokenizer": "characters"}
        monkeypatch.setitem(LESSONS, "zh", replace(LESSONS["zh"], settings=settings))
        demo(lang="zh")
        assert " | ".join(LESSONS["zh"].uses[0]) in capsys.readouterr().out

    def test_a_folder_that_is_there(self, quick, tmp_path):
        with pytest.raises(OutputError, match="is there already"):
            demo(keep=tmp_path)

    def test_a_folder_that_cannot_be_made(self, quick, capsys):
        """Said before anything is trained."""
        with pytest.raises(OutputError, match="cannot be written here"):
            demo(keep=Path("/proc/kept"))
        assert capsys.readouterr().out == ""
        assert left_behind(quick) == []

    def test_ctrl_c_leaves_nothing(self, tmp_path):
        command = [sys.executable, "-m", "elmokit", "demo", "--keep", str(tmp_path / "kept")]
        settings = {"env": os.environ | {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}, "cwd": tmp_path}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=hear_interrupts, **settings)
        deadline = time.monotonic() + 300
        while not list(tmp_path.glob("*/en/training.pt")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(tmp_path.glob("*/en/training.pt"))
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
