"""The formats that ELMos were published in: the numbers of the code that made them, and what is special to each."""

import contextlib
import json
import re
import shutil

import h5py
import numpy as np
import pyarrow
import pytest
import torch
from conftest import GOLDEN
from hypothesis import given
from hypothesis import strategies as st
from specimens import FIXTURES, OPTIONS_IN_ARCHIVE, assert_same_weights, table_file, unpacked_allennlp

import elmokit
from elmokit.checkpoints import read_checkpoint, write_checkpoint
from elmokit.checkpoints.bilm_tf import masked_crc32c, read_table
from elmokit.cli import main
from elmokit.errors import CheckpointError
from elmokit.pretrain import perplexity
from elmokit.text.vocabulary import BOS, EOS

CLOSE = {"atol": 1e-5, "rtol": 1e-5}  # float32 sums in another order
MODELS = {
    "bilm_tf": "bilm_tf",
    "bilm_tf_words": "bilm_tf_words",
    "bilm_tf_tied": "bilm_tf_tied",
    "nlpl": "nlpl/model.zip",
    "words": "words",
    "token_cache": "token_cache/token_embeddings.hdf5",
    "seqvec": "seqvec",
    "allennlp": "allennlp/model.tar.gz",
}
RENAMED_SINCE = {b"kernel": b"weights", b"bias": b"biases"}  # in TensorFlow 1.2
CHECKPOINTS = ["bilm_tf", "bilm_tf_words", "bilm_tf_tied"]


def sentences_of(name: str) -> list[list[str]]:
    return json.loads((FIXTURES / name / "sentences.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_as_the_original_gives_it(name):
    elmo = elmokit.load(FIXTURES / MODELS[name])
    with np.load(FIXTURES / name / "activations.npz") as expected:
        for number, layers in enumerate(elmo.embed(sentences_of(name), layers="all")):
            assert layers.shape == expected[str(number)].shape
            np.testing.assert_allclose(layers, expected[str(number)], **CLOSE)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_softmax_as_the_original_gives_it(name):
    elmo = elmokit.load(FIXTURES / name)
    softmax, width = elmo.language_model.softmax, elmo.config.projection
    with np.load(FIXTURES / name / "activations.npz") as expected, torch.inference_mode():
        for number, tokens in enumerate(sentences_of(name)):
            top = elmo.run([[BOS, *tokens, EOS]], gradients=False)[-1]  # (T + 2, 2P)
            for way, h in (("forward", top[:-1, :width]), ("backward", top.flip(0)[:-1, width:])):
                scores = torch.from_numpy(expected[f"scores/{number}/{way}"])
                np.testing.assert_allclose(softmax.log_probabilities(h), scores.log_softmax(dim=-1), **CLOSE)


class TestManyLangs:
    @pytest.fixture
    def folder(self, tmp_path):
        return shutil.copytree(FIXTURES / "manylangs", tmp_path / "manylangs")

    @pytest.mark.parametrize(("layers", "output_layer"), [(0, 0), (1, 1), (2, 2), ("average", -1), ("all", -2)])
    def test_layers_as_the_original_gives_them(self, layers, output_layer):
        elmo = elmokit.load(FIXTURES / "manylangs")
        with np.load(FIXTURES / "manylangs" / "activations.npz") as expected:
            for number, vectors in enumerate(elmo.embed(sentences_of("manylangs"), layers=layers)):
                np.testing.assert_allclose(vectors, expected[f"{number}/{output_layer}"], **CLOSE)

    def test_the_same_after_conversion(self, tmp_path):
        main(["convert", str(FIXTURES / "manylangs"), str(tmp_path / "native")])
        elmo = elmokit.load(tmp_path / "native")
        with np.load(FIXTURES / "manylangs" / "activations.npz") as expected:
            for number, vectors in enumerate(elmo.embed(sentences_of("manylangs"), layers="all")):
                np.testing.assert_allclose(vectors, expected[f"{number}/-2"], **CLOSE)

    @pytest.mark.parametrize("path", ["/etc/{}", "C:\\Users\\author\\{}", "../../{}", "{}"])
    def test_no_path_is_taken_from_the_file(self, folder, path):
        expected = read_checkpoint(folder)
        (folder / "config.json").write_text(json.dumps({"config_path": path.format("tiny.json")}))
        assert_same_weights(read_checkpoint(folder), expected)
        (folder / "tiny.json").unlink()
        with pytest.raises(CheckpointError, match=re.escape(str(folder / "tiny.json"))):
            read_checkpoint(folder)

    def test_an_architecture_elsewhere_is_not_read(self, folder, tmp_path):
        elsewhere = tmp_path / "elsewhere.json"
        (folder / "tiny.json").rename(elsewhere)
        (folder / "config.json").write_text(json.dumps({"config_path": str(elsewhere)}))
        with pytest.raises(CheckpointError, match=re.escape(str(folder / "elsewhere.json"))):
            read_checkpoint(folder)

    def test_the_architecture_that_came_with_the_package(self, folder):
        (folder / "tiny.json").unlink()
        (folder / "config.json").write_text('{"config_path": "/home/a/cnn_50_100_512_4096_sample.json"}')
        with pytest.raises(CheckpointError, match=r"'projection.weight' is 8×19, expected 512×2148"):
            read_checkpoint(folder)

    @pytest.mark.parametrize(
        ("part", "name"), [("encoder", "lstm"), ("token_embedder", "lstm"), ("encoder", "transformer")]
    )
    def test_other_architectures(self, folder, part, name):
        values = json.loads((folder / "tiny.json").read_text())
        values[part]["name"] = name
        (folder / "tiny.json").write_text(json.dumps(values))
        with pytest.raises(CheckpointError, match=rf"tiny.json: .*{name}.*{part}.name"):
            read_checkpoint(folder)

    @pytest.mark.parametrize("file", ["word.dic", "char.dic"])
    def test_lists(self, folder, file):
        path = folder / file
        content = path.read_text(encoding="utf-8")
        for damaged, message in (
            (content.replace("<bos>", "bos"), "<bos> is not among its entries"),
            (content.replace("\t2\n", "\ttwo\n"), "cannot be read as entries with numbers"),
            (content.replace("\t2\n", "\t200\n"), "is number 200 of"),
            (content + "new\t5\n", "expected a row for each of the"),
        ):
            path.write_text(damaged, encoding="utf-8")
            with pytest.raises(CheckpointError, match=message):
                read_checkpoint(folder)
        path.unlink()
        with pytest.raises(CheckpointError, match=file):
            read_checkpoint(folder)

    @pytest.mark.parametrize("left_out", ["word", "char"])
    def test_words_or_characters_alone(self, folder, left_out):
        """What the code calls word_dim 0 or char_dim 0; the weights that go with it are left out."""
        values = json.loads((folder / "tiny.json").read_text())
        values["token_embedder"][f"{left_out}_dim"] = 0
        (folder / "tiny.json").write_text(json.dumps(values))
        state = torch.load(folder / "token_embedder.pkl", weights_only=True)
        names = ("word_emb",) if left_out == "word" else ("char_emb", "convolutions", "highways")
        state = {name: weight for name, weight in state.items() if not name.startswith(names)}
        columns = slice(5, None) if left_out == "word" else slice(None, 5)
        state["projection.weight"] = state["projection.weight"][:, columns].clone()
        torch.save(state, folder / "token_embedder.pkl")
        (folder / f"{left_out}.dic").unlink()
        assert elmokit.load(folder).embed(sentences_of("manylangs"), layers="all")[0].shape == (3, 5, 16)

    def test_a_line_of_one_field_is_an_ideographic_space(self, folder):
        path = folder / "char.dic"
        before = read_checkpoint(folder)
        content = path.read_text(encoding="utf-8")
        assert "\n\u3000\t" in content
        path.write_text(content.replace("\n\u3000\t", "\n"), encoding="utf-8")
        again = read_checkpoint(folder)
        assert again.config == before.config
        assert_same_weights(again, before)

    def test_finetune(self, tmp_path, text):
        arguments = ["-o", str(tmp_path / "tuned"), *QUICK]
        main(["finetune", str(FIXTURES / "manylangs"), str(text), *arguments])
        assert elmokit.load(tmp_path / "tuned").config.words.max_characters == 48


QUICK = ["--recipe", "tiny", "-s", "training.epochs=6", "-s", "training.batch=4", "-s", "corpus.valid_share=0.2"]


@pytest.fixture
def text(tmp_path):
    lines = ["The river rose in the night and the old bridge was gone .", "She waited for the boat ."] * 30
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


class TestBilmTf:
    @pytest.fixture
    def folder(self, tmp_path):
        return shutil.copytree(FIXTURES / "bilm_tf", tmp_path / "bilm_tf")

    @pytest.mark.parametrize("start", [".", "checkpoint", "model.ckpt-30", "model.ckpt-30.index"])
    def test_ways_to_name_it(self, folder, start):
        checkpoint = read_checkpoint(folder / start)
        assert checkpoint.source == f"bilm-tf ({folder / 'model.ckpt-30.index'})"
        assert checkpoint.config.softmax.kind == "sampled"
        assert len(checkpoint.vocabulary) == checkpoint.config.softmax.size

    def test_the_path_of_the_latest_is_that_of_another_machine(self, folder):
        (folder / "checkpoint").write_text('model_checkpoint_path: "/home/author/run/model.ckpt-30"\n')
        assert read_checkpoint(folder).config.layers == 2
        (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-99"\n')
        with pytest.raises(CheckpointError, match=r"names model.ckpt-99.index, which is not beside it"):
            read_checkpoint(folder)
        (folder / "checkpoint").write_text("nothing of use")
        with pytest.raises(CheckpointError, match="no model_checkpoint_path"):
            read_checkpoint(folder)

    def test_several_checkpoints(self, folder):
        for file in folder.glob("model.ckpt-30.*"):
            shutil.copy(file, folder / file.name.replace("30", "20"))
        assert "ckpt-30" in read_checkpoint(folder).source
        (folder / "checkpoint").unlink()
        with pytest.raises(CheckpointError, match=r"model.ckpt-20.index, model.ckpt-30.index"):
            read_checkpoint(folder)
        assert "ckpt-20" in read_checkpoint(folder / "model.ckpt-20").source

    def test_dumped_weights_are_preferred_where_they_are(self, folder):
        shutil.copy(FIXTURES / "token_cache" / "weights.hdf5", folder)
        assert read_checkpoint(folder).config.softmax is None
        assert read_checkpoint(folder / "checkpoint").config.softmax is not None

    def test_a_vocabulary_of_another_model(self, folder):
        (folder / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
        with pytest.raises(CheckpointError, match=r"vocab.txt: 3 words, but the model has"):
            read_checkpoint(folder)

    def test_no_vocabulary(self, folder):
        (folder / "vocab.txt").unlink()
        assert read_checkpoint(folder).vocabulary is None
        assert elmokit.load(folder).embed([["Boats"]])[0].shape == (1, 16)

    def test_a_word_model_needs_its_vocabulary(self, tmp_path):
        folder = shutil.copytree(FIXTURES / "bilm_tf_words", tmp_path / "words")
        words = (folder / "vocab.txt").read_text(encoding="utf-8")
        (folder / "vocab.txt").write_text(words.replace("</S>", "bound"), encoding="utf-8")
        with pytest.raises(CheckpointError, match=r"<S> and </S>, the bounds"):
            read_checkpoint(folder)
        (folder / "vocab.txt").unlink()
        with pytest.raises(CheckpointError, match=r"their list, vocab.txt, is not here"):
            read_checkpoint(folder)

    def test_vocabulary_by_another_name(self, folder):
        (folder / "vocab.txt").rename(folder / "vocab-2016-09-10.txt")
        assert read_checkpoint(folder).vocabulary is not None

    def test_one_direction(self, folder):
        options = folder / "options.json"
        options.write_text(options.read_text().replace('"bidirectional": true', '"bidirectional": false'))
        with pytest.raises(CheckpointError, match="one direction"):
            read_checkpoint(folder)

    def test_training_goes_on(self, tmp_path, text):
        before = elmokit.load(FIXTURES / "bilm_tf")
        held_out = [line.split() for line in text.read_text().splitlines()[:2]]
        main(["finetune", str(FIXTURES / "bilm_tf"), str(text), "-o", str(tmp_path / "tuned"), *QUICK])
        after = elmokit.load(tmp_path / "tuned")
        assert after.vocabulary.words == before.vocabulary.words
        assert perplexity(after, held_out).average < 0.9 * perplexity(before, held_out).average

    def test_to_native_keeps_the_softmax_and_to_allenai_leaves_it(self, tmp_path):
        checkpoint = read_checkpoint(FIXTURES / "bilm_tf")
        for name, kept in (("native", True), ("allenai", False)):
            write_checkpoint(checkpoint, tmp_path / name, to=name)
            assert (read_checkpoint(tmp_path / name).config.softmax is not None) == kept

    def test_names_of_older_versions(self, folder):
        expected = read_checkpoint(folder)
        index = folder / "model.ckpt-30.index"
        table = read_table(index.read_bytes())
        older = {
            re.sub(b"(lstm_cell/.*)(kernel|bias)$", lambda m: m[1] + RENAMED_SINCE[m[2]], name): entry
            for name, entry in table.items()
        }
        assert len(older.keys() - table.keys()) == 12
        index.write_bytes(table_file(older))
        assert_same_weights(read_checkpoint(folder), expected)


class TestSortedTable:
    INDEX = FIXTURES / "bilm_tf" / "model.ckpt-30.index"

    def test_known_checksum(self):
        """RFC 3720, B.4: 32 bytes of zeros."""
        crc = 0x8A9136AA
        assert masked_crc32c(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    def test_every_changed_byte_is_noticed(self):
        content = self.INDEX.read_bytes()
        expected = read_table(content)
        for place in range(0, len(content), 37):
            damaged = bytearray(content)
            damaged[place] ^= 0x10
            try:
                found = read_table(bytes(damaged))
            except ValueError:
                continue
            assert found == expected, place  # the handle of the other index, and padding

    def test_compressed_block(self):
        table = read_table(self.INDEX.read_bytes())
        packed = table_file(table, pack=lambda block: pyarrow.compress(block, codec="snappy", asbytes=True))
        assert len(packed) < len(table_file(table))
        with pytest.raises(ValueError, match="a block is compressed, which TensorFlow never does"):
            read_table(packed)

    @given(st.binary(max_size=100))
    def test_anything_else_is_a_value_error(self, content):
        with contextlib.suppress(ValueError):
            read_table(content)


class TestAllenNlp:
    @pytest.fixture
    def folder(self, tmp_path):
        unpacked_allennlp(tmp_path / "model")
        return tmp_path / "model"

    def test_same_as_the_files_that_it_was_made_from(self, folder):
        ours, original = read_checkpoint(folder), read_checkpoint(GOLDEN / "base")
        assert ours.config.forget_bias == 0.0
        assert ours.config.characters == original.config.characters
        for name, weight in original.weights.items():
            if not name.endswith("layers.0.bias") and not name.endswith("layers.1.bias"):
                assert torch.equal(ours.weights[name], weight), name

    def test_options_in_the_archive_count(self, folder):
        assert read_checkpoint(folder).config.cell_clip == 3
        options = folder / OPTIONS_IN_ARCHIVE
        options.write_text(options.read_text().replace('"cell_clip": 3', '"cell_clip": 2'))
        assert read_checkpoint(folder).config.cell_clip == 2

    def test_without_options_sizes_are_told_from_the_weights(self, folder):
        expected = read_checkpoint(folder)
        shutil.rmtree(folder / "fta")
        again = read_checkpoint(folder)
        assert again.config == expected.config
        assert_same_weights(again, expected)
        assert_same_weights(read_checkpoint(folder / "weights.th"), expected)

    def test_the_folder_of_a_training_run(self, folder):
        (folder / "weights.th").rename(folder / "best.th")
        assert read_checkpoint(folder).config.layers == 2

    def test_a_model_without_an_elmo(self, folder):
        torch.save({"weight": torch.ones(3)}, folder / "weights.th")
        with pytest.raises(CheckpointError, match="no ELMo is among its weights"):
            read_checkpoint(folder)

    def test_two_names_for_one_elmo_and_two_elmos(self, folder):
        expected = read_checkpoint(folder)
        state = torch.load(folder / "weights.th", weights_only=True)
        twice = state | {f"other.{name}": weight for name, weight in state.items()}
        torch.save(twice, folder / "weights.th")
        assert_same_weights(read_checkpoint(folder), expected)
        torch.save(state | {f"other.{name}": weight.clone() for name, weight in state.items()}, folder / "weights.th")
        with pytest.raises(CheckpointError, match="more than one ELMo"):
            read_checkpoint(folder)

    def test_part_of_an_elmo(self, folder):
        shutil.rmtree(folder / "fta")
        state = torch.load(folder / "weights.th", weights_only=True)
        torch.save({name: weight for name, weight in state.items() if "forward" not in name}, folder / "weights.th")
        with pytest.raises(CheckpointError, match="incomplete or not one"):
            read_checkpoint(folder)

    def test_a_cached_vocabulary_is_left_out(self, folder):
        expected = read_checkpoint(folder)
        state = torch.load(folder / "weights.th", weights_only=True)
        prefix = next(name for name in state if "_token_embedder" in name).partition("_token_embedder")[0]
        torch.save(state | {f"{prefix}_word_embedding.weight": torch.ones(9, 8)}, folder / "weights.th")
        assert_same_weights(read_checkpoint(folder), expected)


class TestTokenCache:
    @pytest.fixture
    def folder(self, tmp_path):
        return shutil.copytree(FIXTURES / "token_cache", tmp_path / "token_cache")

    def test_the_folder_is_the_model_that_reads_characters(self, folder):
        assert read_checkpoint(folder).config.words is None
        assert read_checkpoint(folder / "token_embeddings.hdf5").config.characters is None

    def test_weights_without_characters_take_the_cache(self, folder):
        expected = read_checkpoint(folder / "token_embeddings.hdf5")
        with h5py.File(folder / "weights.hdf5", "a") as file:
            for name in [name for name in file if not name.startswith("RNN")]:
                del file[name]
        assert_same_weights(read_checkpoint(folder), expected)
        assert_same_weights(read_checkpoint(folder / "options.json"), expected)

    def test_a_vocabulary_of_another_model(self, folder):
        (folder / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
        with pytest.raises(CheckpointError, match=r"vocab.txt: 3 words"):
            read_checkpoint(folder / "token_embeddings.hdf5")

    def test_to_allenai(self, folder, tmp_path):
        main(["convert", str(folder / "token_embeddings.hdf5"), str(tmp_path / "words"), "--to", "allenai"])
        again = read_checkpoint(tmp_path / "words")
        assert_same_weights(again, read_checkpoint(folder / "token_embeddings.hdf5"))


def test_one_layer_as_bilm_tf_names_it(tmp_path):
    """dump_weights gives a single layer no number."""
    folder = shutil.copytree(GOLDEN / "base", tmp_path / "one")
    options = json.loads((folder / "options.json").read_text())
    options["lstm"]["n_layers"] = 1
    (folder / "options.json").write_text(json.dumps(options))
    with h5py.File(folder / "weights.hdf5", "a") as file:
        for direction in ("RNN_0", "RNN_1"):
            file.move(f"{direction}/RNN/MultiRNNCell/Cell0/LSTMCell", f"{direction}/RNN/LSTMCell")
            del file[f"{direction}/RNN/MultiRNNCell"]
    one, two = elmokit.load(folder), elmokit.load(GOLDEN / "base")
    found, expected = (elmo.embed([["Rivers"]], layers="all")[0] for elmo in (one, two))
    np.testing.assert_array_equal(found, expected[:2])


def test_own_models_to_allenai_keep_their_vectors(tmp_path):
    """A model trained here adds nothing to its forget gate; TensorFlow's cell would add 1."""
    checkpoint = read_checkpoint(FIXTURES / "allennlp" / "model.tar.gz")
    assert checkpoint.config.forget_bias == 0.0
    write_checkpoint(checkpoint, tmp_path / "model", to="allenai")
    again = read_checkpoint(tmp_path / "model")
    assert again.config.forget_bias == 1.0
    with (
        h5py.File(tmp_path / "model" / "weights.hdf5") as ours,
        h5py.File(GOLDEN / "base" / "weights.hdf5") as original,
    ):
        name = "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B"
        np.testing.assert_allclose(ours[name][()], original[name][()], atol=1e-6)
