"""The commands as a user runs them: in a process of their own where that matters."""

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
import zstandard
from conftest import GOLDEN, hear_interrupts

import elmokit
from elmokit.cli import main
from elmokit.pretrain.recipe import recipe_names
from elmokit.progress import counted
from elmokit.vectors import read_vectors

TEXT = "The bank of the river .\n\nShe went to the bank .\n今天 天气 很 好 。\n"
COMMANDS = (
    "demo embed info convert pretrain finetune perplexity static "
    "neighbors senses substitutes surprisal shift index task export-page bench"
)
SUBCOMMANDS = (
    *("static train glove", "static train skip-gram", "static train one-hot", "static evaluate"),
    "static neighbors",
    *("index build", "index search", "task train", "task evaluate", "task predict"),
)
ENDINGS = [".h5", ".npz", ".safetensors", ".parquet"]


def run(*arguments, **settings) -> subprocess.CompletedProcess:
    """The command in a process of its own."""
    settings = {"capture_output": True, "text": True, "timeout": 300} | settings
    return subprocess.run([sys.executable, "-m", "elmokit", *map(str, arguments)], check=False, **settings)


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path / "text.txt"


def fails(capsys, *arguments) -> str:
    """The one sentence on standard error of a command that must exit with 2; how text was read may stand before it."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    assert caught.value.code == 2
    assert output.out == ""
    *layout, error = output.err.splitlines()
    assert error.startswith("elmokit: ")
    assert all(line.endswith(": each line is a paragraph") for line in layout)
    return error


def sentences_in(path) -> list[str]:
    """The sentences of a file of vectors, by the numbers of their arrays."""
    with h5py.File(path) as file:
        index = json.loads(file["sentence_to_index"][0])
    assert list(index.values()) == list(map(str, range(len(index))))
    return list(index)


class TestEmbed:
    @pytest.mark.parametrize("ending", ENDINGS)
    @pytest.mark.parametrize("layers", ["average", "top", "all", "0"])
    def test_vectors_are_those_of_python(self, text, tmp_path, model_folder, ending, layers, capsys):
        out = tmp_path / f"vectors{ending}"
        arguments = ["-o", str(out), "--layers", layers, "--lines", "sentences"]
        main(["embed", str(text), "--model", str(model_folder), *arguments])
        assert capsys.readouterr().out == f"{out}: 4 sentences\n"
        expected = elmokit.load(model_folder).embed(
            TEXT.split("\n")[:-1], layers=int(layers) if layers.isdecimal() else layers
        )
        assert expected[1].shape[-2] == 0  # the empty line
        for found, wanted in zip(read_vectors(out), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-6)

    @pytest.mark.parametrize("option", [["--lines", "sentences"], ["--no-split"]])
    def test_index_of_sentences(self, text, tmp_path, model_folder, option):
        main(["embed", str(text), "-m", str(model_folder), "-o", str(tmp_path / "v.h5"), *option])
        assert sentences_in(tmp_path / "v.h5") == TEXT.split("\n")[:-1]

    def test_standard_input(self, tmp_path, model_folder):
        done = run("embed", "-", "-m", model_folder, "-o", tmp_path / "v.npz", input=TEXT, encoding="utf-8")
        first, *_, last = done.stderr.splitlines()
        assert (done.returncode, first) == (0, "standard input: each line is a paragraph")
        assert last.startswith("standard input: done, 3 sentences, ")
        assert len(list(read_vectors(tmp_path / "v.npz"))) == 3

    @pytest.mark.parametrize("option", [[], ["--split"], ["--lines", "paragraphs"]])
    def test_sentences_and_tokenizer(self, tmp_path, model_folder, option):
        (tmp_path / "raw.txt").write_text("\ufeffMr. Bennet came in. He sat down.\r\n\r\n“好。”他说。走了！", "utf-8")
        arguments = ["embed", str(tmp_path / "raw.txt"), "-m", str(model_folder), *option]
        main([*arguments, "-o", str(tmp_path / "v.h5"), "--tokenizer", "characters"])
        assert sentences_in(tmp_path / "v.h5") == ["Mr. Bennet came in.", "He sat down.", "“好。”", "他说。", "走了！"]
        assert [len(vectors) for vectors in read_vectors(tmp_path / "v.h5")][-1] == 3  # 走 了 ！

    def test_folders_packed_files_and_several(self, tmp_path, model_folder, capsys):
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "a.txt.zst").write_bytes(zstandard.compress(b"One of many. Two of many."))
        (tmp_path / "folder" / "b.jsonl").write_text('{"text": "Three of many."}\n', "utf-8")
        (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"Four of many."))
        inputs = [str(tmp_path / name) for name in ("c.txt.gz", "folder")]
        main(["embed", *inputs, "-m", str(model_folder), "-o", str(tmp_path / "v.h5")])
        assert [text.partition(" ")[0] for text in sentences_in(tmp_path / "v.h5")] == ["Four", "One", "Two", "Three"]
        assert "3 files: each line is a paragraph\n" in capsys.readouterr().err

    def test_empty_file_gives_an_empty_result(self, tmp_path, model_folder):
        (tmp_path / "empty.txt").touch()
        for ending in ENDINGS:
            main(["embed", str(tmp_path / "empty.txt"), "-m", str(model_folder), "-o", str(tmp_path / f"v{ending}")])
            assert list(read_vectors(tmp_path / f"v{ending}")) == []

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (["--layers", "7"], "unknown layers 7"),
            (["--layers", "best"], "unknown layers 'best'"),
            (["--model", "missing"], "missing: no such file or folder"),
            (["--tokenizer", "spaces"], "spaces"),
            (["--precision", "fp3"], "fp3"),
            (["--batch-tokens", "0"], "batch_tokens is 0"),
            (["--device", "toaster"], "toaster"),
            (["-o", "vectors.txt"], "unknown ending '.txt'"),
            (["-o", "missing/vectors.h5"], "No such file or directory"),
            (["--nonsense"], "nonsense"),
        ],
    )
    def test_mistakes(self, text, tmp_path, model_folder, capsys, changes, message, monkeypatch):
        monkeypatch.chdir(tmp_path)
        options = {"--model": str(model_folder), "-o": "vectors.h5"}
        options.update(dict([changes]) if len(changes) == 2 else {changes[0]: ""})
        arguments = [part for option in options.items() for part in option if part]
        assert message in fails(capsys, "embed", text.name, *arguments)
        assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]

    def test_not_utf8(self, tmp_path, model_folder, capsys):
        (tmp_path / "latin.txt").write_bytes("fine\ncafé\n".encode("latin-1"))
        message = fails(capsys, "embed", tmp_path / "latin.txt", "-m", model_folder, "-o", tmp_path / "v.h5")
        assert "latin.txt, line 2: byte 0xe9 is not UTF-8" in message
        assert [path.name for path in tmp_path.iterdir()] == ["latin.txt"]

    def test_input_missing(self, tmp_path, model_folder, capsys):
        for source, message in (("missing.txt", "there is no such file"), (".", "the folder holds no text")):
            assert message in fails(capsys, "embed", tmp_path / source, "-m", model_folder, "-o", tmp_path / "v.h5")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_full_disk(self, tmp_path, model_folder, ending):
        """Files may grow to 100 kB and no further."""
        text = "".join(f"number {number} of many\n" for number in range(3000))
        (tmp_path / "text.txt").write_text(text, encoding="utf-8")
        done = run(
            *("embed", tmp_path / "text.txt", "-m", model_folder, "-o", tmp_path / f"v{ending}"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        )
        assert done.returncode == 2, done.stderr
        layout, error = done.stderr.splitlines()
        assert layout.endswith("text.txt: each line is a paragraph")
        assert error.startswith(f"elmokit: {tmp_path / f'v{ending}'}: cannot be written: ")
        assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_read_only_folder(self, text, tmp_path, model_folder, capsys):
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert "Permission denied" in fails(capsys, "embed", text, "-m", model_folder, "-o", locked / "v.h5")

    def test_read_only_disk(self, text, model_folder, capsys):
        """/proc is a file system that takes no new files, root or not."""
        message = fails(capsys, "embed", text, "-m", model_folder, "-o", "/proc/v.h5")
        assert "/proc/v.h5: cannot be written" in message

    def test_ctrl_c_leaves_nothing(self, tmp_path, model_folder):
        command = [sys.executable, "-m", "elmokit", "embed", "-", "-m", model_folder, "-o", tmp_path / "v.h5"]
        pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen(command, preexec_fn=hear_interrupts, **pipes)
        process.stdin.write(b"One sentence of a text that does not end.\n")
        process.stdin.flush()
        assert process.stderr.readline() == b"standard input: each line is a paragraph\n"
        while not list(tmp_path.glob(".*.partial.v.h5")):
            time.sleep(0.01)
        time.sleep(2)  # past imports, some of which swallow an interrupt
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert process.returncode == 130
        assert error == b"elmokit: interrupted; nothing half-written is left\n"
        assert list(tmp_path.iterdir()) == []


class TestInfo:
    def test_facts(self, model_folder, capsys):
        main(["info", str(model_folder)])
        facts = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
        elmo = elmokit.load(model_folder)
        assert facts["parameters"].strip() == f"{sum(p.numel() for p in elmo.bilm.parameters()):,}"
        assert facts["recurrent"].strip() == "2 × LSTM 24 → 10, each direction"
        assert facts["format"].strip() == f"allenai ({model_folder / 'weights.hdf5'})"

    def test_options_that_do_not_match(self, tmp_path, capsys):
        folder = shutil.copytree(GOLDEN / "base", tmp_path / "base")
        shutil.copy(GOLDEN / "three_layers" / "options.json", folder / "options.json")
        message = fails(capsys, "info", folder)
        assert "'RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/W_0' is missing" in message

    def test_options_that_are_not_json(self, tmp_path, capsys):
        folder = shutil.copytree(GOLDEN / "base", tmp_path / "base")
        (folder / "options.json").write_text("lstm: 4096")
        assert "options.json: cannot be read as JSON" in fails(capsys, "info", folder)

    def test_truncated_weights(self, tmp_path, capsys):
        folder = shutil.copytree(GOLDEN / "base", tmp_path / "base")
        content = (folder / "weights.hdf5").read_bytes()
        (folder / "weights.hdf5").write_bytes(content[: len(content) // 2])
        assert "weights.hdf5: cannot be read as HDF5" in fails(capsys, "info", folder)


class TestConvert:
    def test_there_and_back(self, model_folder, tmp_path, capsys):
        main(["convert", str(model_folder), str(tmp_path / "native")])
        main(["convert", str(tmp_path / "native"), str(tmp_path / "allenai"), "--to", "allenai"])
        assert "written in allenai format" in capsys.readouterr().out
        for one, other in zip(
            *(elmokit.load(place).embed([["a", "bank"]]) for place in (model_folder, tmp_path / "allenai")), strict=True
        ):
            np.testing.assert_array_equal(one, other)

    def test_mistakes(self, model_folder, tmp_path, capsys):
        assert "onnx" in fails(capsys, "convert", model_folder, tmp_path / "new", "--to", "onnx")
        assert "half precision" in fails(capsys, "convert", model_folder, tmp_path / "new", "--to", "allenai", "--half")
        assert "not empty" in fails(capsys, "convert", model_folder, model_folder)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("to", ["native", "allenai"])
    def test_full_disk(self, model_folder, tmp_path, to):
        done = run(
            *("convert", model_folder, tmp_path / "new", "--to", to),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000)),
        )
        assert done.returncode == 2, done.stderr
        assert f"{tmp_path / 'new'}: cannot be written: " in done.stderr
        assert done.stderr.count("\n") == 1
        assert list(tmp_path.iterdir()) == []


class TestBench:
    def test_a_model_of_ones_own(self, model_folder, tmp_path, capsys):
        text = (
            "The ferry was late, and nobody on the quay minded it very much, for the evening was warm and clear. " * 60
        )
        (tmp_path / "text.txt").write_text(text, encoding="utf-8")
        arguments = ["--text", str(tmp_path / "text.txt"), "--sentences", "30", "--rounds", "1", "--threads", "1"]
        main(["bench", "--model", str(model_folder), *arguments])
        rows = capsys.readouterr().out.splitlines()[-2:]
        assert [row.split(" | ")[1] for row in rows] == ["elmokit fp32", "elmokit int8"]
        for row in rows:
            assert float(row.split(" | ")[2].replace(",", "")) > 0

    def test_mistakes(self, tmp_path, capsys):
        (tmp_path / "short.txt").write_text("One sentence.", encoding="utf-8")
        assert "too few" in fails(capsys, "bench", "--text", tmp_path / "short.txt")
        assert "missing.txt" in fails(capsys, "bench", "--text", tmp_path / "missing.txt")
        assert "--rounds" in fails(capsys, "bench", "--rounds", "0")


class TestFrontDoor:
    def test_import_leaves_torch_alone(self):
        code = "import sys, elmokit; sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'h5py')))"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    def test_help_needs_no_heavy_import(self):
        commands = [[], *([command] for command in COMMANDS.split()), *map(str.split, SUBCOMMANDS)]
        code = (
            "import sys\nfrom elmokit.cli import main\n"
            f"for command in {commands}:\n"
            "    main([*command, '--help'])\n"
            "    assert not {'torch', 'numpy', 'h5py'} & sys.modules.keys(), command\n"
        )
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        pages = done.stdout.split("Usage: elmokit")[1:]
        assert len(pages) == len(commands)
        for command, page in zip(commands, pages, strict=True):
            assert "Example: elmokit" in page or command in ([], ["static"], ["index"], ["task"]), command

    def test_version(self, capsys):
        main(["--version"])
        assert capsys.readouterr().out.strip() == elmokit.__version__

    @pytest.mark.parametrize("command", [["pretrain"], ["task", "train"], ["neighbors"], ["senses"], ["shift"]])
    def test_no_option_for_an_empty_list(self, command, capsys):
        main([*command, "--help"])
        assert "--empty" not in capsys.readouterr().out

    def test_all_recipes_and_bounds_are_named(self, capsys):
        main(["pretrain", "--help"])
        told = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert "<S>, </S> and <UNK>" in told
        assert f"{', '.join(recipe_names())}, or a .toml file" in told

    def test_shells_complete(self, capsys):
        main(["--help"])
        assert "--install-completion" in capsys.readouterr().out

    def test_numbers_of_things(self):
        assert [counted(number, "sentence") for number in (0, 1, 2_000)] == [
            "0 sentences",
            "1 sentence",
            "2,000 sentences",
        ]

    def test_a_model_is_overwritten_if_asked_for(self, model_folder, tmp_path, capsys):
        main(["convert", str(model_folder), str(tmp_path / "copy")])
        capsys.readouterr()
        assert "--overwrite" in fails(capsys, "convert", model_folder, tmp_path / "copy")
        main(["convert", str(model_folder), str(tmp_path / "copy"), "--overwrite"])

    def test_an_argument_too_many(self, capsys):
        error = fails(capsys, "serve", "en", "zh", "--port", "0")
        assert error == "elmokit: en zh: elmokit serve takes no such argument: see elmokit serve --help"

    def test_unknown_command(self, capsys):
        assert "embd" in fails(capsys, "embd")

    def test_public_names(self):
        assert set(dir(elmokit)) == {"load", "Elmo", "ElmoEmbedding", "ScalarMix", "__version__"}
        for name in dir(elmokit):
            assert getattr(elmokit, name)
        with pytest.raises(AttributeError, match="nonsense"):
            _ = elmokit.nonsense


CTRL_C = """
import signal, sys, time
from elmokit import cli
from elmokit.errors import ElmoError
from elmokit.__main__ import main

class Swallowing:
    def __del__(self):  # Python drops what is raised here
        raise KeyboardInterrupt

def in_a_destructor(*_, **__):
    Swallowing()
    time.sleep(60)

def in_an_import(*_, **__):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    import torch
    time.sleep(60)

def in_torch(*_, **__):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ElmoError("x: cannot be read")

signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
cli.app = {command}
main()
"""


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("in_a_destructor", "interrupted; nothing half-written is left"),
        ("in_an_import", "interrupted; nothing half-written is left"),
        ("in_torch", "x: cannot be read"),
    ],
)
def test_ctrl_c_is_never_lost(command, message):
    code = CTRL_C.replace("{command}", command)
    settings = {"capture_output": True, "text": True, "timeout": 60, "preexec_fn": hear_interrupts}
    done = subprocess.run([sys.executable, "-c", code], check=False, **settings)
    assert done.returncode == 130
    assert done.stderr == f"elmokit: {message}\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_memory_does_not_grow_with_the_input(tmp_path, model_folder):
    """Each thousand short sentences more take at most 1.5 MB, for their index."""
    code = (
        "import sys\nfrom elmokit.cli import main\nmain(sys.argv[1:])\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    peaks = []
    for count in (10_000, 50_000):
        lines = "".join(f"sentence {number} is short .\n" for number in range(count))
        arguments = ["embed", "-", "-m", model_folder, "-o", tmp_path / "v.h5", "--tokenizer", "whitespace"]
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], input=lines, capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout.split()[-1]) / 1024)
        (tmp_path / "v.h5").unlink()
    assert peaks[1] - peaks[0] < 60, peaks


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk"])
def test_a_terminal_that_lacks_characters(encoding):
    """What it cannot show stands there by its number."""
    done = subprocess.run(
        [sys.executable, "-m", "elmokit", "info", "zh"],
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"vocabulary" in done.stdout
    assert (b"\\u2192" in done.stdout) == (encoding != "gbk")
