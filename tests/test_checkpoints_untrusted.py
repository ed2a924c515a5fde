"""Files from strangers: archives, pickles and HDF5 made to do harm."""

import gzip
import io
import json
import os
import pickle
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

import h5py
import pytest
import torch
from conftest import GOLDEN
from specimens import ARCHIVES, FIXTURES, SPECIMENS, assert_same_weights

from elmokit.checkpoints import read_checkpoint
from elmokit.errors import CheckpointError, DataError


@pytest.fixture(params=ARCHIVES)
def archive(request, tmp_path) -> Path:
    return shutil.copy(ARCHIVES[request.param], tmp_path / ARCHIVES[request.param].name)


class TestEveryArchive:
    def test_names_itself_and_leaves_nothing_behind(self, archive, tmp_path, monkeypatch):
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
        assert str(archive) in read_checkpoint(archive).source
        assert not list((tmp_path / "temporary").glob("elmokit-*"))

    def test_model_at_any_depth(self, archive, tmp_path):
        repack(archive, lambda name: f"home/author/216/{name}")
        assert_same_weights(read_checkpoint(archive), read_checkpoint(ARCHIVES[archive.name.partition(".")[2]]))

    @pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
    def test_truncated(self, archive, share):
        archive.write_bytes(archive.read_bytes()[: int(share * archive.stat().st_size)])
        with pytest.raises(CheckpointError, match=f"{archive.name}.*Is it complete|no model is in it"):
            read_checkpoint(archive)

    @pytest.mark.parametrize("name", ["../outside.txt", "a/../../outside.txt", "/outside.txt", "..\\outside.txt"])
    def test_names_that_lead_elsewhere(self, archive, tmp_path, name):
        repack(archive, str, {name: b"planted"})
        with pytest.raises(CheckpointError, match="a name that leads elsewhere"):
            read_checkpoint(archive)
        assert not list(tmp_path.parent.rglob("outside.txt"))
        assert not Path("/outside.txt").exists()

    def test_bomb(self, archive):
        repack(archive, str, {"vocab.txt": bytes(200 * archive.stat().st_size)})
        with pytest.raises(CheckpointError, match="unpacks to more than 100 times its size"):
            read_checkpoint(archive)

    def test_countless_empty_files(self, archive):
        repack(archive, str, {f"{number}": b"" for number in range(1000)})
        with pytest.raises(CheckpointError, match="holds more than 1,000 files"):
            read_checkpoint(archive)

    def test_errors_tell_where_in_the_archive(self, archive):
        member = {"zip": "model.hdf5", "tar.gz": "weights.th"}[archive.name.partition(".")[2]]
        repack(archive, str, {member: b"damaged" * 1000})
        with pytest.raises(CheckpointError, match=f"{archive.name}/{member}: cannot be read"):
            read_checkpoint(archive)

    def test_two_models(self, archive):
        repack(archive, lambda name: f"one/{name}", {f"two/{name}": text for name, text in members(archive).items()})
        with pytest.raises(CheckpointError, match=r"more than one model is in it \(one, two\)"):
            read_checkpoint(archive)

    def test_none(self, archive):
        repack(archive, lambda name: f"{name}.bak")
        with pytest.raises(CheckpointError, match="no model is in it"):
            read_checkpoint(archive)


def members(archive: Path) -> dict[str, bytes]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as file:
            return {name: file.read(name) for name in file.namelist()}
    with tarfile.open(archive) as file:
        return {info.name: file.extractfile(info).read() for info in file}


def repack(archive: Path, rename: Callable[[str], str], more: dict[str, bytes] | None = None) -> None:
    """Pack the same files under other names, and more files or others in their places."""
    files = {rename(name): content for name, content in members(archive).items()} | (more or {})
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in files.items():
                file.writestr(name, content)
        return
    with tarfile.open(archive, "w:gz") as file:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))


def test_other_packings(tmp_path):
    checkpoint = read_checkpoint(FIXTURES / "manylangs")
    for mode, ending in (("w:bz2", "tar.bz2"), ("w:xz", "tar.xz"), ("w", "tar"), ("w:gz", "tgz")):
        path = tmp_path / f"zhs.model.{ending}"
        with tarfile.open(path, mode) as file:
            file.add(FIXTURES / "manylangs", "zhs.model")
        assert_same_weights(read_checkpoint(path), checkpoint)


def test_packed_vocabulary(tmp_path):
    folder = shutil.copytree(FIXTURES / "words", tmp_path / "words")
    expected = read_checkpoint(folder)
    (folder / "vocab.txt.gz").write_bytes(gzip.compress((folder / "vocab.txt").read_bytes()))
    (folder / "vocab.txt").unlink()
    assert read_checkpoint(folder).vocabulary.words == expected.vocabulary.words
    (folder / "vocab.txt.gz").write_bytes(gzip.compress(b"a\n" * 10**6))
    with pytest.raises(CheckpointError, match="unpacks to more than 100 times its size"):
        read_checkpoint(folder)
    (folder / "vocab.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match=r"vocab.txt.gz: the vocabulary cannot be read"):
        read_checkpoint(folder)


def test_links_in_an_archive_are_not_followed(tmp_path):
    archive = shutil.copy(ARCHIVES["tar.gz"], tmp_path / "model.tar.gz")
    files = members(archive)
    with tarfile.open(archive, "w") as file:
        for name in files:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
            file.addfile(info)
    archive = archive.rename(tmp_path / "model.tar")
    with pytest.raises(CheckpointError, match="no model is in it"):
        read_checkpoint(archive)


class Malice:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self):
        return os.mkdir, (str(self.file),)


@pytest.mark.parametrize("name", ["manylangs", "manylangs, tokens", "allennlp"])
class TestPickles:
    @pytest.fixture
    def folder(self, tmp_path, name):
        SPECIMENS[name].make(tmp_path / "model")
        return tmp_path / "model"

    @pytest.mark.parametrize("zipped", [True, False])
    def test_code_is_not_run(self, folder, name, tmp_path, zipped):
        planted, file = tmp_path / "planted", folder / SPECIMENS[name].weights
        state = torch.load(file, weights_only=True) | {"malice": Malice(planted)}
        torch.save(state, file, _use_new_zipfile_serialization=zipped)
        torch.load(file, weights_only=False)
        assert planted.exists(), "the pickle is harmless, so nothing would be proved"
        planted.rmdir()
        with pytest.raises(CheckpointError, match="holds more than tensors"):
            read_checkpoint(folder)
        assert not planted.exists()

    def test_bare_pickle(self, folder, name, tmp_path):
        planted = tmp_path / "planted"
        (folder / SPECIMENS[name].weights).write_bytes(pickle.dumps(Malice(planted)))
        with pytest.raises(CheckpointError, match=SPECIMENS[name].weights):
            read_checkpoint(folder)
        assert not planted.exists()

    @pytest.mark.parametrize("zipped", [True, False])
    def test_old_and_new_files_of_torch(self, folder, name, zipped):
        file = folder / SPECIMENS[name].weights
        before = read_checkpoint(folder)
        torch.save(torch.load(file, weights_only=True), file, _use_new_zipfile_serialization=zipped)
        assert zipfile.is_zipfile(file) == zipped
        assert_same_weights(read_checkpoint(folder), before)

    def test_numbers_that_are_not_there(self, folder, name):
        file = folder / SPECIMENS[name].weights
        state = torch.load(file, weights_only=True)
        some = next(iter(state))
        torch.save(state | {some: torch.zeros(1).expand(10**12)}, file)
        with pytest.raises(CheckpointError, match="more numbers than the file can hold"):
            read_checkpoint(folder)

    def test_compressed_numbers(self, folder, name, tmp_path):
        file, packed = folder / SPECIMENS[name].weights, tmp_path / "packed"
        torch.save(torch.load(file, weights_only=True) | {"zeros": torch.zeros(10**6)}, file)
        with zipfile.ZipFile(file) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
            for member in source.namelist():
                target.writestr(member, source.read(member))
        packed.rename(file)
        with pytest.raises(CheckpointError, match="unpacks to more than its own size"):
            read_checkpoint(folder)

    def test_something_else(self, folder, name):
        torch.save([1, 2], folder / SPECIMENS[name].weights)
        with pytest.raises(CheckpointError, match="not a state dict"):
            read_checkpoint(folder)

    def test_whole_numbers(self, folder, name):
        file = folder / SPECIMENS[name].weights
        state = torch.load(file, weights_only=True)
        some = next(key for key in state if "linearity.bias" in key or "projection.bias" in key)
        torch.save(state | {some: state[some].int()}, file)
        with pytest.raises(CheckpointError, match="expected floating-point"):
            read_checkpoint(folder)


class TestUntrustedHdf5:
    @pytest.fixture
    def base(self, tmp_path):
        return shutil.copytree(GOLDEN / "base", tmp_path / "base")

    def test_numbers_that_are_not_there(self, base):
        options = json.loads((base / "options.json").read_text())
        options["char_cnn"]["embedding"]["dim"] = 10**9
        (base / "options.json").write_text(json.dumps(options))
        with h5py.File(base / "weights.hdf5", "a") as file:
            del file["char_embed"]
            file.create_dataset("char_embed", (261, 10**9), dtype="f4", chunks=(1, 1024))
            for i, (width, count) in enumerate(options["char_cnn"]["filters"]):
                del file[f"CNN/W_cnn_{i}"]
                file.create_dataset(f"CNN/W_cnn_{i}", (1, width, 10**9, count), dtype="f4", chunks=(1, 1, 1024, 1))
        with pytest.raises(CheckpointError, match="far more than the file can hold"):
            read_checkpoint(base)

    def test_many_numbers_that_are_not_there(self, base):
        """None is much by itself; their sum is."""
        options = json.loads((base / "options.json").read_text())
        options["lstm"]["n_layers"] = 50
        (base / "options.json").write_text(json.dumps(options))
        with h5py.File(base / "weights.hdf5", "a") as file:
            width, hidden = options["lstm"]["projection_dim"], options["lstm"]["dim"]
            shapes = {"W_0": (2 * width, 4 * hidden), "B": (4 * hidden,), "W_P_0": (hidden, width)}
            for direction, layer, (name, shape) in product((0, 1), range(50), shapes.items()):
                path = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/{name}"
                if path not in file:
                    file.create_dataset(path, shape, dtype="f8", chunks=True)
            for number in range(2000):  # not the model's
                file.create_dataset(f"more/{number}", (1 << 20,), dtype="f8", chunks=(1 << 20,))
        with pytest.raises(CheckpointError, match=r"claim [\d,]+ bytes, far more than the file can hold"):
            read_checkpoint(base)

    def test_numbers_kept_in_another_file(self, base, tmp_path):
        secret = tmp_path / "secret.bin"
        secret.write_bytes(bytes(261 * 4 * 4))
        with h5py.File(base / "weights.hdf5", "a") as file:
            del file["char_embed"]
            file.create_dataset("char_embed", (261, 4), dtype="f4", external=[(str(secret), 0, 261 * 4 * 4)])
        with pytest.raises(CheckpointError, match="another file"):
            read_checkpoint(base)

    def test_text_for_numbers(self, base):
        with h5py.File(base / "weights.hdf5", "a") as file:
            shape = file["CNN/b_cnn_0"].shape
            del file["CNN/b_cnn_0"]
            file.create_dataset("CNN/b_cnn_0", shape, dtype="i4")
        with pytest.raises(CheckpointError, match="expected floating-point"):
            read_checkpoint(base)


def test_names_that_are_not_utf8(tmp_path):
    """Those of files that are no part of the model do not matter."""
    path = tmp_path / "model.tar"
    with tarfile.open(path, "w", encoding="latin-1", errors="strict") as file:
        file.add(FIXTURES / "manylangs", "zhs.model")
        file.addfile(tarfile.TarInfo("caf\u00e9.txt"))
    assert_same_weights(read_checkpoint(path), read_checkpoint(FIXTURES / "manylangs"))


def test_half_characters_in_a_config(tmp_path):
    folder = tmp_path / "model"
    SPECIMENS["native"].make(folder)
    for old in ('"bytes"', '"auto"'):
        content = (folder / "config.json").read_text()
        (folder / "config.json").write_text(content.replace(old, '"\\ud800"'))
        with pytest.raises(CheckpointError, match=r"config.json: cannot be read as JSON"):
            read_checkpoint(folder)
        (folder / "config.json").write_text(content)


@pytest.mark.parametrize("name", ["native", "allenai", "manylangs"])
def test_words_of_countless_characters(name, tmp_path):
    """Each word would take so many numbers."""
    folder = tmp_path / "model"
    SPECIMENS[name].make(folder)
    description = folder / SPECIMENS[name].description
    changed = re.sub(r'("max_characters\w*"): \d+', r"\1: 1000000000", description.read_text())
    description.write_text(changed)
    with pytest.raises(CheckpointError, match="max_characters is 1000000000: it must be at most 1000"):
        read_checkpoint(folder)


@pytest.mark.parametrize(("part", "name"), [("lstm", "n_layers"), ("char_cnn", "n_highway")])
def test_more_layers_than_there_can_be(part, name, tmp_path):
    """They are refused before any is made."""
    folder = shutil.copytree(GOLDEN / "base", tmp_path / "base")
    options = json.loads((folder / "options.json").read_text())
    options[part][name] = 10**9
    (folder / "options.json").write_text(json.dumps(options))
    with pytest.raises(CheckpointError, match=r"options.json: .* is 1000000000: it must be at most 100"):
        read_checkpoint(folder)
