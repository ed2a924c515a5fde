"""Training runs at their edges: curves, estimates, memory, several processes, exports, interruptions, bad input."""

import io
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest
import torch
from conftest import hear_interrupts
from test_pretrain_run import StopsAfter, Watcher, recipe

import elmokit
from elmokit.checkpoints import read_checkpoint
from elmokit.cli import main
from elmokit.errors import CheckpointError, ConfigError, OutputError
from elmokit.files import locked
from elmokit.pretrain.corpus import read_corpus
from elmokit.pretrain.recipe import TrainSettings, make_recipe
from elmokit.pretrain.run import pretrain
from elmokit.pretrain.trainer import Trainer, new_model

WORDS = "the a small old cat dog bird river moon house sees likes follows remembers and never again 小猫 月亮".split()
SMALL = ["--recipe", "tiny", "--workers", "1"]
for setting in ("model.hidden=16", "model.projection=8", "training.batch=8", "training.evaluate_steps=10"):
    SMALL += ["-s", setting]
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A thousand sentences of a few words, the first ones most often."""
    pick = random.Random(0)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    lines = [" ".join(pick.choices(WORDS, weights, k=pick.randint(2, 9))) + " ." for _ in range(1000)]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    """The folder of a short run, made on the command line."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    main(["pretrain", str(text), "-o", str(folder), *SMALL, "-s", "training.epochs=0.3"])
    return folder


def run_python(*arguments, **settings) -> subprocess.CompletedProcess:
    """A process of its own, on one core."""
    settings = {"capture_output": True, "text": True, "timeout": 300} | settings
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *map(str, arguments)], check=False, env=environment, **settings)


def metrics(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, and what is in it."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class Breaks(Watcher):
    """The lights go out after so many steps, and nothing can be saved."""

    def __init__(self, steps):
        super().__init__()
        self.last = steps

    def update(self, stage, *progress, **notes):
        super().update(stage, *progress, **notes)
        if len(self.steps) == self.last:
            raise RuntimeError("the lights went out")


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """The folder of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    pretrain([text], folder, recipe(training__epochs=0.6))
    return folder


@pytest.fixture(scope="module")
def broken(text, tmp_path_factory):
    """The folder of one that was stopped after 12 steps, went on, broke off 13 steps later and went on from 12."""
    folder, settings = tmp_path_factory.mktemp("broken") / "run", recipe(training__epochs=0.6)
    with pytest.raises(KeyboardInterrupt):
        pretrain([text], folder, settings, progress=StopsAfter(12))
    time.sleep(1.1)  # TensorBoard reads files in the order of their names: the second, then a number without zeros
    with pytest.raises(RuntimeError, match="lights"):
        pretrain([text], folder, settings, progress=Breaks(13), resume=True)
    time.sleep(1.1)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 20, "los')  # as a killed process leaves it
    pretrain([text], folder, settings, resume=True)
    return folder


class TestRecords:
    def test_measurements_after_a_break_are_those_of_a_whole_run(self, whole, broken):
        before, after = metrics(whole), metrics(broken)
        assert [line["step"] for line in before][:3] == [10, 20, 30]
        for line in before + after:
            assert line.pop("tokens_per_second") is None or line["step"] % 10 == 0
        assert before == after

    def test_curves_are_the_measurements(self, whole):
        found = curves(whole)
        assert found.keys() == {
            *("loss", "learning_rate", "tokens_per_second"),
            *("perplexity/forward", "perplexity/backward", "perplexity/average"),
        }
        lines = metrics(whole)
        assert len(lines) > 4
        for direction in ("forward", "backward", "average"):
            points = [(line["step"], line["perplexity"][direction]) for line in lines]
            np.testing.assert_allclose(found[f"perplexity/{direction}"], points, rtol=1e-6)  # stored as float32
        for name in ("loss", "learning_rate", "tokens_per_second"):
            np.testing.assert_allclose(found[name], [(line["step"], line[name]) for line in lines[:-1]], rtol=1e-6)

    def test_curves_after_a_break_are_those_of_a_whole_run(self, whole, broken):
        before, after = curves(whole), curves(broken)
        assert len(list((broken / "tensorboard").iterdir())) == 3
        for name in before.keys() - {"tokens_per_second"}:
            assert before[name] == after[name]

    def test_curves_need_the_extra(self, text, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "tensorboard", None)  # what Python does where it is not installed
        pretrain([text], tmp_path / "run", recipe(training__epochs=0.1))
        assert not (tmp_path / "run" / "tensorboard").exists()
        assert metrics(tmp_path / "run")

    def test_tensorboard_is_not_imported_before_training(self):
        code = "import sys, elmokit.pretrain.run, elmokit.cli; print([m for m in sys.modules if 'tensorb' in m])"
        assert run_python("-c", code).stdout == "[]\n"

    def test_measurements_without_held_out_text(self, text, tmp_path):
        assert pretrain([text], tmp_path / "run", recipe(corpus__valid_share=0.0)) is None
        lines = metrics(tmp_path / "run")
        assert [line["step"] for line in lines][:2] == [10, 20]
        assert all(line["perplexity"] is None and line["loss"] > 0 for line in lines)

    def test_measurements_while_gradients_are_added_up(self, text, tmp_path):
        """Steps come three at a time: each measurement is at the first that reaches its ten."""
        pretrain([text], tmp_path / "run", recipe(training__accumulate=3))
        assert [line["step"] for line in metrics(tmp_path / "run")][:3] == [12, 21, 30]


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Every curve as TensorBoard itself reads it."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder / "tensorboard")).Reload()
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


class TestPreflight:
    def test_everything_is_said_before_the_first_step(self, text, tmp_path, capsys):
        main(["pretrain", str(text), "-o", str(tmp_path / "run"), *SMALL, "-s", "training.epochs=1"])
        layout, read, corpus, model, *rest = capsys.readouterr().err.splitlines()
        assert layout == f"{text}: each line is a paragraph"
        assert read == f"read {text.stat().st_size / 1e6:,.1f} MB of text"
        found = read_corpus(tmp_path / "run" / "corpus")
        assert corpus == (
            f"{found.train.tokens:,} tokens to train on, {found.valid.tokens:,} held out; "
            f"{found.types:,} distinct words, {len(found.vocabulary):,} in the vocabulary, "
            f"which lacks {found.train.oov_rate:.2%} of the tokens"
        )
        weights = read_checkpoint(tmp_path / "run").weights
        parameters = sum(weight.numel() for weight in weights.values())
        assert re.fullmatch(rf"{parameters:,} parameters, about \d+ MB; \d+ steps to go, about \d+ seconds?", model)
        assert re.fullmatch(r"step 10: held-out perplexity \S+ forward, \S+ backward, \S+ average", rest[0])
        steps = metrics(tmp_path / "run")[-1]["step"]
        assert re.fullmatch(rf"{tmp_path / 'run'}: done, {steps:,} steps, \d+ seconds?", rest[-1])

    def test_the_vocabulary_can_be_bounded_by_flags(self, text, tmp_path):
        flags = ["--vocab-size", "12", "--min-count", "2", "-s", "training.epochs=0.05"]
        main(["pretrain", str(text), "-o", str(tmp_path / "run"), *SMALL, *flags])
        assert len(elmokit.load(tmp_path / "run").vocabulary) == 12
        saved = json.loads((tmp_path / "run" / "recipe.json").read_text())["corpus"]
        assert (saved["vocab_size"], saved["min_count"]) == (12, 2)

    @pytest.mark.parametrize("flags", [["--lines", "sentences"], ["--no-split"], ["-s", "corpus.split=false"]])
    def test_one_sentence_per_line(self, flags, text, tmp_path):
        """By its name, and by the two that it had before."""
        arguments = ["pretrain", "-o", str(tmp_path / "run"), *SMALL, "-s", "training.epochs=0.05", *flags, str(text)]
        main(arguments)
        assert json.loads((tmp_path / "run" / "recipe.json").read_text())["corpus"]["lines"] == "sentences"
        lines = text.read_text(encoding="utf-8").count("\n")
        corpus = read_corpus(tmp_path / "run" / "corpus")
        assert corpus.train.sentences + corpus.valid.sentences == lines

    def test_text_from_standard_input(self, text, tmp_path, monkeypatch):
        for name, source in (("file", str(text)), ("stream", "-")):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
            main(["pretrain", source, "-o", str(tmp_path / name), *SMALL, "-s", "training.epochs=0.05"])
        same_weights(tmp_path / "file", tmp_path / "stream")

    @needs_proc
    @pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
    def test_memory_is_estimated_within_a_factor_of_two(self, kind, tmp_path):
        """What a run takes beyond the libraries, for a model and a vocabulary of some thousands."""
        write_text(tmp_path / "text.txt", tokens=150_000, types=30_000)
        (tmp_path / "script.py").write_text(ESTIMATE)
        done = run_python(tmp_path / "script.py", tmp_path / "text.txt", tmp_path / "run", kind)
        assert done.returncode == 0, done.stderr
        estimate, measured = map(float, done.stdout.split())
        assert measured / 2 < estimate < measured * 2


PEAK = """
import re
from pathlib import Path

def peak():
    # Not ru_maxrss, which begins with what the process that started this one had in use.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
"""

ESTIMATE = rf"""
import sys
from elmokit.pretrain.recipe import read_recipe
from elmokit.pretrain.run import pretrain
{PEAK}
class Keeps:
    def message(self, text):
        if found := re.search(r"parameters, about ([\d,]+) MB", text):
            self.megabytes = float(found[1].replace(",", ""))

    def update(self, *progress, **notes):
        pass

if __name__ == "__main__":
    values = read_recipe("novel")
    values["model"] |= {{"tokenizer": "whitespace", "softmax": {{"kind": sys.argv[3]}}}}
    values["training"] |= {{"epochs": 0.1, "evaluate_steps": 5, "evaluate_tokens": 2000}}
    progress, before = Keeps(), peak()
    pretrain([sys.argv[1]], sys.argv[2], values, progress=progress, workers=1)
    print(progress.megabytes - before, peak() - before)
"""


def spelling(number: int) -> str:
    """A word for each number; their alphabetical order says nothing about their numbers."""
    return f"{number:x}w"[::-1]


def write_text(path: Path, *, tokens: int, types: int) -> None:
    """Words as frequent as in a language: the larger the text, the more rare ones there are."""
    words = np.array([spelling(number) for number in range(types)], dtype=object)
    with path.open("w", encoding="utf-8") as file:
        generator = np.random.default_rng(0)
        for lines in np.array_split(np.arange(tokens // 20), max(1, tokens // 200_000)):
            numbers = np.exp(generator.random((len(lines), 20)) * np.log(types)).astype(int) - 1
            file.writelines(" ".join(row) + "\n" for row in words[numbers])


MEASURE = f"""
import sys
from elmokit.cli import main
{PEAK}
if __name__ == "__main__":
    main(sys.argv[1:])
    print(peak())
"""


@needs_proc
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """A megabyte of text against sixty, with all the rare words that so much text brings: the same model and steps."""
    (tmp_path / "script.py").write_text(MEASURE)
    write_text(tmp_path / "valid.txt", tokens=10_000, types=120_000)
    peaks = []
    for tokens in (200_000, 12_600_000):
        text, folder = tmp_path / f"{tokens}.txt", tmp_path / f"run{tokens}"
        write_text(text, tokens=tokens, types=120_000)  # English fiction has 106,000 in sixty megabytes
        settings = {"model.tokenizer": "whitespace", "model.characters.max_characters": 50}
        settings |= {"corpus.split": "false"}  # the older name of corpus.lines = "sentences"
        settings |= {"corpus.vocab_size": 5000, "training.batch": 32, "training.unroll": 20}
        settings |= {"training.epochs": 20 * 32 * 20 / tokens}
        chosen = [argument for name, value in settings.items() for argument in ("-s", f"{name}={value}")]
        chosen += ["--recipe", "tiny", "--valid", tmp_path / "valid.txt"]
        done = run_python(tmp_path / "script.py", "pretrain", text, "-o", folder, *chosen)
        assert done.returncode == 0, done.stderr
        assert 18 <= metrics(folder)[-1]["step"] <= 24
        peaks.append(float(done.stdout))
    assert text.stat().st_size > 55e6
    assert peaks[1] - peaks[0] < 200  # MB


def test_two_processes_on_the_command_line(text, tmp_path):
    """torchrun, half the batch each: a whole model, and the measurements of one process."""
    command = ["pretrain", str(text), *SMALL, "-s", "training.dropout=0", "-s", "training.epochs=0.5"]
    main([*command, "-o", str(tmp_path / "one")])
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "elmokit"]
    done = run_python(*launch, *command, "-o", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("parameters, about") == 1  # one process reports
    assert len(elmokit.load(tmp_path / "two").embed(["the cat sees the moon ."])[0]) == 6
    one, two = (
        [[line["loss"], *line["perplexity"].values()] for line in metrics(tmp_path / name)] for name in ("one", "two")
    )
    assert len(one) > 3
    np.testing.assert_allclose(one, two, rtol=1e-4)


@pytest.mark.parametrize("given", [["--valid", "b.txt", "c.txt"], ["--valid", "b.txt", "--valid", "c.txt"]])
def test_several_files_to_measure_on_are_not_trained_on(text, tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    for name, lines in (("a", 100), ("b", 20), ("c", 20)):
        Path(f"{name}.txt").write_text("".join(text.read_text(encoding="utf-8").splitlines(keepends=True)[:lines]))
    main(["pretrain", "a.txt", *given, "-o", "run", *SMALL, "-s", "training.epochs=0.1"])
    about = elmokit.load("run").about
    assert (about["files"], about["held-out files"]) == ("a.txt", "b.txt, c.txt")


def learned(trainer) -> list[torch.Tensor]:
    """The weights, and what Adam remembers of each."""
    remembered = [part for state in trainer.optimizer.state.values() for part in state.values() if part.dim()]
    return [weight.data for weight in trainer.model.parameters()] + remembered


def test_processes_that_learn_apart_end_with_the_mean_of_their_weights(text, tmp_path):
    """After six steps, of which each second one ends with an average of weights and of what Adam remembers."""
    command = ["pretrain", str(text), *SMALL, "-s", "training.average_steps=2", "-s", "training.epochs=0.05"]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "elmokit"]
    done = run_python(*launch, *command, "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "recipe.json").read_text(encoding="utf-8"))
    written["training"]["average_steps"] = 1000
    same = make_recipe(written)
    corpus = read_corpus(tmp_path / "corpus", vocab_size=same.corpus.vocab_size, min_count=same.corpus.min_count)
    apart = [Trainer(new_model(same, corpus, None), same, corpus, rank=rank, world=2) for rank in range(2)]
    while apart[0].step < apart[0].total_steps:
        losses = [trainer.advance().loss for trainer in apart]
        if apart[0].step % 2 == 0:
            for pair in zip(*map(learned, apart), strict=True):
                mean = sum(pair) / 2
                for part in pair:
                    part.copy_(mean)
    assert apart[0].step == 6
    assert losses[0] != losses[1]
    for name, weight in read_checkpoint(tmp_path).weights.items():
        torch.testing.assert_close(weight, apart[0].model.weights()[name], rtol=0, atol=1e-6)


SIMPLE_ELMO = Path(
    os.environ.get("ELMOKIT_SIMPLE_ELMO_PYTHON", Path(__file__).parents[1] / ".benchmarks/simple_elmo/bin/python")
)
RUNNER = Path(__file__).parents[1] / "benchmarks" / "peers" / "simple_elmo_runner.py"


def test_a_trained_model_has_the_same_vectors_in_simple_elmo(finished, tmp_path):
    if not SIMPLE_ELMO.exists():
        pytest.skip(f"needs simple-elmo and TensorFlow: {SIMPLE_ELMO} is missing (set ELMOKIT_SIMPLE_ELMO_PYTHON)")
    main(["convert", str(finished), str(tmp_path / "allenai"), "--to", "allenai"])
    sentences = ["the old cat sees the moon .".split(), ["小猫", "remembers", "internationalisation", "🎉"], ["One"]]
    (tmp_path / "work.json").write_text(json.dumps({"sentences": sentences, "single": sentences}))
    done = subprocess.run(
        [SIMPLE_ELMO, RUNNER, tmp_path / "allenai", tmp_path / "work.json"],
        input=f"vectors {tmp_path / 'vectors.npy'}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    ours = np.concatenate(elmokit.load(finished).embed(sentences, layers="all"), axis=1)
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), ours, atol=1e-5)  # float32, in another order


def ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_interrupted_anywhere_and_resumed_is_the_same_to_the_bit(text, tmp_path):
    """Ctrl-C does not choose its moment, nor does SIGTERM, which alone reaches what a shell runs in the background."""
    command = ["pretrain", str(text), *SMALL, "-s", "training.epochs=2", "-s", "training.evaluate_steps=40"]
    main([*command, "-o", str(tmp_path / "whole")])
    parts = [sys.executable, "-m", "elmokit", *command, "-o", str(tmp_path / "parts")]
    for resume, number, hear in (
        ([], signal.SIGINT, hear_interrupts),
        (["--resume"], signal.SIGTERM, ignore_interrupts),
    ):
        settings = {"env": os.environ | {"OMP_NUM_THREADS": "1"}, "preexec_fn": hear}
        process = subprocess.Popen([*parts, *resume], stderr=subprocess.PIPE, text=True, **settings)
        for line in process.stderr:
            if "perplexity" in line:
                break
        time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert re.search(r"^saved at step \d+; the same command with --resume goes on$", errors, re.MULTILINE)
    main([*parts[3:], "--resume"])
    same_weights(tmp_path / "whole", tmp_path / "parts")


def test_killed_at_any_moment_the_same_command_begins_again_or_resumes(text, tmp_path):
    """With the lock alone, with the text prepared, and with the first state written but perhaps no model."""
    command = ["pretrain", str(text), *SMALL, "-s", "training.epochs=0.5"]
    folder = tmp_path / "parts"
    for name in (".lock", "corpus/manifest.json", "training.pt"):
        process = subprocess.Popen(
            [sys.executable, "-m", "elmokit", *command, "-o", str(folder)],
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        while not (folder / name).exists():
            assert process.poll() is None
            time.sleep(0.001)
        process.kill()
        process.wait()
    main([*command, "-o", str(folder), "--resume"])
    main([*command, "-o", str(tmp_path / "whole")])
    same_weights(tmp_path / "whole", folder)
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


class TestLeftovers:
    """What processes that were killed, or older versions, have left in the folder of a run."""

    @pytest.fixture
    def dead(self):
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        return process.pid

    def leave(self, folder, process):
        """Half a corpus, half a state, half a model and a lock."""
        for name in (f".corpus.{process}.partial", f".corpus.{process}.old", f".{process}.partial"):
            (folder / name).mkdir(parents=True)
            (folder / name / "train.ids").write_bytes(b"1234")
        (folder / f".{get_ident()}.{process}.partial.training.pt").write_bytes(b"half a state")
        (folder / ".lock").write_text(f"process {process} on elsewhere")

    def test_of_a_run_before_its_first_checkpoint(self, text, tmp_path, dead):
        settings = recipe(training__epochs=0.05)
        self.leave(tmp_path / "run", dead)
        (tmp_path / "run" / "recipe.json").write_text("{}")
        pretrain([text], tmp_path / "run", settings)
        assert not [path.name for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]
        assert elmokit.load(tmp_path / "run").embed(["the cat"])[0].any()

    @pytest.mark.parametrize("left", [[], ["recipe.json"], ["recipe.json", "corpus"]])
    def test_resume_begins_again_where_nothing_was_saved(self, left, text, tmp_path, dead):
        settings, folder = recipe(training__epochs=0.05), tmp_path / "run"
        pretrain([text], tmp_path / "whole", settings)
        self.leave(folder, dead)
        for name in left:
            source = tmp_path / "whole" / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
        pretrain([text], folder, settings, resume=True)
        same_weights(tmp_path / "whole", folder)
        assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]

    def test_of_a_run_that_resumes(self, text, tmp_path, dead):
        settings = recipe(training__epochs=0.1)
        with pytest.raises(KeyboardInterrupt):
            pretrain([text], tmp_path / "run", settings, progress=StopsAfter(2))
        self.leave(tmp_path / "run", dead)
        assert pretrain([text], tmp_path / "run", settings, resume=True)
        assert not [path.name for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]

    def test_two_runs_do_not_write_in_one_folder(self, text, tmp_path):
        with locked(tmp_path / "run"), pytest.raises(OutputError, match=r"run is in use by process \d+ on \S+: wait"):
            pretrain([text], tmp_path / "run", recipe())
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("kept", ["recipe and corpus", "recipe", "corpus"])
    def test_of_an_older_version(self, text, tmp_path, kept):
        """Its text was read by other rules; nothing is touched."""
        folder, settings = tmp_path / "run", recipe(training__epochs=0.05)
        pretrain([text], folder, settings)
        values = json.loads((folder / "recipe.json").read_text())
        manifest = json.loads((folder / "corpus" / "manifest.json").read_text())
        if "recipe" in kept:
            del values["corpus"]["lines"]
            values["corpus"]["split"] = True
            (folder / "recipe.json").write_text(json.dumps(values))
        if "corpus" in kept:
            (folder / "corpus" / "manifest.json").write_text(json.dumps(manifest | {"format": 1}))
        before = contents(folder)
        with pytest.raises(
            CheckpointError, match="the text was prepared by an older version of elmokit: start the run"
        ):
            pretrain([text], folder, settings, resume=True)
        with pytest.raises(OutputError, match="holds a run already"):
            pretrain([text], folder, settings)
        assert contents(folder) == before
        (folder / "training.pt").unlink()
        for file in ("README.md", "config.json", "model.safetensors", "vocab.txt", "metrics.jsonl"):
            (folder / file).unlink()
        shutil.rmtree(folder / "tensorboard", ignore_errors=True)
        watcher = Watcher()
        pretrain([text], folder, settings, progress=watcher)  # as a run that was killed before its first checkpoint
        again = f"{folder / 'corpus'}: prepared by an older version of elmokit, so it is prepared again"
        assert (again in watcher.messages) == ("corpus" in kept)


class FillsTheDisk(Watcher):
    """After five steps no file can grow beyond a few kilobytes."""

    def update(self, stage, *progress, **notes):
        super().update(stage, *progress, **notes)
        if len(self.steps) == 5:
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))


def test_a_full_disk_spares_the_last_checkpoint(text, tmp_path):
    settings = recipe(training__save_minutes=0.0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OutputError, match=r"training.pt: cannot be written: File too large$"):
            pretrain([text], tmp_path / "parts", settings, progress=FillsTheDisk())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert torch.load(tmp_path / "parts" / "training.pt", weights_only=True)["step"] == 4
    assert not [file.name for file in (tmp_path / "parts").iterdir() if file.name.startswith(".")]
    assert elmokit.load(tmp_path / "parts").embed(["the cat"])[0].any()
    pretrain([text], tmp_path / "parts", settings, resume=True)
    pretrain([text], tmp_path / "whole", settings)
    same_weights(tmp_path / "whole", tmp_path / "parts")


def same_weights(one: Path, other: Path) -> None:
    weights = read_checkpoint(other).weights
    assert all(torch.equal(weight, weights[name]) for name, weight in read_checkpoint(one).weights.items())


class TestBadInput:
    """By the command line: one sentence, code 2, and whatever was there is there still."""

    def fails(self, capsys, *arguments) -> str:
        with pytest.raises(SystemExit) as caught:
            main(["pretrain", *map(str, arguments), *SMALL])
        output = capsys.readouterr()
        assert caught.value.code == 2
        assert output.out == ""
        *before, message = output.err.splitlines()
        assert message.startswith("elmokit: ")
        assert all(line.startswith("read ") or line.endswith("each line is a paragraph") for line in before)
        return message

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "no words in the whole corpus"),
            (b" \n\n\t\n", "no words in the whole corpus"),
            (b"One line.\n", "one paragraph only, and it is held out"),
            (b"Two words.\nThree more words.\n", "one batch takes 8 × 10: add text, or lower batch or unroll"),
            (b"GIF89a\x00\x01\x02", "a binary file, or UTF-16? Save it as UTF-8 text"),
            (b"\x89PNG\r\n\xff\xfe", "is not UTF-8; name its encoding by --encoding NAME, or save the file as UTF-8"),
            ("caf\u00e9\n".encode("latin-1"), "line 1: byte 0xe9 is not UTF-8"),
        ],
    )
    def test_files(self, content, message, tmp_path, capsys):
        path = tmp_path / "a.txt"
        path.write_bytes(content)
        assert message in self.fails(capsys, path, "-o", tmp_path / "run")
        assert path.read_bytes() == content
        assert not (tmp_path / "run" / "training.pt").exists()

    def test_no_files(self, tmp_path, capsys):
        (tmp_path / "empty").mkdir()
        assert "holds no text" in self.fails(capsys, tmp_path / "empty", "-o", tmp_path / "run")
        assert "no such file" in self.fails(capsys, tmp_path / "missing.txt", "-o", tmp_path / "run")
        assert "no files to train on" in self.fails(capsys, "-o", tmp_path / "run")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("", "the vocabulary begins with []: training needs ['<S>', '</S>', '<UNK>'] first"),
            ("the\ncat\n", "the vocabulary begins with ['the', 'cat']"),
            ("<S>\n<UNK>\n</S>\nthe\n", "the vocabulary begins with ['<S>', '<UNK>', '</S>']"),
            ("<S>\n</S>\n<UNK>\nthe\ncat\nthe\n", "holds 'the' twice, on lines 4 and 6"),
        ],
    )
    def test_vocabularies(self, words, message, text, tmp_path, capsys):
        (tmp_path / "vocab.txt").write_text(words)
        assert message in self.fails(capsys, text, "-o", tmp_path / "run", "--vocabulary", tmp_path / "vocab.txt")

    def test_a_vocabulary_in_the_order_of_the_alphabet(self, tmp_path, capsys):
        write_text(tmp_path / "text.txt", tokens=20_000, types=2000)
        tokens = (tmp_path / "text.txt").read_text().split()
        words = sorted(set(tokens))
        (tmp_path / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *words]))
        arguments = tmp_path / "text.txt", "-o", tmp_path / "run", "--vocabulary", tmp_path / "vocab.txt"
        message = self.fails(capsys, *arguments)
        assert "not ordered by falling frequency" in message
        found = re.findall(r"'(\w+)' on line (\d+) occurs (\d+) times", message)
        assert len(found) == 2
        for word, line, times in found:
            assert words[int(line) - 4] == word
            assert tokens.count(word) * 0.8 <= int(times) + 1 <= tokens.count(word) + 1  # a part is held out

    def test_a_vocabulary_of_other_text_in_order(self, tmp_path):
        """Its order is never quite that of the corpus, and is taken as it is."""
        write_text(tmp_path / "text.txt", tokens=20_000, types=2000)
        words = [spelling(number) for number in range(3000)]
        swapped = [words[place ^ 1] for place in range(len(words))]
        (tmp_path / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *swapped]))
        arguments = [str(tmp_path / "text.txt"), "--vocabulary", str(tmp_path / "vocab.txt")]
        main(["pretrain", *arguments, "-o", str(tmp_path / "run"), *SMALL, "-s", "training.epochs=0.01"])
        assert elmokit.load(tmp_path / "run").vocabulary.words[3:] == tuple(swapped)

    def test_a_vocabulary_and_its_size(self, text, tmp_path, capsys):
        (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nthe\n")
        arguments = text, "-o", tmp_path / "run", "--vocabulary", tmp_path / "vocab.txt", "--vocab-size", "9"
        assert "--vocabulary is taken as it is" in self.fails(capsys, *arguments)
        assert "too small" in self.fails(capsys, text, "-o", tmp_path / "run", "--vocab-size", "2")

    def test_another_run_is_not_overwritten(self, finished, text, tmp_path, capsys):
        other = tmp_path / "other.txt"
        other.write_text(text.read_text(encoding="utf-8")[::-1], encoding="utf-8")
        before = contents(finished)
        same = ["-s", "training.epochs=0.3"]
        assert "holds a run already: go on with it by --resume" in self.fails(capsys, other, "-o", finished, *same)
        message = self.fails(capsys, other, "-o", finished, "--resume", *same)
        assert "made from other text, or with another vocabulary: name the same files again" in message
        message = self.fails(capsys, text, "-o", finished, "--resume", "--min-count", "5", "-s", "model.words.dim=7")
        assert "model.words was null and is" not in message
        for name, old, new in (
            ("corpus.min_count", "1", "5"),
            ("model.words.dim", "null", "7"),
        ):
            assert f"{name} was {old} and is {new}" in message
        assert contents(finished) == before

    def test_places_that_are_none(self, text, tmp_path, capsys):
        file = tmp_path / "file"
        file.write_text("mine")
        assert f"{file} is a file: name a folder" in self.fails(capsys, text, "-o", file)
        assert "cannot be written: Not a directory" in self.fails(capsys, text, "-o", file / "run")
        assert "no run to go on with here" in self.fails(capsys, text, "-o", tmp_path / "new", "--resume")
        assert file.read_text() == "mine"
        assert sorted(tmp_path.iterdir()) == [file]

    @pytest.mark.parametrize("damage", ["cut", "text", "empty", "missing"])
    def test_a_damaged_state(self, damage, text, tmp_path):
        settings = recipe(training__epochs=0.05)
        pretrain([text], tmp_path / "run", settings)
        state = tmp_path / "run" / "training.pt"
        content = {"cut": state.read_bytes()[:1000], "text": b"not a state of anything", "empty": b"", "missing": b""}
        state.write_bytes(content[damage])
        if damage == "missing":
            state.unlink()
        with pytest.raises(CheckpointError, match=r"training.pt: cannot be read as the state of a run"):
            pretrain([text], tmp_path / "run", settings, resume=True)

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda state, name: state["weights"].update({name: torch.zeros(1)}), "'{name}' is 1, expected"),
            (lambda state, name: state["weights"].pop(name), "'{name}' is missing"),
            (lambda state, name: state["weights"].update(more=torch.zeros(1)), "'more' is not expected"),
            (lambda state, name: state["weights"][name].fill_(math.nan), "'{name}' holds .* NaN or infinite"),
            (lambda state, name: state.update(h=torch.zeros(1)), "cannot be read as the state of this run: too many"),
            (lambda state, name: state.update(c=state["c"][:, :, :1]), "streams has another shape"),
            (lambda state, name: state["h"].fill_(math.inf), "'h' holds .* NaN or infinite"),
            (lambda state, name: state.update(step="x"), "cannot be read as the state of this run"),
            (lambda state, name: state.pop("step"), "cannot be read as the state of this run"),
            (lambda state, name: state.update(streams={}), "cannot be read as the state of this run"),
            (lambda state, name: state.update(optimizer={}), "cannot be read as the state of this run"),
            (
                lambda state, name: state["optimizer"]["state"][0].update(exp_avg=torch.zeros(2)),
                r"the optimiser's exp_avg is \(2,\) for a weight of",
            ),
            (
                lambda state, name: state["optimizer"]["state"][0]["exp_avg"].fill_(math.nan),
                "the optimiser's exp_avg holds numbers that are NaN",
            ),
        ],
    )
    def test_a_state_that_does_not_fit(self, damage, message, finished, text, tmp_path, capsys):
        folder = shutil.copytree(finished, tmp_path / "run")
        state = torch.load(folder / "training.pt", weights_only=True)
        name = next(name for name, weight in state["weights"].items() if weight.ndim == 2)
        damage(state, name)
        torch.save(state, folder / "training.pt")
        before = contents(folder)
        found = self.fails(capsys, text, "-o", folder, "--resume", "-s", "training.epochs=0.3")
        assert re.search(rf"training.pt\b.*{message.format(name=name)}", found)
        assert contents(folder) == before

    def test_measurements_that_are_not_utf8(self, finished, text, tmp_path):
        folder = shutil.copytree(finished, tmp_path / "run")
        before = (folder / "metrics.jsonl").read_bytes()
        (folder / "metrics.jsonl").write_bytes(before + b'\xff\xfe{"step": 3')
        main(["pretrain", str(text), "-o", str(folder), *SMALL, "-s", "training.epochs=0.3", "--resume"])
        assert (folder / "metrics.jsonl").read_bytes() == before  # and a finished run adds nothing
        same_weights(finished, folder)

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ("training.epochs=inf", "training must end"),
            ("training.seed=-1", "training.seed is -1: it must be at least 0"),
            ("training.evaluate_tokens=0", "training.evaluate_tokens is 0: it must be above 0"),
            ("training.weight_decay=-0.1", "at least 0"),
            ("training.decay_share=0", "training.decay_share is 0.0: it goes from above 0 to 1"),
            ("training.batch.size=3", "training.batch.size: batch is a setting by itself"),
            ("training.autocast=fp8", "autocast"),
        ],
    )
    def test_settings(self, setting, message, text, tmp_path, capsys):
        with pytest.raises(SystemExit):
            main(["pretrain", str(text), "-o", str(tmp_path / "run"), *SMALL, "-s", setting])
        assert message in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []


def test_sixteen_bits_need_a_device_made_for_them(text, tmp_path):
    assert TrainSettings().autocast == "none"
    settings = recipe(training__autocast="bf16", training__epochs=0.05)
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        assert pretrain([text], tmp_path / "run", settings).average > 1
        return
    with pytest.raises(ConfigError, match="this processor is not made for 16 bits: set it to none"):
        pretrain([text], tmp_path / "run", settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_a_device_that_is_not_there(text, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["pretrain", str(text), "-o", str(tmp_path / "run"), *SMALL, "--device", "cuda"])
    assert "device 'cuda:0' cannot be used here" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
