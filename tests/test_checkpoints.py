"""One contract for every format, and how a model is found on disk."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from conftest import BYTES, CONFIGS, GOLDEN, SENTENCES, VOCABULARY, random_checkpoint
from specimens import OPTIONS_IN_ARCHIVE, SPECIMENS, Specimen, assert_same_weights, edit_weights

import elmokit
from elmokit.checkpoints import FORMATS, WRITABLE, native, read_checkpoint, write_checkpoint
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.cli import main
from elmokit.elmo import Elmo
from elmokit.errors import CheckpointError, ConfigError, OutputError


@pytest.fixture(params=SPECIMENS)
def specimen(request) -> Specimen:
    return SPECIMENS[request.param]


@pytest.fixture
def folder(tmp_path, specimen) -> Path:
    specimen.make(tmp_path / "model")
    return tmp_path / "model"


def assert_same_vectors(one: Checkpoint, other: Checkpoint) -> None:
    vectors = [Elmo(checkpoint).embed(SENTENCES, layers="all") for checkpoint in (one, other)]
    for first, second in zip(*vectors, strict=True):
        # the forget gate's constant is added to the bias on one side of a conversion, at run time on the other
        np.testing.assert_allclose(first, second, atol=1e-5)


def test_every_format_has_a_specimen(tmp_path):
    read = set()
    for number, specimen in enumerate(SPECIMENS.values()):
        specimen.make(tmp_path / str(number))
        read.add(read_checkpoint(tmp_path / str(number) / specimen.start).source.partition(" (")[0])
    assert read == {candidate.NAME for candidate in FORMATS}


class TestEveryFormat:
    def test_to_native_and_back(self, folder, specimen, tmp_path):
        checkpoint = read_checkpoint(folder / specimen.start)
        write_checkpoint(checkpoint, tmp_path / "again")
        again = read_checkpoint(tmp_path / "again")
        assert again.config == checkpoint.config
        assert_same_weights(again, checkpoint)
        assert (again.vocabulary and again.vocabulary.words) == (checkpoint.vocabulary and checkpoint.vocabulary.words)

    def test_to_allenai_and_back_or_a_reason(self, folder, specimen, tmp_path):
        checkpoint = read_checkpoint(folder / specimen.start)
        if checkpoint.config.characters and checkpoint.config.characters.alphabet == "unicode":
            with pytest.raises(CheckpointError, match="beside characters, its characters are Unicode"):
                write_checkpoint(checkpoint, tmp_path / "again", to="allenai")
            return
        write_checkpoint(checkpoint, tmp_path / "again", to="allenai")
        assert_same_vectors(read_checkpoint(tmp_path / "again"), checkpoint)

    def test_reads_from_its_files_too(self, folder, specimen):
        for file in specimen.also:
            assert_same_weights(read_checkpoint(folder / file), read_checkpoint(folder / specimen.start))

    @pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
    def test_truncated_weights(self, folder, specimen, share):
        file = folder / specimen.weights
        file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
        with pytest.raises(CheckpointError, match=f"{specimen.weights}.*Is it complete"):
            read_checkpoint(folder / specimen.start)

    def test_missing_weights(self, folder, specimen):
        (folder / specimen.weights).unlink()
        with pytest.raises(CheckpointError, match=r"missing|no such|no weights|no model was recognised"):
            read_checkpoint(folder / specimen.start)

    def test_missing_description(self, folder, specimen):
        checkpoint = read_checkpoint(folder / specimen.start)
        (folder / specimen.description).unlink()
        if specimen.description == OPTIONS_IN_ARCHIVE:  # as is common: sizes are then told from the weights
            assert read_checkpoint(folder / specimen.start).config == checkpoint.config
            return
        with pytest.raises(CheckpointError, match=specimen.description):
            read_checkpoint(folder / specimen.start)

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"lstm": 3}'])
    def test_description_that_is_not_one(self, folder, specimen, content):
        (folder / specimen.description).write_bytes(content)
        with pytest.raises(CheckpointError, match=specimen.description):
            read_checkpoint(folder / specimen.start)

    def test_description_of_another_model(self, folder, specimen):
        file = folder / specimen.description
        assert specimen.sizes[0] in file.read_text()
        file.write_text(file.read_text().replace(*specimen.sizes))
        with pytest.raises(CheckpointError, match=r"expected .*; .*expected .*Is it from another model"):
            read_checkpoint(folder / specimen.start)

    def test_wrong_shape(self, folder, specimen):
        name = edit_weights(folder / (specimen.names or specimen.weights), shape=True)
        with pytest.raises(CheckpointError, match=f"'{name}' is .*, expected "):
            read_checkpoint(folder / specimen.start)

    def test_missing_and_extra_tensors_are_all_listed(self, folder, specimen):
        removed = edit_weights(folder / (specimen.names or specimen.weights))
        with pytest.raises(CheckpointError) as caught:
            read_checkpoint(folder / specimen.start)
        assert "surplus' is not expected" in str(caught.value)
        assert not removed or f"'{removed}' is missing" in str(caught.value)


class TestNumbersThatAreNone:
    """NaN and infinity are refused by the name of their tensor, in every format."""

    NAME = "forward_layers.1.bias"

    @pytest.fixture(params=[math.nan, math.inf, -math.inf])
    def damaged(self, request) -> Checkpoint:
        checkpoint = random_checkpoint(BYTES)
        checkpoint.weights[self.NAME][3] = request.param
        return checkpoint

    @pytest.mark.parametrize("name", ["native", "allenai"])
    def test_refused_unless_allowed(self, name, damaged, tmp_path):
        write_checkpoint(damaged, tmp_path / "model", to=name)
        with pytest.raises(CheckpointError, match=f"model.*: '{self.NAME}' holds 1 numbers of 96 that are NaN"):
            elmokit.load(tmp_path / "model")
        elmo = elmokit.load(tmp_path / "model", allow_nonfinite=True)
        assert not elmo.checkpoint().weights[self.NAME].isfinite().all()
        elmo.embed(["to be looked at"])

    @pytest.mark.parametrize("name", ["manylangs", "manylangs, tokens", "allennlp"])
    def test_of_torch(self, name, tmp_path):
        folder, specimen = tmp_path / "model", SPECIMENS[name]
        specimen.make(folder)
        state = torch.load(folder / specimen.weights, weights_only=True)
        some = next(key for key in state if "linearity.bias" in key or "projection.bias" in key)
        state[some][0] = math.nan
        torch.save(state, folder / specimen.weights)
        with pytest.raises(CheckpointError, match="that are NaN or infinite"):
            read_checkpoint(folder)

    def test_in_an_archive(self, damaged, tmp_path):
        write_checkpoint(damaged, tmp_path / "model")
        shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "model")
        with pytest.raises(CheckpointError, match=r"packed.zip.*'forward_layers.1.bias' holds"):
            read_checkpoint(tmp_path / "packed.zip")
        assert read_checkpoint(tmp_path / "packed.zip", allow_nonfinite=True)

    def test_finite_numbers_whose_sum_is_none(self, tmp_path):
        checkpoint = random_checkpoint(BYTES)
        checkpoint.weights[self.NAME][:] = 3e38
        write_checkpoint(checkpoint, tmp_path / "model")
        assert read_checkpoint(tmp_path / "model")

    def test_vectors_that_are_none(self, tmp_path):
        """Of weights that are numbers, but so large that their products are not."""
        checkpoint = random_checkpoint(BYTES)
        for weight in checkpoint.weights.values():
            weight *= 1e30
        write_checkpoint(checkpoint, tmp_path / "model")
        elmo = elmokit.load(tmp_path / "model")
        with pytest.raises(CheckpointError, match="its vectors are not finite: weights are far too large"):
            elmo.embed(["The bank of the river ."])
        assert elmokit.load(tmp_path / "model", allow_nonfinite=True).embed(["The bank"])

    def test_on_the_command_line(self, damaged, tmp_path, capsys):
        write_checkpoint(damaged, tmp_path / "model")
        (tmp_path / "text.txt").write_text("The bank of the river.")
        embed = ["embed", str(tmp_path / "text.txt"), "-m", str(tmp_path / "model"), "-o", str(tmp_path / "v.npz")]
        convert = ["convert", str(tmp_path / "model"), str(tmp_path / "copy")]
        for command in (["info", str(tmp_path / "model")], convert, embed):
            with pytest.raises(SystemExit):
                main(command)
            assert f"'{self.NAME}' holds 1 numbers of 96 that are NaN or infinite" in capsys.readouterr().err
            main([*command, "--allow-nonfinite"])


class TestEveryFormatWritten:
    @pytest.fixture(params=[candidate.NAME for candidate in WRITABLE])
    def name(self, request):
        return request.param

    @pytest.fixture
    def folder(self, tmp_path, name):
        write_checkpoint(random_checkpoint(BYTES), tmp_path / "model", to=name)
        return tmp_path / "model"

    def test_round_trip(self, folder):
        again = read_checkpoint(folder)
        assert again.config == BYTES
        assert_same_weights(again, random_checkpoint(BYTES))

    def test_keeps_the_vocabulary(self, tmp_path, name):
        checkpoint = random_checkpoint(BYTES)
        write_checkpoint(Checkpoint(BYTES, checkpoint.weights, VOCABULARY, ""), tmp_path / "model", to=name)
        assert read_checkpoint(tmp_path / "model").vocabulary.words == VOCABULARY.words

    def test_does_not_overwrite_unasked(self, folder, name):
        file = folder / SPECIMENS[name].weights
        before = file.read_bytes()
        with pytest.raises(OutputError, match="not empty"):
            write_checkpoint(random_checkpoint(BYTES, seed=1), folder, to=name)
        assert file.read_bytes() == before
        write_checkpoint(random_checkpoint(BYTES, seed=1), folder, to=name, overwrite=True)
        assert_same_weights(read_checkpoint(folder), random_checkpoint(BYTES, seed=1))
        assert [path.name for path in folder.parent.iterdir()] == ["model"]

    def test_never_overwrites_what_is_not_a_model(self, folder, name):
        (folder / "thesis.tex").write_text("years of work")
        with pytest.raises(OutputError, match=r"thesis\.tex"):
            write_checkpoint(random_checkpoint(BYTES), folder, to=name, overwrite=True)
        assert (folder / "thesis.tex").read_text() == "years of work"


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


@pytest.mark.parametrize("name", ["gru", "unicode", "words", "words_and_characters", "frequent_words_and_characters"])
def test_allenai_says_what_it_cannot_hold(name, tmp_path):
    with pytest.raises(CheckpointError, match="cannot hold this model: "):
        write_checkpoint(random_checkpoint(CONFIGS[name]), tmp_path / "model", to="allenai")
    assert not (tmp_path / "model").exists()


def test_allenai_has_a_vector_for_every_word(tmp_path):
    words = replace(CONFIGS["words"].words, dim=CONFIGS["words"].projection, frequent=5)
    with pytest.raises(CheckpointError, match="cannot hold this model: not every word has a vector of its own"):
        write_checkpoint(random_checkpoint(replace(CONFIGS["words"], words=words)), tmp_path / "model", to="allenai")


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
