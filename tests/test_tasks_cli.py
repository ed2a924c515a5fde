"""Tasks on the command line: train, evaluate, predict."""

import io
import json
import re
import subprocess
import sys

import pytest
from cyclopts import App
from test_tasks_contract import CLASSES, ENTITIES
from test_tasks_fit import Told, static_vectors

import elmokit.tasks
from elmokit.cli.task import task, train
from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.progress import drawing
from elmokit.static.embedders import StaticVectors
from elmokit.tasks.wsd import SenseCentroids

QUICK = ("--epochs", "40", "--patience", "40", "--learning-rate", "0.02", "--batch", "4", "--input-dropout", "0")


def run(*arguments):
    app = App(result_action="return_none")
    app.command(task)
    app(["task", *map(str, arguments)], exit_on_error=False, print_error=False)


def column_lines(sentences):
    return "\n".join(
        "".join(f"{word}\t{tag}\n" for word, tag in zip(one.tokens, one.tags, strict=True)) for one in sentences
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labelled data of two kinds, static vectors, and a text."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "ner.conll").write_text(column_lines(ENTITIES), encoding="utf-8")
    (folder / "odd.conll").write_text("Mary\tB-PER\n\non\tO\nMars\tB-PLANET\n", encoding="utf-8")
    (folder / "films.tsv").write_text("".join(f"{one.label}\t{one.text}\n" for one in CLASSES), encoding="utf-8")
    static_vectors().save(folder / "vectors.txt")
    (folder / "letter.txt").write_text("Anna Karenina left Moscow\nHe went to\nNew York. Jane met Anna.\n")
    return folder


@pytest.fixture(scope="module")
def trained(files, model_folder, tmp_path_factory):
    """The folder of a tagger."""
    folder = tmp_path_factory.mktemp("trained") / "ner"
    vectors = ("--model", model_folder, "--static", files / "vectors.txt")
    data = ("--train", files / "ner.conll", "--dev", files / "ner.conll")
    run("train", "tagging", *data, *vectors, "-o", folder, "-s", "hidden=16", "-s", "dropout=0.0", *QUICK)
    return folder


def test_train_says_how_it_goes(files, model_folder, tmp_path, capsys):
    data = ("--train", files / "films.tsv", "--dev", files / "films.tsv", "-m", model_folder)
    run("train", "classify", *data, "-o", tmp_path / "films", "--epochs", "2", "--sample", "50%", "-s", "hidden=8")
    told = capsys.readouterr()
    assert "4 examples to learn from, 8 to measure on" in told.err
    assert "layers are computed once and kept in" in told.err
    assert "epoch 2: loss" in told.err
    assert "macro_f1" in told.err
    assert told.out.startswith(str(tmp_path / "films"))
    assert json.loads((tmp_path / "films" / "report.json").read_text())["train_examples"] == 4


def test_who_interrupts_is_told_how_to_go_on(tmp_path, capsys, monkeypatch):
    """If there is something to go on with: not while data is read, nor from senses, which have no epochs."""

    def interrupt(*_, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(elmokit.tasks, "train", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train("tagging", train=tmp_path, dev=tmp_path, output=tmp_path)
    assert "--resume" not in capsys.readouterr().err
    (tmp_path / "task.json").touch()
    with pytest.raises(KeyboardInterrupt):
        train("tagging", train=tmp_path, dev=tmp_path, output=tmp_path)
    assert "--resume goes on from there" in capsys.readouterr().err


def test_evaluate(trained, files, capsys):
    run("evaluate", trained, files / "ner.conll")
    lines = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert list(lines) == ["f1", "precision", "recall", "accuracy"]
    run("evaluate", trained, files / "ner.conll", "--json")
    scores = json.loads(capsys.readouterr().out)
    assert {name: f"{score:.4f}" for name, score in scores.items()} == lines
    assert scores["f1"] > 0.9


def test_predict_a_file(trained, files, capsys):
    run("predict", trained, files / "letter.txt")
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["tokens"] for answer in answers][1] == ["He", "went", "to"]
    assert answers[0] == {
        "tokens": ["Anna", "Karenina", "left", "Moscow"],
        "tags": ["B-PER", "I-PER", "O", "B-LOC"],
    }
    for options, last in ((("--lines", "wrapped"), [".", "."]), (("--split",), ["Moscow", "to", ".", "."])):
        run("predict", trained, files / "letter.txt", *options)
        sentences = [json.loads(line)["tokens"] for line in capsys.readouterr().out.splitlines()]
        assert [sentence[-1] for sentence in sentences] == last  # so few lines are not taken for wrapped ones


def test_predict_standard_input(trained, capsys, monkeypatch):
    """What comes out can go in again."""
    lines = b'{"tokens": ["London", "is", "large"]}\n\n' + "贾宝玉 来 了\n".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    run("predict", trained)
    first = capsys.readouterr().out
    assert [len(json.loads(line)["tags"]) for line in first.splitlines()] == [3, 0, 3]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(first.encode())))
    run("predict", trained, "-")
    assert capsys.readouterr().out == first


def test_an_answer_comes_before_the_next_question(trained):
    command = [sys.executable, "-m", "elmokit", "task", "predict", str(trained)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:
        asked.stdin.write("London\n")
        asked.stdin.flush()
        assert json.loads(asked.stdout.readline())["tokens"] == ["London"]


@pytest.mark.parametrize("folder", ["trained", "learned"])
def test_a_line_that_cannot_be_answered_is_named(folder, request, tmp_path, monkeypatch):
    folder = request.getfixturevalue(folder)
    lines = '{"tokens": ["a"], "instances": []}\n{"tokens": 7}\n'
    (tmp_path / "in.jsonl").write_text(lines)
    with pytest.raises(DataError, match=r"in.jsonl: line 2: expected "):
        run("predict", folder, tmp_path / "in.jsonl")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    with pytest.raises(DataError, match=r"^standard input: line 2: expected "):
        run("predict", folder)
    (tmp_path / "in.txt").write_text('One. {"tokens": 7}\n\nTwo. Three.\n')
    with pytest.raises(DataError, match=r"in.txt: sentence [12]: expected "):
        run("predict", folder, tmp_path / "in.txt", "--split")


def test_json_that_goes_too_deep(trained, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"a":' * 50_000 + "\n")
    with pytest.raises(DataError, match="in.jsonl: line 1 begins like a JSON object and is none"):
        run("predict", trained, tmp_path / "in.jsonl")


def test_answers_fit_the_terminal(trained, tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("café 你好\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    run("predict", trained, tmp_path / "in.txt")
    assert json.loads(sys.stdout.buffer.getvalue())["tokens"][0] == "café"


def test_vectors_that_moved(trained, files, model_folder, tmp_path, capsys):
    moved = tmp_path / "moved.txt"
    StaticVectors.load(files / "vectors.txt").save(moved)
    run("evaluate", trained, files / "ner.conll")
    expected = capsys.readouterr().out
    run("evaluate", trained, files / "ner.conll", "--static", moved, "-m", model_folder)
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["-s", "hidden"], ConfigError, "name=value"),
        (["-s", "hiden=3"], ConfigError, "unknown setting 'hiden': this task has .*hidden"),
        (["-s", "hidden=many"], ConfigError, "hidden"),
        (["-s", "hidden=0"], ConfigError, "hidden is 0: it goes from 1 to 4096"),
        (["-s", "hidden=1000000000000"], ConfigError, "hidden is 1000000000000: it goes from 1"),
        (["--mix-penalty", "inf"], ConfigError, "mix_penalty is inf"),
        (["--anneal", "2"], ConfigError, "anneal is 2.0: it is at most 1"),
        (["--seed", str(1 << 64)], ConfigError, "seed is 18446744073709551616: it goes from 0"),
        (["--sample", "some"], ConfigError, "--sample some: write it as 0.01 or 1%"),
        (["--sample", "200%"], ConfigError, "sample is 2.0"),
        (["--epochs", "0"], ConfigError, "epochs is 0"),
        (["--sample", "0"], ConfigError, "sample is 0"),
        (["--dev", "missing.conll"], DataError, "missing.conll"),
        (["--dev", "odd.conll"], DataError, "odd.conll, line 4: the label 'B-PLANET' does not occur"),
        (["--model", "missing"], CheckpointError, "missing"),
    ],
)
def test_mistakes(arguments, kind, message, files, model_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(files)
    given = {"--train": "ner.conll", "--dev": "ner.conll", "--model": model_folder, "-o": tmp_path / "task"}
    given |= dict([arguments])
    with pytest.raises(kind, match=message):
        run("train", "tagging", *(part for pair in given.items() for part in pair))
    assert not (tmp_path / "task").exists()


@pytest.mark.parametrize(("given", "expected"), [((), 1), (("--batch", "32"), 32), (("--anneal", "0.7"), 1)])
def test_what_is_not_given_is_as_the_task_has_it(given, expected, files, tmp_path):
    """Coreference takes a document a step; 32 that is given is taken, though it is the general default."""
    story = (("Emma", "(1)"), ("came", "-"), ("She", "(1)"), ("sat", "-"))
    rows = "".join(f"a 0 {number} {word}{' -' * 8} {mark}\n" for number, (word, mark) in enumerate(story))
    (tmp_path / "story.conll").write_text(f"#begin document (a); part 000\n{rows}\n#end document\n")
    data = ("--train", tmp_path / "story.conll", "--dev", tmp_path / "story.conll", "--static", files / "vectors.txt")
    run("train", "coref", *data, "-o", tmp_path / "task", "-s", "hidden=4", "--epochs", "1", *given)
    assert json.loads((tmp_path / "task" / "report.json").read_text())["training"]["batch"] == expected


def test_help_shows_the_general_defaults(capsys):
    run("train", "--help")
    assert re.search(r"--batch INT.*?\[default: 32\]", capsys.readouterr().out, re.DOTALL)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--mix", "learned"), "probe sees each layer as it is: mix is not for it"),
        (("--trainable", "top", "--input-dropout", "0.1"), "input_dropout and trainable are not for it"),
    ],
)
def test_a_probe_takes_no_settings_of_its_inputs(given, message, files, model_folder, tmp_path):
    data = ("--train", files / "ner.conll", "--dev", files / "ner.conll", "-m", model_folder)
    with pytest.raises(ConfigError, match=message):
        run("train", "probe", *data, "-o", tmp_path / "task", *given)
    assert not (tmp_path / "task").exists()


def test_texts_without_a_word(model_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(drawing, "SECONDS_BETWEEN_LINES", 0.0)
    (tmp_path / "empty.jsonl").write_text('{"text": "", "label": "no"}\n{"text": "", "label": "yes"}\n')
    data = ("--train", tmp_path / "empty.jsonl", "--dev", tmp_path / "empty.jsonl", "-m", model_folder)
    run("train", "classify", *data, "-o", tmp_path / "task", "--epochs", "2", "-s", "hidden=4")
    assert "computing layers, 0 tokens" in capsys.readouterr().err


def test_without_vectors_the_bundled_model_is_taken(files, tmp_path, caplog):
    data = ["--train", files / "ner.conll", "--dev", files / "ner.conll", "--epochs", "1"]
    with caplog.at_level("INFO", logger="elmokit"):
        run("train", "tagging", *data, "-o", tmp_path / "task")
    assert "model en, unless --model names another" in caplog.text
    assert [one["name"] for one in json.loads((tmp_path / "task" / "task.json").read_text())["embedders"]] == ["en"]


def test_a_broken_object(trained, tmp_path):
    (tmp_path / "lines.jsonl").write_text('{"tokens": ["a"]}\n{"tokens": [\n')
    with pytest.raises(DataError, match=r"lines.jsonl: line 2 begins like a JSON object and is none"):
        run("predict", trained, tmp_path / "lines.jsonl")


KEYS = ("bank%1:17:01::", "bank%1:14:00::")  # of a river, of money
USES = ("they sat on the bank of the river", "the bank lent her the money", "mud covers the bank", "my bank is closed")


def plain_word(word):
    return f'<wf lemma="{word}" pos="X">{word}</wf>'


@pytest.fixture(scope="module")
def senses(tmp_path_factory):
    """Sentences with the senses of a word in them, and the list of its senses."""
    folder, sentences = tmp_path_factory.mktemp("senses"), ""
    for number, use in enumerate(USES):
        words = "".join(map(plain_word, use.split()))
        bank = f'<instance id="s{number}" lemma="bank" pos="NOUN">bank</instance>'
        sentences += f'<sentence id="{number}">{words.replace(plain_word("bank"), bank)}</sentence>'
    corpus = f'<corpus lang="en" source="tests"><text id="t">{sentences}</text></corpus>'
    (folder / "a.data.xml").write_text(corpus, encoding="utf-8")
    keys = "".join(f"s{number} {KEYS[number % 2]}\n" for number in range(len(USES)))
    (folder / "a.gold.key.txt").write_text(keys, encoding="utf-8")
    (folder / "senses.tsv").write_text(f"bank\tNOUN\t{' '.join(KEYS)}\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def learned(senses, model_folder, tmp_path_factory):
    """The folder of senses."""
    data, folder = senses / "a.data.xml", tmp_path_factory.mktemp("learned") / "wsd"
    options = ("--model", model_folder, "-s", f"senses={senses / 'senses.tsv'}", "-s", "layer=1")
    run("train", "wsd", "--train", data, "--dev", data, *options, "-o", folder)
    return folder


class TestSenses:
    def test_from_learning_to_answers(self, senses, model_folder, tmp_path, capsys):
        data, folder = senses / "a.data.xml", tmp_path / "wsd"
        options = ("--model", model_folder, "-s", f"senses={senses / 'senses.tsv'}", "-s", "layer=1")
        run("train", "wsd", "--train", data, "--dev", data, *options, "-o", folder)
        told = capsys.readouterr()
        assert "dev f1 " in told.err
        assert told.out == f"{folder}: trained\n"
        run("evaluate", folder, data, "--json")
        assert set(json.loads(capsys.readouterr().out)) == {"f1", "f1 NOUN"}
        question = {"tokens": ["the", "bank"], "instances": [{"lemma": "bank", "pos": "NOUN", "start": 1, "end": 2}]}
        (tmp_path / "in.jsonl").write_text(json.dumps(question) + "\n", encoding="utf-8")
        run("predict", folder, tmp_path / "in.jsonl")
        [answer] = json.loads(capsys.readouterr().out)["instances"]
        assert set(answer["keys"]) < set(KEYS)
        assert isinstance(elmokit.tasks.load(folder).model, SenseCentroids)

    def test_in_python(self, senses, model_folder, tmp_path):
        told, data = Told(), {"train": senses / "a.data.xml", "dev": senses / "a.data.xml"}
        options = {"embedders": [model_folder], "settings": {"senses": senses / "senses.tsv", "layer": 1}}
        learned = elmokit.tasks.train("wsd", **data, **options, folder=tmp_path / "wsd", progress=told)
        assert isinstance(learned.model, SenseCentroids)
        assert set(learned.config.keys) == set(KEYS)
        assert "f1 NOUN" in told.messages[-1]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ((), "wsd needs the senses that each lemma has"),
            (("-s", "senses=SENSES", "-s", "hidden=3"), "unknown setting 'hidden'"),
            (("-s", "senses=SENSES", "--static", "VECTORS"), "wsd takes one embedder"),
            (("-s", "senses=SENSES", "--sample", "1%"), "wsd learns in one reading: sample is not for it"),
            (("-s", "senses=SENSES", "--epochs", "3"), "wsd learns in one reading: epochs is not for it"),
            (("-s", "senses=SENSES", "--mix", "last", "--resume"), "resume and mix are not for it"),
        ],
    )
    def test_mistakes(self, options, message, senses, files, model_folder, tmp_path):
        places = {"SENSES": str(senses / "senses.tsv"), "VECTORS": str(files / "vectors.txt")}
        for name, place in places.items():
            options = [option.replace(name, place) for option in options]
        data = senses / "a.data.xml"
        with pytest.raises(ConfigError, match=message):
            run("train", "wsd", "--train", data, "--dev", data, "-m", model_folder, *options, "-o", tmp_path / "wsd")
        assert not (tmp_path / "wsd").exists()

    def test_a_folder_in_use_is_refused_before_anything_is_read(self, senses, model_folder, tmp_path):
        (tmp_path / "thesis.tex").touch()
        missing, options = senses / "missing.data.xml", ("-s", f"senses={senses / 'senses.tsv'}", "-m", model_folder)
        with pytest.raises(OutputError, match="is not an empty folder"):
            run("train", "wsd", "--train", missing, "--dev", missing, *options, "-o", tmp_path)

    def test_broken_dev_data_is_told_before_hours_of_learning(self, senses, model_folder, tmp_path):
        train, dev = tmp_path / "train.data.xml", tmp_path / "dev.data.xml"
        options = ("-s", f"senses={senses / 'senses.tsv'}", "-m", model_folder)
        with pytest.raises(DataError, match="dev.gold.key.txt"):
            run("train", "wsd", "--train", train, "--dev", dev, *options, "-o", tmp_path / "wsd")


def test_half_a_character_comes_out_as_it_came_in(trained, tmp_path, capsys):
    """JSON may hold a lone surrogate; UTF-8 may not."""
    (tmp_path / "in.jsonl").write_text('{"tokens": ["\\ud800", "好"]}\n', encoding="utf-8")
    run("predict", trained, tmp_path / "in.jsonl")
    printed = capsys.readouterr().out
    assert json.loads(printed.encode())["tokens"] == ["\ud800", "好"]


def test_columns_by_their_numbers(files, tmp_path, capsys):
    (tmp_path / "films.tsv").write_text("".join(f"{one.text}\t{one.label}\n" for one in CLASSES), encoding="utf-8")
    data = ("--train", tmp_path / "films.tsv", "--dev", tmp_path / "films.tsv", "--static", files / "vectors.txt")
    options = ("-s", "label=1", "-s", "text=0", "-s", "hidden=4", "--epochs", "1")
    run("train", "classify", *data, "-o", tmp_path / "films", *options)
    assert elmokit.tasks.load(tmp_path / "films").config.labels == ("bad", "good", "neither")


@pytest.mark.parametrize("options", [(), ("--mix-weights", "0.5", "--mix-weights", "1.5")])
def test_static_vectors_plus_layers(options, files, model_folder, tmp_path):
    """E(x) + Σ s·h: trained, found again, and its weights reported."""
    vectors = ("--model", model_folder, "--static", files / "vectors.txt", "--mix", "static", *options)
    data = ("--train", files / "ner.conll", "--dev", files / "ner.conll")
    run("train", "tagging", *data, *vectors, "-o", tmp_path / "ner", "-s", "hidden=4", "--epochs", "2")
    (mix,) = json.loads((tmp_path / "ner" / "report.json").read_text())["epochs"][0]["mixes"]
    assert mix["embedder"] == 1
    assert mix["weights"] == ([1, 0.5, 1.5] if options else pytest.approx([1, 0.5, 0.5], abs=0.1))
    run("evaluate", tmp_path / "ner", files / "ner.conll")
