"""One novel in two copies, wrapped and with one paragraph per line: every command that reads text gives the same."""

import contextlib
import io
import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from conftest import BYTES, HERE, random_checkpoint

from elmokit.bench import make_workload
from elmokit.checkpoints import write_checkpoint
from elmokit.cli import main
from elmokit.text.sentences import split_sentences

SAMPLES = HERE.parent / "samples"
LINES_A_PARAGRAPH = 4
WORDS = {"en": "bank", "zh": "花"}
TOKENIZERS = {"en": "words", "zh": "jieba"}
LAYOUTS = {
    "wrapped": "novel.txt: wrapped lines, blank lines end paragraphs",
    "flat": "novel.txt: each line is a paragraph",
}
LABELLED = '{"text": "a good day", "label": "good"}\n{"text": "a bad day", "label": "bad"}\n'


def paragraphs_of(language: str) -> list[str]:
    """The sample, with paragraphs as long as a novel's."""
    lines = (SAMPLES / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    blank = " " if language == "en" else ""
    groups = [lines[start : start + LINES_A_PARAGRAPH] for start in range(0, len(lines), LINES_A_PARAGRAPH)]
    return [blank.join(group) for group in groups]


def wrapped(paragraph: str, language: str) -> str:
    if language == "en":
        return textwrap.fill(paragraph, 72)
    return "\n".join(paragraph[start : start + 36] for start in range(0, len(paragraph), 36))


class Novel:
    """The two copies of a novel, in folders of their own, and what commands make of either."""

    def __init__(self, language: str, folder: Path) -> None:
        self.language, self.folder, self.model = language, folder, folder / "model"
        write_checkpoint(random_checkpoint(BYTES), self.model)
        paragraphs = paragraphs_of(language)
        for layout in LAYOUTS:
            (folder / layout).mkdir()
            wrap = wrapped if layout == "wrapped" else lambda paragraph, _: paragraph
            for name, part in (("novel.txt", paragraphs), ("late.txt", paragraphs[len(paragraphs) // 2 :])):
                text = "".join(f"{wrap(paragraph, language)}\n\n" for paragraph in part)
                (folder / layout / name).write_text(text, encoding="utf-8")

    def run(self, *arguments: object) -> None:
        """A command, with the tokenizer of the language where it takes one."""
        main([*map(str, arguments), *([] if arguments[0] == "task" else ["--tokenizer", TOKENIZERS[self.language]])])

    def study(self, *arguments: object) -> None:
        """A command that looks at the words of the novel."""
        self.run(*arguments, "--model", self.model, "--json")


@pytest.fixture(scope="module", params=WORDS)
def novel(request, tmp_path_factory) -> Novel:
    return Novel(request.param, tmp_path_factory.mktemp(request.param))


def embed(novel: Novel) -> object:
    novel.run("embed", "novel.txt", "-m", novel.model, "-o", "vectors.h5")
    return Path("vectors.h5").read_bytes()


def pretrain(novel: Novel) -> object:
    """And perplexity: the same text gives the same model, which finds the same text as hard to predict."""
    options = ("--recipe", "tiny", "--workers", "1", "-s", "training.epochs=1", "-s", "training.batch=8")
    novel.run("pretrain", "novel.txt", "--valid", "late.txt", "-o", "run", *options)
    files = [file for file in Path("run/corpus").iterdir() if file.suffix != ".json"]
    assert sum(file.stat().st_size for file in files) > 10_000
    novel.run("perplexity", "run", "late.txt")
    return {file.name: file.read_bytes() for file in files}


def static(novel: Novel) -> object:
    options = ("--dimensions", "4", "--threads", "1", "--workers", "1", "--epochs", "1")
    novel.run("static", "train", "glove", "novel.txt", "-o", "vectors.txt", *options)
    return Path("vectors.txt").read_text(encoding="utf-8")


def neighbors(novel: Novel) -> object:
    novel.study("neighbors", WORDS[novel.language], "--corpus", "novel.txt")
    novel.study("neighbors", f"[{WORDS[novel.language]}]", "--corpus", "novel.txt")
    return None


def senses(novel: Novel) -> object:
    novel.study("senses", WORDS[novel.language], "--corpus", "novel.txt")
    return None


def shift(novel: Novel) -> object:
    novel.study("shift", "novel.txt", "late.txt", "--min-count", "10")
    return None


def index(novel: Novel) -> object:
    pytest.importorskip("lancedb")
    novel.study("index", "build", "novel.txt", "-o", "novel.index")
    main(["index", "search", "novel.index", f"[{WORDS[novel.language]}]", "--model", str(novel.model), "--json"])
    return None


def predict(novel: Novel) -> object:
    task = novel.folder / "task"
    if not task.exists():
        (novel.folder / "labelled.jsonl").write_text(LABELLED, encoding="utf-8")
        data = [option for name in ("--train", "--dev") for option in (name, novel.folder / "labelled.jsonl")]
        settings = ("--epochs", "1", "-s", "hidden=4", "--tokenizer", TOKENIZERS[novel.language])
        with contextlib.redirect_stdout(io.StringIO()):
            novel.run("task", "train", "classify", *data, "--model", novel.model, "-o", task, *settings)
    novel.run("task", "predict", task, "novel.txt", "--lines", "auto")
    return None


COMMANDS: tuple[Callable[[Novel], object], ...] = (
    *(embed, pretrain, static, neighbors, senses, shift, index, predict),
)
"""Each gives what is to be compared besides what it prints."""


@pytest.mark.parametrize("command", COMMANDS)
def test_both_copies_give_the_same(command, novel, capsys, monkeypatch):
    found = {}
    for layout, line in LAYOUTS.items():
        monkeypatch.chdir(novel.folder / layout)
        result = command(novel)
        output = capsys.readouterr()
        assert line.partition(": ")[2] in output.err, "how the text was read is not said"
        found[layout] = (result, output.out)
    assert any(found["flat"])
    assert found["wrapped"] == found["flat"]


def test_the_sentences_are_those_of_the_paragraphs(novel, monkeypatch):
    paragraphs = paragraphs_of(novel.language)
    for layout in LAYOUTS:
        monkeypatch.chdir(novel.folder / layout)
        lines = Path("novel.txt").read_text(encoding="utf-8").splitlines()
        assert (len(lines) > 3 * len(paragraphs)) == (layout == "wrapped")
        embed(novel)
        with h5py.File("vectors.h5") as file:
            sentences = list(json.loads(file["sentence_to_index"][0]))
        expected = [paragraph[start:end] for paragraph in paragraphs for start, end in split_sentences(paragraph)]
        assert sentences == list(dict.fromkeys(expected))


def test_sentences_to_measure_speed_by(novel):
    copies = [make_workload(novel.folder / layout / "novel.txt", 50) for layout in LAYOUTS]
    assert copies[0] == copies[1]
