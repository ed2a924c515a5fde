"""Training runs: they learn, go on where they stopped, and say what is wrong."""

import io
import json
import lzma
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

import elmokit
from elmokit.checkpoints import read_checkpoint
from elmokit.cli import main
from elmokit.errors import CheckpointError, ConfigError, DataError, ElmoError, OutputError
from elmokit.pretrain.corpus import read_corpus
from elmokit.pretrain.evaluation import perplexity, sentences_of
from elmokit.pretrain.recipe import TrainSettings, make_recipe, read_recipe, set_value
from elmokit.pretrain.run import pretrain
from elmokit.pretrain.trainer import Trainer, new_model

SUBJECTS = ["the cat", "the dog", "a small bird", "my sister", "the old king", "小猫"]
VERBS = ["sees", "likes", "follows", "remembers"]
OBJECTS = ["the river", "a green tree", "the house", "her friend", "the moon", "月亮"]


class Watcher:
    """Keeps what it is told."""

    def __init__(self):
        self.messages, self.steps = [], []

    def message(self, text, /):
        self.messages.append(text)

    def update(self, stage, done, total=None, /, *, unit="", note=""):
        if stage == "training":
            assert done <= total
            assert re.fullmatch(r"loss \S+, [\d,]+ tokens/s", note)
            self.steps.append(done)


class StopsAfter(Watcher):
    """A user who loses patience after so many steps."""

    def __init__(self, steps):
        super().__init__()
        self.patience = steps

    def update(self, stage, *progress, **notes):
        super().update(stage, *progress, **notes)
        if len(self.steps) == self.patience:
            raise KeyboardInterrupt


@pytest.fixture
def losses(monkeypatch):
    """The loss of every step that is made, to the bit."""
    found, advance = [], Trainer.advance

    def recorded(self):
        result = advance(self)
        found.append(result.loss)
        return result

    monkeypatch.setattr(Trainer, "advance", recorded)
    return found


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A little language: whoever sees, sees something; 1,200 sentences."""
    choose = random.Random(0).choice
    lines = [f"{choose(SUBJECTS)} {choose(VERBS)} {choose(OBJECTS)} ." for _ in range(1200)]
    path = tmp_path_factory.mktemp("text") / "little.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def recipe(**settings):
    values = read_recipe("tiny")
    quick = {"training.epochs": 0.3, "training.batch": 8, "training.evaluate_steps": 10, "model.hidden": 16}
    quick |= {"model.projection": 8, "model.characters.filters": [[1, 4], [2, 8]], "training.save_minutes": 60}
    for name, value in (quick | {name.replace("__", "."): value for name, value in settings.items()}).items():
        set_value(values, name, json.dumps(value))
    return make_recipe(values)


KINDS = {
    "full": {},
    "sampled": {"model__softmax__kind": "sampled", "model__softmax__samples": 12},
    "adaptive": {"model__softmax__kind": "adaptive", "model__softmax__cutoffs": [8, 16]},
    "gru": {"model__cell": "gru"},
    "unicode": {"model__characters__alphabet": "unicode"},
    "words_and_characters": {"model__words__dim": 6},
    "frequent_words_and_characters": {"model__words__dim": 6, "model__words__frequent": 9},
    "never_reset": {"training__reset": "never"},
    "adagrad": {"training__optimizer": "adagrad", "training__learning_rate": 0.2, "training__gradient_scale": 10.0},
    "adamw": {"training__optimizer": "adamw", "training__accumulate": 2},
    "muon": {"training__optimizer": "muon"},
    "muon_gru": {"training__optimizer": "muon", "model__cell": "gru"},
}


SIXTEEN_BITS = {"training__autocast": "bf16"}
NEEDS_SIXTEEN_BITS = pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this processor is not made for 16 bits"
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_learns(kind, text, tmp_path):
    """Better than knowing how often each word occurs, after a few hundred sentences."""
    watcher = Watcher()
    result = pretrain([text], tmp_path / "run", recipe(training__epochs=2.0, **KINDS[kind]), progress=watcher)
    assert watcher.messages[-1].endswith(f"backward, {result.average:,.1f} average")
    assert result.average < 14 if kind != "never_reset" else result.average < 40
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["perplexity"]["average"] == pytest.approx(result.average)
    elmo = elmokit.load(tmp_path / "run")
    assert elmo.embed(["the cat sees the moon ."])[0].shape == (6, 16)
    corpus = read_corpus(tmp_path / "run" / "corpus", min_count=1)
    again = perplexity(elmo, sentences_of(corpus.valid.ids, corpus.words))
    assert again.average == pytest.approx(result.average, rel=1e-5)


def test_what_the_model_knows_of_itself(text, tmp_path, capsys):
    found = pretrain([text], tmp_path / "run", recipe(about__licence="CC0", about__text="a little language"))
    elmo = elmokit.load(tmp_path / "run")
    assert elmo.prior.exp().sum() == pytest.approx(1, abs=1e-3)
    elmo.save(tmp_path / "copy", half=True)
    copy = elmokit.load(tmp_path / "copy")
    assert torch.allclose(copy.prior, elmo.prior, atol=0.02)
    main(["info", str(tmp_path / "copy")])
    facts = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    told = {name.strip(): value.strip() for name, value in facts.items()}
    assert (told["licence"], told["text"]) == ("CC0", "a little language")
    assert told["perplexity"].startswith(f"{found.average:,.1f} on {found.targets:,} held-out words")
    assert int(told["tokens read"].replace(",", "")) > 0


def test_the_card_of_a_run(text, tmp_path):
    """What it read, how it learnt and how good it is, for people and for the Hub; complete when the run is."""
    about = {"about__licence": "weights: CC-BY-4.0; text: ours", "about__datasets": "owner/little"}
    settings = recipe(corpus__language="en", **about)
    with pytest.raises(KeyboardInterrupt):
        pretrain([text], tmp_path / "little-run", settings, progress=StopsAfter(2))
    card = tmp_path / "little-run" / "README.md"
    assert "| files | little.txt |" in card.read_text(encoding="utf-8")
    assert "perplexity" not in card.read_text(encoding="utf-8")
    found = pretrain([text], tmp_path / "little-run", settings, resume=True)
    lines = card.read_text(encoding="utf-8").splitlines()
    assert {"# little-run", "| files | little.txt |"} < set(lines)
    [training] = [line for line in lines if line.startswith("| training |")]
    assert training.startswith(f"| training | 0.3 epochs, batches of 8 × {settings.training.unroll}; adam, rate ")
    data = pytest.importorskip("huggingface_hub").ModelCard.load(card).data
    assert (data.license, data.language, data.datasets) == ("cc-by-4.0", ["en"], ["owner/little"])
    assert data.model_name == "little-run"
    assert data.eval_results[0].metric_value == pytest.approx(found.average, abs=0.05)
    pretrain([text], tmp_path / "further", settings, start=read_checkpoint(tmp_path / "little-run"))
    assert elmokit.load(tmp_path / "further").about["trained further from"] == "little-run"


@pytest.mark.parametrize(
    "settings",
    [
        KINDS["sampled"] | KINDS["never_reset"],
        KINDS["adaptive"] | KINDS["frequent_words_and_characters"] | KINDS["muon"],
        pytest.param(KINDS["adaptive"] | KINDS["words_and_characters"] | SIXTEEN_BITS, marks=NEEDS_SIXTEEN_BITS),
    ],
    ids=["sampled", "frequent words, Muon", "16 bits"],
)
def test_stopped_and_resumed_is_the_same_to_the_bit(settings, text, tmp_path, losses):
    settings = recipe(**settings)
    pretrain([text], tmp_path / "whole", settings)
    whole = losses.copy()
    losses.clear()
    watcher = StopsAfter(7)
    with pytest.raises(KeyboardInterrupt):
        pretrain([text], tmp_path / "parts", settings, progress=watcher)
    assert watcher.messages[-1] == "saved at step 7; the same command with --resume goes on"
    assert _step(tmp_path / "parts") == 7
    pretrain([text], tmp_path / "parts", settings, resume=True)
    assert losses == whole
    one, other = (elmokit.load(tmp_path / name).checkpoint().weights for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_resumed_run_may_end_later_or_sooner(text, tmp_path, losses):
    """While the rate is constant, a run made longer is to the bit the run that was so long from the start."""
    short, long = (recipe(training__epochs=epochs, training__decay="trapezoid") for epochs in (0.3, 0.5))
    pretrain([text], tmp_path / "long", long)
    whole = losses.copy()
    losses.clear()
    with pytest.raises(KeyboardInterrupt):
        pretrain([text], tmp_path / "run", short, progress=StopsAfter(7))
    pretrain([text], tmp_path / "run", long, resume=True)
    assert losses == whole
    assert json.loads((tmp_path / "run" / "recipe.json").read_text())["training"]["epochs"] == 0.5
    for epochs, fewest in ((0.1, len(whole)), (0.55, len(whole) + 1)):  # the end is past already; there is more to do
        result = pretrain(
            [text], tmp_path / "run", recipe(training__epochs=epochs, training__decay="trapezoid"), resume=True
        )
        assert result.average < 100
        assert _step(tmp_path / "run") == len(losses) >= fewest


@pytest.mark.parametrize(
    ("decay", "rates"),
    [
        ("none", [0.1, 1, 1, 1, 1]),
        ("linear", [0.1, 0.5, 0.2, 0.1, 0]),
        ("cosine", [0.1, 0.5, 0.095, 0.024, 0]),
        ("trapezoid", [0.1, 1, 0.8, 0.4, 0]),
    ],
)
def test_the_rate_rises_and_falls(decay, rates, text, finished):
    """At the first step, and after 50, 80, 90 and all of 100; trapezoid falls in the last quarter."""
    settings = recipe(training__decay=decay, training__decay_share=0.25, training__warmup=10, training__learning_rate=1)
    corpus = read_corpus(finished / "corpus", min_count=1)
    trainer = Trainer(new_model(settings, corpus, None), settings, corpus)
    trainer.total_steps, found = 100, []
    for trainer.step in (0, 50, 80, 90, 100):
        found.append(trainer.learning_rate())
    assert found == pytest.approx(rates, abs=0.001)


def test_killed_and_resumed(text, tmp_path):
    """kill -9 loses the steps since the last checkpoint and nothing else."""
    arguments = ["pretrain", text, "-o", tmp_path / "run", "--recipe", "tiny", "-s", "training.save_minutes=0.0001"]
    command = [sys.executable, "-m", "elmokit", *map(str, arguments), "-s", "training.epochs=200"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and _step(tmp_path / "run") < 5:
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    step = _step(tmp_path / "run")
    assert step >= 5
    elmokit.load(tmp_path / "run").embed([["the", "cat"]])
    values = read_recipe("tiny")
    values["training"].update(epochs=200, save_minutes=0.0001)
    with pytest.raises(KeyboardInterrupt):
        pretrain([text], tmp_path / "run", values, progress=StopsAfter(2), resume=True)
    assert _step(tmp_path / "run") == step + 2


def _step(folder) -> int:
    path = folder / "training.pt"
    return torch.load(path, weights_only=True)["step"] if path.exists() else 0


def test_two_processes_do_what_one_does(text, tmp_path):
    """Half the batch each: the same losses over fifty steps."""
    code = (
        "import sys, json, pathlib\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import torch; torch.set_num_threads(1)\n"
        "from test_pretrain_run import recipe\n"
        "from elmokit.pretrain import pretrain\n"
        "from elmokit.pretrain.trainer import Trainer\n"
        "losses, advance = [], Trainer.advance\n"
        "def recorded(self):\n"
        "    result = advance(self)\n"
        "    losses.append(result.loss)\n"
        "    return result\n"
        "if __name__ == '__main__':\n"
        "    Trainer.advance = recorded\n"
        "    settings = recipe(training__dropout=0.0, training__epochs=0.6, training__evaluate_steps=1000)\n"
        "    if pretrain([sys.argv[2]], sys.argv[3], settings, workers=1):  # of two processes the first measures\n"
        "        pathlib.Path(sys.argv[4]).write_text(json.dumps(losses))\n"
    )
    script = tmp_path / "train.py"
    script.write_text(code)
    losses = []
    for processes in (1, 2):
        launch = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={processes}",
            script,
        ]
        told = tmp_path / f"{processes}.json"
        arguments = [Path(__file__).parent, text, tmp_path / f"run{processes}", told]
        done = subprocess.run(
            [str(part) for part in (*launch, *arguments)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        losses.append(json.loads(told.read_text()))
    assert len(losses[0]) >= 50
    np.testing.assert_allclose(losses[0], losses[1], atol=1e-4)


class TestDiverging:
    """The error names the step and what to lower; what diverged is never saved over what is good."""

    @pytest.mark.parametrize("rate", [1e30, 1e4])
    @pytest.mark.parametrize("save_minutes", [0.0, 5.0])
    def test_the_last_checkpoint_is_good(self, rate, save_minutes, text, tmp_path):
        training = {"training__learning_rate": rate, "training__warmup": 0, "training__evaluate_steps": 1}
        settings = recipe(**training, training__save_minutes=save_minutes, training__dropout=0.0)
        message = r"loss is \S+ at step \d+: lower training.learning_rate \(\S+\) or training.clip .* step \d+ is good"
        with pytest.raises(ElmoError, match=message):
            pretrain([text], tmp_path / "run", settings)
        elmo = elmokit.load(tmp_path / "run")
        corpus = read_corpus(tmp_path / "run" / "corpus", min_count=1)
        assert perplexity(elmo, sentences_of(corpus.valid.ids, corpus.words)).average < 1e6
        assert all(weight.abs().max() < 1e6 for weight in elmo.checkpoint().weights.values())
        for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines():
            json.loads(line, parse_constant=pytest.fail)  # NaN and Infinity are no JSON

    def test_a_checkpoint_that_diverged_is_not_called_good(self, text, tmp_path):
        """As versions that saved without a look have left it."""
        settings = recipe(training__epochs=0.2)
        with pytest.raises(KeyboardInterrupt):
            pretrain([text], tmp_path / "run", settings, progress=StopsAfter(3))
        state = torch.load(tmp_path / "run" / "training.pt", weights_only=True)
        for weight in state["weights"].values():
            weight *= 1e28
        torch.save(state, tmp_path / "run" / "training.pt")
        with pytest.raises(ElmoError, match="at step 3: .* so has the checkpoint: begin again"):
            pretrain([text], tmp_path / "run", settings, resume=True)

    def test_a_perplexity_beyond_all_numbers(self, finished, text):
        elmo = elmokit.load(finished)
        elmo.language_model.softmax.load_state_dict(
            {name: weight * 1e9 for name, weight in elmo.language_model.softmax.state_dict().items()}
        )
        assert perplexity(elmo, ["the cat sees the moon ."]).average == math.inf

    @pytest.mark.parametrize("name", ["learning_rate", "gradient_scale", "weight_decay"])
    def test_settings_that_are_no_numbers(self, name):
        with pytest.raises(ConfigError, match=f"training.{name} is inf: it must be a number"):
            TrainSettings(**{name: math.inf})
        with pytest.raises(ConfigError, match=f"training.{name} is nan"):
            TrainSettings(**{name: math.nan})


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    """The folder of a short run."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    pretrain([text], folder, recipe(training__epochs=0.05))
    return folder


class TestFinetuning:
    QUICK = ("-s", "training.batch=8", "-s", "training.unroll=10", "-s", "training.epochs=1", "--workers", "1")

    @pytest.fixture
    def other_text(self, tmp_path):
        path = tmp_path / "other.txt"
        path.write_text("the zebra remembers the moon .\nthe zebra follows her friend .\n" * 150, encoding="utf-8")
        return path

    def test_from_a_model_with_softmax(self, finished, other_text, tmp_path):
        before = perplexity(elmokit.load(finished), [["the", "cat", "remembers", "the", "moon", "."]])
        main(["finetune", str(finished), str(other_text), "-o", str(tmp_path / "tuned"), *self.QUICK])
        tuned = elmokit.load(tmp_path / "tuned")
        assert tuned.vocabulary.words == elmokit.load(finished).vocabulary.words
        after = perplexity(tuned, [["the", "cat", "remembers", "the", "moon", "."]])
        assert after.average < before.average

    def test_with_new_words(self, finished, other_text, tmp_path):
        main(
            ["finetune", str(finished), str(other_text), "-o", str(tmp_path / "tuned"), "--new-words", "5", *self.QUICK]
        )
        old, new = elmokit.load(finished).vocabulary, elmokit.load(tmp_path / "tuned").vocabulary
        assert new.words == (*old.words, "zebra")

    @pytest.mark.parametrize("frequent", [9, 1000])
    def test_new_words_beside_a_table_of_frequent_ones(self, frequent, text, other_text, tmp_path):
        """A new word has a vector of its own where the table has room, else <UNK>'s; its characters tell it apart."""
        settings = {"model__words__dim": 6, "model__words__frequent": frequent}
        pretrain([text], tmp_path / "run", recipe(training__epochs=0.05, **settings))
        tune = ["finetune", str(tmp_path / "run"), str(other_text), "-o", str(tmp_path / "tuned"), "--new-words", "5"]
        main([*tune, *self.QUICK])
        old, new = (read_checkpoint(tmp_path / name) for name in ("run", "tuned"))
        assert new.vocabulary.words == (*old.vocabulary.words, "zebra")
        assert new.config.softmax.size == new.config.words.size == len(new.vocabulary)
        assert len(new.weights["tokens.words.weight"]) == min(frequent, len(new.vocabulary))
        zebra, unknown, vectors = "zebra", "zzz", elmokit.load(tmp_path / "tuned")
        word_ids = vectors.encoder.encode([zebra, unknown]).word_ids
        assert (word_ids[0] == word_ids[1]) == (frequent == 9)
        one, other = vectors.embed([[zebra], [unknown]], layers=0)
        assert not np.allclose(one, other)

    def test_from_a_model_without_softmax(self, model_folder, other_text, tmp_path):
        """The softmax learns alone for half an epoch; then everything moves."""
        arguments = ["finetune", str(model_folder), str(other_text), "-o", str(tmp_path / "tuned"), *self.QUICK]
        main([*arguments, "-s", "training.head_epochs=1"])
        weights, tuned = read_checkpoint(model_folder).weights, read_checkpoint(tmp_path / "tuned")
        assert all(torch.equal(weight, tuned.weights[name]) for name, weight in weights.items())
        assert perplexity(elmokit.load(tmp_path / "tuned"), [["the", "zebra", "remembers"]]).average < 20
        main([*arguments[:4], str(tmp_path / "all"), *self.QUICK])
        moved = read_checkpoint(tmp_path / "all").weights
        assert not any(torch.equal(weight, moved[name]) for name, weight in weights.items() if "bias" not in name)


class TestPerplexity:
    @pytest.fixture
    def elmo(self, finished):
        return elmokit.load(finished)

    def test_equals_a_plain_sum(self, elmo):
        sentences = [["the", "cat", "sees", "zebras"], ["月"], []]
        ids = elmo.vocabulary.encode
        totals, targets = [0.0, 0.0], 0
        for sentence in sentences:
            words = ["<S>", *sentence, "</S>"]
            top = elmo.run([words], gradients=False)[-1]
            forward, backward = (elmo.language_model.softmax.log_probabilities(half) for half in top.chunk(2, dim=-1))
            for place in range(len(words) - 1):
                totals[0] += forward[place, ids([words[place + 1]])[0]].item()
                totals[1] += backward[place + 1, ids([words[place]])[0]].item()
                targets += 1
        found = perplexity(elmo, sentences)
        assert found.targets == targets
        assert found.unknown == 1
        assert found.forward == pytest.approx(math.exp(-totals[0] / targets), rel=1e-5)
        assert found.backward == pytest.approx(math.exp(-totals[1] / targets), rel=1e-5)

    def test_on_the_command_line(self, finished, text, capsys):
        main(["perplexity", str(finished), str(text)])
        output = capsys.readouterr().out
        assert [line.split()[0] for line in output.splitlines()[:3]] == ["forward", "backward", "average"]

    def test_packed_or_from_standard_input(self, finished, text, tmp_path, capsys, monkeypatch):
        """Each line is a paragraph, as in training."""
        (tmp_path / "text.txt.xz").write_bytes(lzma.compress(text.read_bytes()))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
        for source in (text, tmp_path / "text.txt.xz", "-"):
            main(["perplexity", str(finished), str(source)])
        output = capsys.readouterr().out.splitlines()
        assert output[:4] == output[4:8] == output[8:]

    def test_needs_a_softmax(self, model_folder):
        with pytest.raises(CheckpointError, match="no softmax"):
            perplexity(elmokit.load(model_folder), [["a"]])

    def test_needs_text(self, elmo):
        with pytest.raises(DataError, match="no text"):
            perplexity(elmo, [])


class TestMistakes:
    def test_a_run_is_not_overwritten(self, text, finished):
        with pytest.raises(OutputError, match="--resume"):
            pretrain([text], finished, recipe())

    def test_other_things_are_not_overwritten(self, text, tmp_path):
        (tmp_path / "thesis.tex").touch()
        with pytest.raises(OutputError, match="not empty"):
            pretrain([text], tmp_path, recipe())

    def test_resuming_with_other_settings(self, text, finished):
        with pytest.raises(ConfigError, match=r"training.batch was 8 and is 4; training.unroll was \d+ and is 7"):
            pretrain([text], finished, recipe(training__batch=4, training__unroll=7), resume=True)

    def test_resuming_nothing(self, text, tmp_path):
        with pytest.raises(CheckpointError, match="no run"):
            pretrain([text], tmp_path / "new", recipe(), resume=True)

    def test_too_little_text(self, tmp_path):
        (tmp_path / "short.txt").write_text("Two words.\nThree more words.\n")
        with pytest.raises(DataError, match="one batch takes"):
            pretrain([tmp_path / "short.txt"], tmp_path / "run", recipe())

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--recipe", "grand"], "unknown recipe 'grand': known are"),
            (["--recipe", "missing.toml"], "missing.toml"),
            (["-s", "training.batch"], "name=value"),
            (["-s", "training.bath=3"], "training.bath"),
            (["-s", "training.batch=many"], "batch"),
            (["-s", "training.dropout=1"], "dropout"),
            (["--vocabulary", "missing.txt"], "missing.txt"),
        ],
    )
    def test_on_the_command_line(self, arguments, message, text, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as caught:
            main(["pretrain", str(text), "-o", "run", *arguments])
        assert caught.value.code == 2
        assert message in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_vocabulary_out_of_order(self, text, tmp_path, capsys):
        (tmp_path / "vocab.txt").write_text("the\n<S>\n</S>\n<UNK>\n")
        with pytest.raises(SystemExit):
            main(["pretrain", str(text), "-o", str(tmp_path / "run"), "--vocabulary", str(tmp_path / "vocab.txt")])
        assert "training needs" in capsys.readouterr().err


class TestRecipes:
    @pytest.mark.parametrize("name", ["tiny", "novel", "small", "original"])
    def test_every_setting_can_be_written_down(self, name):
        recipe = make_recipe(name)
        assert make_recipe(json.loads(json.dumps(asdict(recipe)))) == recipe == make_recipe(recipe)

    def test_the_older_name_of_lines(self):
        """`split = false` was one sentence per line; the values of the caller stay as they are."""
        for split, lines in ((False, "sentences"), (True, "auto")):
            values = read_recipe("tiny") | {"corpus": {"split": split, "min_count": 1}}
            assert make_recipe(values).corpus.lines == lines
            assert values["corpus"] == {"split": split, "min_count": 1}
        with pytest.raises(ConfigError, match=r"not known: corpus.split"):
            make_recipe({"model": read_recipe("tiny")["model"], "corpus": {"split": "no"}})


class TestFrontDoor:
    def test_names_are_there_whatever_was_imported_before(self):
        import elmokit.pretrain.evaluation
        import elmokit.pretrain.run
        from elmokit import pretrain as room

        assert {"pretrain", "perplexity", "Recipe", "make_recipe", "read_recipe"} <= set(dir(room))
        assert room.pretrain is elmokit.pretrain.run.pretrain
        assert room.perplexity is elmokit.pretrain.evaluation.perplexity

    def test_nothing_heavy_is_imported_with_the_names(self):
        code = "import sys, elmokit.pretrain, elmokit.static, elmokit.text; print('torch' in sys.modules)"
        assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"

    def test_one_file_as_a_string_and_plain_values(self, text, tmp_path):
        values = read_recipe("tiny")
        values["training"].update(epochs=0.1, batch=8)
        found = elmokit.pretrain.pretrain(str(text), str(tmp_path / "run"), values)
        assert found.average > 1
        assert len(elmokit.load(tmp_path / "run").embed(["the cat"])[0]) == 2
