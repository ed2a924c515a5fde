"""bilm-tf's names: the numbers are TensorFlow's, from the fixtures of the formats and the golden activations."""

import json

import h5py
import numpy as np
import pytest
import torch
from conftest import GOLDEN, GOLDEN_SENTENCES
from specimens import FIXTURES

from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.integrations.allennlp import batch_to_ids
from elmokit.integrations.bilm import (
    Batcher,
    BidirectionalLanguageModel,
    TokenBatcher,
    dump_bilm_embeddings,
    dump_token_embeddings,
    weight_layers,
)

BASE = GOLDEN / "base" / "options.json", GOLDEN / "base" / "weights.hdf5"
CACHE = FIXTURES / "token_cache"
CACHE_FILES = CACHE / "options.json", CACHE / "weights.hdf5"
VOCABULARY, TOKEN_VECTORS = CACHE / "vocab.txt", CACHE / "token_embeddings.hdf5"
SENTENCES = [["The", "first", "sentence"], ["Second", "."]]
CLOSE = {"atol": 5e-6, "rtol": 1e-5}  # as tests/test_parity.py has it


def batches():
    return [GOLDEN_SENTENCES[start : start + 3] for start in range(0, len(GOLDEN_SENTENCES), 3)]


def check_layers(output, expected):
    """Every sentence's layers, its length and its mask; zeros after its end."""
    for layers, length, mask, wanted in zip(
        output["lm_embeddings"], output["lengths"], output["mask"], expected, strict=True
    ):
        assert length == wanted.shape[1]
        assert mask.dtype == torch.bool
        assert mask.tolist() == [place < length for place in range(len(mask))]
        np.testing.assert_allclose(layers[:, :length], wanted, **CLOSE)
        assert not layers[:, length:].any()


class TestBatcher:
    def test_ids_with_bounds(self):
        ids = Batcher(VOCABULARY, 50).batch_sentences(SENTENCES)
        assert ids.dtype == np.int64
        assert ids.shape == (2, 5, 50)
        np.testing.assert_array_equal(ids[0, 1:4], batch_to_ids(SENTENCES)[0])
        assert [row[:4].tolist() for row in ids[0, [0, 4]]] == [[259, 257, 260, 261], [259, 258, 260, 261]]
        np.testing.assert_array_equal(ids[1, 3], ids[0, 4])
        assert not ids[1, 4].any()

    def test_fewer_characters(self):
        ids = Batcher(None, 5).batch_sentences([["th", "thhhhh", "Āt"]])
        assert (ids[0] - 1).tolist() == [
            [258, 256, 259, 260, 260],
            [258, 116, 104, 259, 260],
            [258, 116, 104, 104, 259],
            [258, 196, 128, 116, 259],
            [258, 257, 259, 260, 260],
        ]

    def test_words_where_sentences_should_be(self):
        for batcher in (Batcher(None, 50), TokenBatcher(VOCABULARY)):
            with pytest.raises(DataError, match="'flat' came as a sentence"):
                batcher.batch_sentences(["flat", "list"])


class TestTokenBatcher:
    def test_numbers_with_bounds(self):
        ids = TokenBatcher(VOCABULARY).batch_sentences([["the", "bank", "."], ["unheard-of"]])
        words = VOCABULARY.read_text(encoding="utf-8").splitlines()
        bank = words.index("bank") + 1
        assert ids.tolist() == [[1, 4, bank, 5, 2], [1, 3, 2, 0, 0]]

    def test_vocabularies_that_lack_something(self, tmp_path):
        path = tmp_path / "vocab.txt"
        path.write_text("<S>\n</S>\nword", encoding="utf-8")
        assert TokenBatcher(path).batch_sentences([["word"]]).tolist() == [[1, 3, 2]]
        with pytest.raises(DataError, match="'other' is not in the vocabulary"):  # bilm-tf took it for padding
            TokenBatcher(path).batch_sentences([["other"]])
        path.write_text("<UNK>\nword", encoding="utf-8")
        with pytest.raises(DataError, match="<S> and </S>"):
            TokenBatcher(path)


class TestBidirectionalLanguageModel:
    def test_as_tensorflow_gives_it(self):
        bilm, batcher = BidirectionalLanguageModel(*BASE), Batcher(None, 50)
        with np.load(GOLDEN / "base" / "activations.npz") as expected:
            wanted = [expected[f"stateless/{number}"] for number in range(len(GOLDEN_SENTENCES))]
        for _ in range(2):
            check_layers(bilm(batcher.batch_sentences(GOLDEN_SENTENCES)), wanted)

    def test_with_the_state_carried_on(self):
        bilm, batcher = BidirectionalLanguageModel(*BASE, max_batch_size=3, stateful=True), Batcher(None, 50)
        with np.load(GOLDEN / "base" / "activations.npz") as expected:
            wanted = iter([expected[f"stateful/{number}"] for number in range(len(GOLDEN_SENTENCES))])
        for batch in batches():
            check_layers(bilm(batcher.batch_sentences(batch)), [next(wanted) for _ in batch])

    def test_token_inputs(self):
        sentences = json.loads((CACHE / "sentences.json").read_text(encoding="utf-8"))
        bilm = BidirectionalLanguageModel(
            *CACHE_FILES, use_character_inputs=False, embedding_weight_file=str(TOKEN_VECTORS)
        )
        output = bilm(TokenBatcher(VOCABULARY).batch_sentences(sentences))
        with np.load(CACHE / "activations.npz") as expected:
            check_layers(output, [expected[str(number)] for number in range(len(sentences))])
        assert output["token_embeddings"].shape == (len(sentences), max(map(len, sentences)) + 2, 8)

    def test_token_embeddings_have_their_bounds(self):
        output = BidirectionalLanguageModel(*BASE)(Batcher(None, 50).batch_sentences(SENTENCES))
        tokens, layers = output["token_embeddings"], output["lm_embeddings"]
        torch.testing.assert_close(tokens[:, 1:-1][output["mask"]], layers[:, 0, :, :8][output["mask"]])
        torch.testing.assert_close(tokens[0, [0, 4]], tokens[1, [0, 3]])

    def test_ids_without_bounds(self):
        with pytest.raises(DataError, match="does not begin with <S>: make the ids with Batcher"):
            BidirectionalLanguageModel(*BASE)(batch_to_ids(SENTENCES))

    def test_wrong_files(self, tmp_path):
        with pytest.raises(ConfigError, match="give embedding_weight_file"):
            BidirectionalLanguageModel(*BASE, use_character_inputs=False)
        with pytest.raises(CheckpointError, match="no 'embedding'"):
            BidirectionalLanguageModel(*BASE, False, BASE[1])
        with h5py.File(tmp_path / "wide.hdf5", "w") as file:
            file["embedding"] = np.zeros((4, 9), np.float32)
        with pytest.raises(CheckpointError, match=r"\(4, 9\), those of the model 8 wide"):
            BidirectionalLanguageModel(*BASE, False, tmp_path / "wide.hdf5")
        bilm = BidirectionalLanguageModel(*CACHE_FILES, False, TOKEN_VECTORS)
        with pytest.raises(DataError, match="no word 900"):
            bilm(np.array([[1, 900, 2]]))


class TestWeightLayers:
    @pytest.fixture
    def bilm(self):
        return BidirectionalLanguageModel(*BASE)

    @pytest.fixture
    def ids(self):
        return Batcher(None, 50).batch_sentences(GOLDEN_SENTENCES)

    def test_untrained_is_the_average(self, bilm, ids):
        output = bilm(ids)
        found = weight_layers("input", output, l2_coef=0.0)
        torch.testing.assert_close(found["weighted_op"], output["lm_embeddings"].mean(dim=1))
        assert found["regularization_op"] == 0

    def test_trained(self, bilm, ids):
        output = bilm(ids)
        weight_layers("output", output)
        with torch.no_grad():
            bilm.mixes["output"].weights.copy_(torch.tensor([0.1, 0.3, 0.5]))
            bilm.mixes["output"].gamma.fill_(1.1)
        shares = np.exp([0.1, 0.3, 0.5]) / np.exp([0.1, 0.3, 0.5]).sum()
        expected = 1.1 * np.einsum("l,blth->bth", shares, output["lm_embeddings"])
        found = weight_layers("output", output, l2_coef=2.0)
        np.testing.assert_allclose(found["weighted_op"].detach(), expected, **CLOSE)
        assert found["regularization_op"].item() == pytest.approx(2 * (0.01 + 0.09 + 0.25))

    def test_top_alone(self, bilm, ids):
        output = bilm(ids)
        found = weight_layers("top", output, l2_coef=1.0, use_top_only=True)
        torch.testing.assert_close(found["weighted_op"], output["lm_embeddings"][:, -1])
        assert found["regularization_op"] == 0

    def test_layer_norm_is_that_of_a_token(self, bilm):
        batcher = Batcher(None, 50)
        alone, among = (bilm(batcher.batch_sentences(batch)) for batch in (SENTENCES[:1], SENTENCES))
        one, other = (weight_layers("normed", output, do_layer_norm=True)["weighted_op"] for output in (alone, among))
        torch.testing.assert_close(one[0], other[0], atol=1e-5, rtol=1e-5)
        layers = alone["lm_embeddings"][0].numpy()
        normed = (layers - layers.mean(axis=-1, keepdims=True)) / layers.std(axis=-1, keepdims=True)
        np.testing.assert_allclose(one[0].detach(), normed.mean(axis=0), atol=1e-5, rtol=1e-5)

    def test_names_share_weights_and_learn(self, bilm):
        """The paper's question answering: the same weights for question and context, others at the output."""
        batcher = Batcher(None, 50)
        context, question = bilm(batcher.batch_sentences(SENTENCES)), bilm(batcher.batch_sentences([["What", "?"]]))
        read = [weight_layers("input", part, l2_coef=0.001) for part in (context, question)]
        weight_layers("output", context)
        learning = [name for name, weight in bilm.named_parameters() if weight.requires_grad]
        assert sorted(learning) == sorted(
            f"mixes.{mix}.{part}" for mix in ("input", "output") for part in ("gamma", "weights")
        )
        loss = sum(part["weighted_op"].square().sum() + part["regularization_op"] for part in read)
        loss.backward()
        assert bilm.mixes["input"].weights.grad.any()
        assert bilm.mixes["output"].weights.grad is None
        with pytest.raises(ConfigError, match="'input' was made with other settings"):
            weight_layers("input", context, use_top_only=True)


class TestDumps:
    def test_token_embeddings_as_tensorflow_gives_them(self, tmp_path):
        dump_token_embeddings(VOCABULARY, *CACHE_FILES, tmp_path / "vectors.hdf5")
        with h5py.File(tmp_path / "vectors.hdf5") as found, h5py.File(TOKEN_VECTORS) as expected:
            assert set(found) == set(expected) == {"embedding"}
            assert found["embedding"].dtype == np.float32
            np.testing.assert_allclose(found["embedding"][()], expected["embedding"][()], **CLOSE)

    def test_there_and_back(self, tmp_path):
        """By numbers of words as by their characters, where each word is in the vocabulary."""
        words = sorted({"<S>", "</S>", *(word for sentence in GOLDEN_SENTENCES for word in sentence)})
        (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
        dump_token_embeddings(tmp_path / "vocab.txt", *BASE, tmp_path / "vectors.hdf5")
        tokens = BidirectionalLanguageModel(*BASE, False, tmp_path / "vectors.hdf5")
        found = tokens(TokenBatcher(tmp_path / "vocab.txt").batch_sentences(GOLDEN_SENTENCES))
        expected = BidirectionalLanguageModel(*BASE)(Batcher(None, 50).batch_sentences(GOLDEN_SENTENCES))
        torch.testing.assert_close(found["lm_embeddings"], expected["lm_embeddings"], atol=1e-5, rtol=1e-5)

    def test_a_dataset(self, tmp_path):
        lines = [" ".join(tokens) for tokens in GOLDEN_SENTENCES]
        (tmp_path / "dataset.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
        dump_bilm_embeddings(None, tmp_path / "dataset.txt", *BASE, tmp_path / "layers.hdf5")
        with h5py.File(tmp_path / "layers.hdf5") as file, np.load(GOLDEN / "base" / "activations.npz") as expected:
            assert set(file) == {str(number) for number in range(len(lines))}
            for number in range(len(lines)):
                np.testing.assert_allclose(file[str(number)][()], expected[f"stateless/{number}"], **CLOSE)

    def test_blank_lines_keep_their_number(self, tmp_path):
        (tmp_path / "dataset.txt").write_text("one\n\ntwo words\n", encoding="utf-8")
        dump_bilm_embeddings(None, tmp_path / "dataset.txt", *BASE, tmp_path / "layers.hdf5")
        with h5py.File(tmp_path / "layers.hdf5") as file:
            assert [file[name].shape for name in "012"] == [(3, 1, 16), (3, 0, 16), (3, 2, 16)]

    def test_nothing_half_written(self, tmp_path):
        (tmp_path / "latin.txt").write_bytes("Café".encode("latin-1"))
        for name in ("latin.txt", "missing.txt"):
            with pytest.raises(DataError, match=name):
                dump_bilm_embeddings(None, tmp_path / name, *BASE, tmp_path / "layers.hdf5")
        with pytest.raises(OutputError, match="nowhere"):
            dump_token_embeddings(VOCABULARY, *CACHE_FILES, tmp_path / "nowhere" / "vectors.hdf5")
        assert [path.name for path in tmp_path.iterdir()] == ["latin.txt"]
