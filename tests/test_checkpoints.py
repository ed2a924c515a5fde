"""One contract for every format, and how a model is found on disk."""

import json
import shutil

import h5py
import pytest
import torch
from conftest import BYTES, CONFIGS, GOLDEN, VOCABULARY, random_checkpoint
from safetensors.torch import load_file, save_file

import elmokit
from elmokit.checkpoints import FORMATS, native, read_checkpoint, write_checkpoint
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.errors import CheckpointError, ConfigError, OutputError

WEIGHTS_FILE = {"native": "model.safetensors", "allenai": "weights.hdf5"}
DESCRIPTION_FILE = {"native": "config.json", "allenai": "options.json"}


@pytest.fixture(params=[candidate.NAME for candidate in FORMATS])
def name(request):
    return request.param


@pytest.fixture
def folder(tmp_path, name):
    write_checkpoint(random_checkpoint(BYTES), tmp_path / "model", to=name)
    return tmp_path / "model"


def assert_same_weights(one: Checkpoint, other: Checkpoint) -> None:
    assert one.weights.keys() == other.weights.keys()
    for weight_name, weight in one.weights.items():
        assert torch.equal(weight, other.weights[weight_name]), weight_name


class TestEveryFormat:
    def test_round_trip(self, folder):
        again = read_checkpoint(folder)
        assert again.config == BYTES
        assert_same_weights(again, random_checkpoint(BYTES))

    def test_reads_from_either_file_too(self, folder, name):
        for file in (WEIGHTS_FILE[name], DESCRIPTION_FILE[name]):
            assert_same_weights(read_checkpoint(folder / file), random_checkpoint(BYTES))

    def test_keeps_the_vocabulary(self, tmp_path, name):
        checkpoint = random_checkpoint(BYTES)
        write_checkpoint(Checkpoint(BYTES, checkpoint.weights, VOCABULARY, ""), tmp_path / "model", to=name)
        assert read_checkpoint(tmp_path / "model").vocabulary.words == VOCABULARY.words

    @pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
    def test_truncated_weights(self, folder, name, share):
        file = folder / WEIGHTS_FILE[name]
        file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
        with pytest.raises(CheckpointError, match=f"{WEIGHTS_FILE[name]}.*Is it complete"):
            read_checkpoint(folder)

    def test_missing_weights(self, folder, name):
        (folder / WEIGHTS_FILE[name]).unlink()
        with pytest.raises(CheckpointError, match="model"):
            read_checkpoint(folder)

    def test_missing_description(self, folder, name):
        (folder / DESCRIPTION_FILE[name]).unlink()
        with pytest.raises(CheckpointError, match=DESCRIPTION_FILE[name]):
            read_checkpoint(folder)

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"lstm": 3}'])
    def test_description_that_is_not_one(self, folder, name, content):
        (folder / DESCRIPTION_FILE[name]).write_bytes(content)
        with pytest.raises(CheckpointError, match=DESCRIPTION_FILE[name]):
            read_checkpoint(folder)

    def test_description_of_another_model(self, folder, name):
        file = folder / DESCRIPTION_FILE[name]
        file.write_text(file.read_text().replace("24", "20"))
        with pytest.raises(CheckpointError, match=r"expected .*; .*expected .*Is it from another model"):
            read_checkpoint(folder)

    def test_missing_and_extra_tensors_are_all_listed(self, folder, name):
        removed = _edit_weights(folder / WEIGHTS_FILE[name])
        with pytest.raises(CheckpointError) as caught:
            read_checkpoint(folder)
        for part in (f"'{removed}' is missing", "'surplus' is not expected"):
            assert part in str(caught.value)

    def test_does_not_overwrite_unasked(self, folder, name):
        before = (folder / WEIGHTS_FILE[name]).read_bytes()
        with pytest.raises(OutputError, match="not empty"):
            write_checkpoint(random_checkpoint(BYTES, seed=1), folder, to=name)
        assert (folder / WEIGHTS_FILE[name]).read_bytes() == before
        write_checkpoint(random_checkpoint(BYTES, seed=1), folder, to=name, overwrite=True)
        assert_same_weights(read_checkpoint(folder), random_checkpoint(BYTES, seed=1))
        assert [path.name for path in folder.parent.iterdir()] == ["model"]

    def test_never_overwrites_what_is_not_a_model(self, folder, name):
        (folder / "thesis.tex").write_text("years of work")
        with pytest.raises(OutputError, match=r"thesis\.tex"):
            write_checkpoint(random_checkpoint(BYTES), folder, to=name, overwrite=True)
        assert (folder / "thesis.tex").read_text() == "years of work"


def _edit_weights(path) -> str:
    """Take one tensor away and add another; the name of the one taken."""
    if path.suffix == ".hdf5":
        with h5py.File(path, "a") as file:
            del file["CNN/b_cnn_0"]
            file["surplus"] = [1.0]
        return "CNN/b_cnn_0"
    weights = load_file(path)
    removed = sorted(weights)[0]
    del weights[removed]
    save_file(weights | {"surplus": torch.ones(1)}, path)
    return removed


def test_native_holds_every_config(config, tmp_path):
    checkpoint = random_checkpoint(config)
    write_checkpoint(checkpoint, tmp_path / "model")
    again = read_checkpoint(tmp_path / "model")
    assert again.config == config
    assert_same_weights(again, checkpoint)


@pytest.mark.parametrize("case", ["base", "no_skip", "three_layers", "bare", "filters_equal_projection"])
def test_allenai_to_native_and_back_is_identical(case, tmp_path):
    write_checkpoint(read_checkpoint(GOLDEN / case), tmp_path / "native")
    write_checkpoint(read_checkpoint(tmp_path / "native"), tmp_path / "allenai", to="allenai")
    with h5py.File(GOLDEN / case / "weights.hdf5") as before, h5py.File(tmp_path / "allenai" / "weights.hdf5") as after:
        names: list[str] = []
        before.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        assert names
        for name in names:
            assert before[name].shape == after[name].shape
            assert before[name][()].tobytes() == after[name][()].tobytes()
    options = [json.loads((folder / "options.json").read_text()) for folder in (GOLDEN / case, tmp_path / "allenai")]
    assert options[0]["lstm"] == options[1]["lstm"]
    assert options[0]["char_cnn"] == options[1]["char_cnn"]


@pytest.mark.parametrize("name", ["gru", "unicode", "words", "words_and_characters"])
def test_allenai_says_what_it_cannot_hold(name, tmp_path):
    with pytest.raises(CheckpointError, match="cannot hold this model: "):
        write_checkpoint(random_checkpoint(CONFIGS[name]), tmp_path / "model", to="allenai")
    assert not (tmp_path / "model").exists()


def test_half_precision_halves_the_file(tmp_path):
    checkpoint = random_checkpoint(BYTES)
    write_checkpoint(checkpoint, tmp_path / "full")
    write_checkpoint(checkpoint, tmp_path / "half", half=True)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("full", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    for name, weight in read_checkpoint(tmp_path / "half").weights.items():
        assert weight.dtype == torch.float32
        torch.testing.assert_close(weight, checkpoint.weights[name], atol=1e-3, rtol=1e-3)


def test_half_precision_refuses_to_overflow(tmp_path):
    checkpoint = random_checkpoint(BYTES, scale=1e6)
    with pytest.raises(CheckpointError, match="too large for half"):
        write_checkpoint(checkpoint, tmp_path / "half", half=True)


def test_newer_format_version_is_refused(tmp_path):
    write_checkpoint(random_checkpoint(BYTES), tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    file.write_text(file.read_text().replace(f'"version": {native.VERSION}', '"version": 99'))
    with pytest.raises(CheckpointError, match="version 99"):
        read_checkpoint(tmp_path / "model")


def test_vocabulary_must_fit_the_word_vectors(tmp_path):
    write_checkpoint(random_checkpoint(CONFIGS["words"]), tmp_path / "model")
    (tmp_path / "model" / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    with pytest.raises(CheckpointError, match=r"vocab\.txt: 3 words"):
        read_checkpoint(tmp_path / "model")


def test_unknown_format(tmp_path):
    with pytest.raises(ConfigError, match="unknown format 'onnx': known are native, allenai"):
        write_checkpoint(random_checkpoint(BYTES), tmp_path / "model", to="onnx")


def test_nothing_there(tmp_path):
    with pytest.raises(CheckpointError, match="no such file"):
        elmokit.load(tmp_path / "missing")
    with pytest.raises(CheckpointError, match="no model was recognised"):
        elmokit.load(tmp_path)


class TestFindingAllenAiFiles:
    @pytest.fixture
    def base(self, tmp_path):
        return shutil.copytree(GOLDEN / "base", tmp_path / "base")

    def test_weights_of_any_name_find_options_json(self, base):
        weights = (base / "weights.hdf5").rename(base / "anything.h5")
        assert read_checkpoint(weights).config == read_checkpoint(GOLDEN / "base").config

    def test_weights_find_the_options_of_their_own_name(self, base):
        """As published: elmo_…_options.json beside elmo_…_weights.hdf5, and other models in the same folder."""
        (base / "weights.hdf5").rename(base / "elmo_2x16_weights.hdf5")
        (base / "options.json").rename(base / "elmo_2x16_options.json")
        shutil.copy(GOLDEN / "three_layers" / "options.json", base / "options.json")
        for start in ("elmo_2x16_weights.hdf5", "elmo_2x16_options.json"):
            assert read_checkpoint(base / start).config.layers == 2

    def test_folder_takes_the_file_that_holds_a_bilm(self, base):
        with h5py.File(base / "a_cache.hdf5", "w") as file:
            file["embedding"] = [[1.0]]
        (base / "broken.hdf5").write_bytes(b"not hdf5")
        assert read_checkpoint(base).source.endswith("weights.hdf5)")

    def test_folder_with_two_bilms_is_not_clear(self, base):
        shutil.copy(base / "weights.hdf5", base / "other.hdf5")
        with pytest.raises(CheckpointError, match=r"more than one HDF5 file holds a biLM \(other.hdf5, weights.hdf5\)"):
            read_checkpoint(base)
        assert read_checkpoint(base / "other.hdf5").config.layers == 2

    def test_folder_with_none(self, base):
        (base / "weights.hdf5").unlink()
        for name in ("one.hdf5", "two.hdf5"):
            with h5py.File(base / name, "w") as file:
                file["embedding"] = [[1.0]]
        with pytest.raises(CheckpointError, match="no HDF5 file holds a biLM"):
            read_checkpoint(base)

    def test_either_count_of_characters(self, base):
        options = base / "options.json"
        text = options.read_text()
        assert "262" in text
        options.write_text(text.replace("262", "261"))
        assert_same_weights(read_checkpoint(base), read_checkpoint(GOLDEN / "base"))
        options.write_text(text.replace("262", "300"))
        with pytest.raises(CheckpointError, match="n_characters"):
            read_checkpoint(base)


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
