"""Work in parts: the same bytes for any number of shards and in any order; what is done is not done again."""

import json
import os
import re
from itertools import permutations
from pathlib import Path

import pytest
from conftest import BYTES, random_checkpoint
from safetensors import safe_open

from elmokit.checkpoints import write_checkpoint
from elmokit.cli import main
from elmokit.shards import Shard, read_shard
from elmokit.vectors import read_vectors

SAMPLES = Path(__file__).parents[1] / "samples"
FORMATS = (".h5", ".npz", ".safetensors", ".parquet")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A model, and a text of many short documents in two languages."""
    folder = tmp_path_factory.mktemp("home")
    write_checkpoint(random_checkpoint(BYTES), folder / "model", to="allenai")
    texts = ((SAMPLES / name).read_text(encoding="utf-8").splitlines()[:60] for name in ("en.txt", "zh.txt"))
    documents = ["\n".join(lines[start : start + 7]) for lines in texts for start in range(0, len(lines), 7)]
    lines = (json.dumps({"text": text}) + "\n" for text in documents)
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def here(home, monkeypatch):
    monkeypatch.chdir(home)


def embed(output: Path, *options: str) -> None:
    main(["embed", "a.jsonl", "-m", "model", "-o", str(output), *options])


@pytest.fixture(scope="module")
def whole(home) -> dict[str, bytes]:
    """The files of the command without shards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        for ending in FORMATS:
            embed(home / f"whole{ending}")
    return {ending: (home / f"whole{ending}").read_bytes() for ending in FORMATS}


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("count", [1, 3, 40])  # 40 are more than there are documents
def test_any_number_of_shards_makes_the_same_bytes(ending, count, tmp_path, here, whole):
    embed(tmp_path / f"v{ending}", "--shards", str(count))
    assert (tmp_path / f"v{ending}").read_bytes() == whole[ending]
    assert [path.name for path in tmp_path.iterdir()] == [f"v{ending}"]


def test_any_order_makes_the_same_bytes(tmp_path, here, whole, capsys):
    for number, order in enumerate(permutations((1, 2, 3))):
        output = tmp_path / f"{number}.npz"
        for shard in order:
            embed(output, "--shard", f"{shard}/3")
            assert not output.exists()
        assert len(list((tmp_path / f"{number}.npz.shards").iterdir())) == 3
        embed(output, "--shards", "3")
        assert output.read_bytes() == whole[".npz"]
    assert "shard 3/3 is done" in capsys.readouterr().out


def test_batches_do_not_matter(tmp_path, here, whole):
    embed(tmp_path / "v.npz", "--shards", "2", "--batch-tokens", "50")
    assert (tmp_path / "v.npz").read_bytes() == whole[".npz"]


def test_all_layers(tmp_path, here):
    embed(tmp_path / "one.npz", "--layers", "all")
    embed(tmp_path / "two.npz", "--layers", "all", "--shards", "2")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert next(read_vectors(tmp_path / "two.npz")).ndim == 3


def test_blank_lines_that_are_sentences(tmp_path, here):
    text = tmp_path / "a.txt"
    text.write_text("\n\nOne line.\n\n" * 8000, encoding="utf-8")
    for name, options in {"one": (), "two": ("--shards", "2")}.items():
        main(["embed", str(text), "-m", "model", "-o", str(tmp_path / f"{name}.npz"), "--lines", "sentences", *options])
    assert text.stat().st_size > 100_000  # two documents
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_a_finished_shard_is_skipped(tmp_path, here, whole, capsys):
    embed(tmp_path / "v.npz", "--shard", "2/3")
    [path] = (tmp_path / "v.npz.shards").iterdir()
    os.utime(path, (0, 0))
    embed(tmp_path / "v.npz", "--shard", "2/3")
    assert "shard 2/3 was done already" in capsys.readouterr().out
    embed(tmp_path / "v.npz", "--shard", "1/3")
    assert path.stat().st_mtime == 0
    embed(tmp_path / "v.npz", "--shards", "3")
    assert "shard 2/3" not in capsys.readouterr().err
    assert (tmp_path / "v.npz").read_bytes() == whole[".npz"]


@pytest.mark.parametrize("change", [["--layers", "top"], ["--tokenizer", "characters"], ["--precision", "int8"]])
def test_shards_of_another_kind_are_not_mixed_in(change, tmp_path, here, whole):
    embed(tmp_path / "v.npz", "--shard", "1/2", *change)
    embed(tmp_path / "v.npz", "--shards", "2")
    assert (tmp_path / "v.npz").read_bytes() == whole[".npz"]
    assert not (tmp_path / "v.npz.shards").exists()


def test_shards_of_another_text_are_not_mixed_in(tmp_path, home, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (home / "a.jsonl").read_text(encoding="utf-8")
    for name, content in {"then": text.replace("the", "The"), "now": text}.items():
        Path("a.jsonl").write_text(content, encoding="utf-8")
        main(
            ["embed", "a.jsonl", "-m", str(home / "model"), "-o", "v.npz", *{"then": ["--shard", "1/2"]}.get(name, [])]
        )
    one = Path("v.npz").read_bytes()
    main(["embed", "a.jsonl", "-m", str(home / "model"), "-o", "v.npz", "--shards", "2"])
    assert Path("v.npz").read_bytes() == one


def test_a_damaged_shard_is_named(tmp_path, here, capsys):
    embed(tmp_path / "v.npz", "--shard", "1/2")
    [path] = (tmp_path / "v.npz.shards").iterdir()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(SystemExit):
        embed(tmp_path / "v.npz", "--shards", "2")
    assert f"{path}: cannot be read as a shard of vectors" in capsys.readouterr().err
    assert not (tmp_path / "v.npz").exists()
    assert path.exists()


def test_a_shard_with_a_vector_that_is_none_is_named(tmp_path, here, capsys):
    embed(tmp_path / "v.npz", "--shard", "1/2")
    [path] = (tmp_path / "v.npz.shards").iterdir()
    with safe_open(path, framework="np") as file:
        size = file.get_tensor("vectors")[:1].nbytes
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    start = 8 + int.from_bytes(content[:8], "little") + header["vectors"]["data_offsets"][0]
    path.write_bytes(content[:start] + b"\xff" * size + content[start + size :])
    with pytest.raises(SystemExit):
        embed(tmp_path / "v.npz", "--shards", "2")
    assert f"{path}: cannot be read as a shard of vectors: vectors that are NaN" in capsys.readouterr().err
    assert not (tmp_path / "v.npz").exists()


def test_what_is_not_ours_stays(tmp_path, here):
    embed(tmp_path / "v.npz", "--shard", "1/2")
    (tmp_path / "v.npz.shards" / "notes.txt").write_text("mine")
    embed(tmp_path / "v.npz", "--shards", "2")
    assert (tmp_path / "v.npz.shards" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("wrong", ["0/3", "4/3", "1", "a/b", "1/0", "-1/2", ""])
def test_a_wrong_shard(wrong, tmp_path, here, capsys):
    with pytest.raises(SystemExit):
        embed(tmp_path / "v.npz", f"--shard={wrong}")
    assert "write it as k/n, from 1/n to n/n, such as 2/4" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_standard_input_is_no_text_to_divide(tmp_path, here, capsys):
    with pytest.raises(SystemExit):
        main(["embed", "-", "-m", "model", "-o", str(tmp_path / "v.npz"), "--shards", "2"])
    assert "standard input cannot be divided into shards: save it as a file" in capsys.readouterr().err


def test_every_document_is_dealt_once():
    for total in range(1, 9):
        shards = [Shard(number, total) for number in range(1, total + 1)]
        assert all(sum(shard.takes(index) for shard in shards) == 1 for index in range(50))
    assert str(read_shard("2/4")) == "2/4"


def test_an_index_of_shards_is_that_of_the_whole(tmp_path, here):
    pytest.importorskip("lancedb", reason="needs the extra 'search'")
    from test_index import assert_same_rows

    (tmp_path / "dates.csv").write_text("document,date\na.jsonl:2,1999\n")
    build = ["index", "build", "a.jsonl", "-m", "model", "--metadata", str(tmp_path / "dates.csv"), "-o"]
    main([*build, str(tmp_path / "one")])
    main([*build, str(tmp_path / "two"), "--shard", "2/3"])
    assert not (tmp_path / "two").exists()
    main([*build, str(tmp_path / "two"), "--shards", "3"])
    assert_same_rows(tmp_path / "one", tmp_path / "two")
    for name in ("words.safetensors", "documents.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert json.loads((tmp_path / "two" / "documents.json").read_text())["a.jsonl:2"] == {"date": "1999"}
    assert not (tmp_path / "two.shards").exists()


TINY = ["--recipe", "tiny", "--workers", "1", "-s", "training.epochs=0.02"]


def test_a_corpus_of_shards_is_that_of_the_whole(tmp_path, home, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [json.loads(line)["text"] for line in (home / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    Path("a.txt").write_text("\n".join(lines * 20), encoding="utf-8")  # several pieces
    assert Path("a.txt").stat().st_size > 200_000
    pretrain = ["pretrain", "a.txt", *TINY, "--valid", str(home / "a.jsonl"), "-o"]
    main([*pretrain, "one"])
    main([*pretrain, "two", "--shard", "3/3"])
    main([*pretrain, "two", "--shard", "1/3"])
    assert not Path("two").exists()
    main([*pretrain, "two", "--shards", "3"])
    assert not Path("two.shards").exists()
    names = sorted(path.name for path in Path("one/corpus").iterdir())
    assert names == sorted(path.name for path in Path("two/corpus").iterdir())
    for name in names:
        assert (Path("one/corpus") / name).read_bytes() == (Path("two/corpus") / name).read_bytes()
    assert Path("one/model.safetensors").read_bytes() == Path("two/model.safetensors").read_bytes()
    main([*pretrain, "two", "--shard", "1/3", "--resume"])  # it is prepared: there is nothing to do
    assert not Path("two.shards").exists()


def test_a_damaged_shard_of_words_is_named(tmp_path, home, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pretrain = ["pretrain", str(home / "a.jsonl"), *TINY, "-o", "run"]
    main([*pretrain, "--shard", "1/1"])
    [path] = Path("run.shards").iterdir()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(SystemExit):
        main([*pretrain, "--shards", "1"])
    assert f"{path}: cannot be read as a shard of numbered words" in capsys.readouterr().err


@pytest.fixture(scope="module")
def glove(home) -> bytes:
    """GloVe's vectors of the text, made without shards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        train_glove(home / "whole.txt")
    return (home / "whole.txt").read_bytes()


def train_glove(output: Path, *options: str) -> None:
    settings = ["--min-count", "2", "--dimensions", "5", "--epochs", "2", "--threads", "1"]
    memory = ["--memory-mb", "0.01"]  # so that sums are put aside on disk
    main(["static", "train", "glove", "a.jsonl", "-o", str(output), *settings, *memory, *options])


@pytest.mark.parametrize("count", [1, 3, 40])
def test_glove_of_shards_is_that_of_the_whole(count, tmp_path, here, glove):
    train_glove(tmp_path / "v.txt", "--shards", str(count))
    assert (tmp_path / "v.txt").read_bytes() == glove
    assert [path.name for path in tmp_path.iterdir()] == ["v.txt"]


def test_glove_of_shards_on_many_machines(tmp_path, here, glove, capsys):
    """A machine numbers its words; when all have, each counts its pairs; the last command joins and trains."""
    for number in (2, 1, 3, 1, 2, 2):
        train_glove(tmp_path / "v.txt", "--shard", f"{number}/3")
    found = re.findall(r"(\d)-of-3-\w+(\.counts)?\.npy: shard ./3 (.*)", capsys.readouterr().out)
    done, already = "is done", "was done already"
    assert found == [
        ("2", "", done),
        ("1", "", done),
        ("3", "", done),
        ("3", ".counts", done),  # it was the last
        ("1", "", already),
        ("1", ".counts", done),
        ("2", "", already),
        ("2", ".counts", done),
        ("2", "", already),
        ("2", ".counts", already),
    ]
    train_glove(tmp_path / "v.txt", "--shards", "3")
    assert (tmp_path / "v.txt").read_bytes() == glove
    assert [path.name for path in tmp_path.iterdir()] == ["v.txt"]


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: content[:-8] + bytes(8)])
def test_a_damaged_shard_of_counts_is_named(damage, tmp_path, here, capsys):
    for number in (1, 2, 1):
        train_glove(tmp_path / "v.txt", "--shard", f"{number}/2")
    [path] = (tmp_path / "v.txt.shards").glob("2-*.counts.npy")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(SystemExit):
        train_glove(tmp_path / "v.txt", "--shards", "2")
    assert f"{path}: cannot be read as a shard of counts" in capsys.readouterr().err
    assert not (tmp_path / "v.txt").exists()
