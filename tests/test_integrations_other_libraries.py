"""ELMoForManyLangs' `Embedder` and simple_elmo's `ElmoModel`: their names, and their own numbers."""

import json

import numpy as np
import pytest
from conftest import GOLDEN, GOLDEN_SENTENCES
from specimens import FIXTURES

import elmokit
from elmokit.errors import CheckpointError, ConfigError
from elmokit.integrations.elmoformanylangs import Embedder
from elmokit.integrations.simple_elmo import ElmoModel

CLOSE = {"atol": 1e-5, "rtol": 1e-5}  # float32 sums in another order


def sentences_of(name):
    return json.loads((FIXTURES / name / "sentences.json").read_text(encoding="utf-8"))


class TestEmbedder:
    @pytest.mark.parametrize("output_layer", [-2, -1, 0, 1, 2])
    def test_as_the_original_gives_them(self, output_layer):
        embedder = Embedder(f"{FIXTURES / 'manylangs'}/", batch_size=2)
        with np.load(FIXTURES / "manylangs" / "activations.npz") as expected:
            found = embedder.sents2elmo(sentences_of("manylangs"), output_layer=output_layer)
            for number, vectors in enumerate(found):
                np.testing.assert_allclose(vectors, expected[f"{number}/{output_layer}"], **CLOSE)

    def test_the_mean_by_default(self):
        embedder, sentences = Embedder(FIXTURES / "manylangs"), sentences_of("manylangs")
        for one, other in zip(embedder.sents2elmo(sentences), embedder.sents2elmo(sentences, -1), strict=True):
            assert np.array_equal(one, other)

    def test_no_such_layer(self):
        with pytest.raises(ConfigError, match="unknown layers 3"):
            Embedder(FIXTURES / "manylangs").sents2elmo([["好"]], output_layer=3)


class TestElmoModel:
    @pytest.fixture
    def model(self):
        model = ElmoModel()
        model.load(str(GOLDEN / "base"), max_batch_size=4)
        return model

    @pytest.fixture
    def expected(self):
        with np.load(GOLDEN / "base" / "activations.npz") as arrays:
            return [arrays[f"stateless/{number}"] for number in range(len(GOLDEN_SENTENCES))]

    def test_vectors_in_one_padded_array(self, model, expected):
        longest = max(map(len, GOLDEN_SENTENCES))
        all_layers = model.get_elmo_vectors(GOLDEN_SENTENCES, layers="all")
        average = model.get_elmo_vectors(GOLDEN_SENTENCES, warmup=False)
        top = model.get_elmo_vectors(GOLDEN_SENTENCES, layers="top", session=None)
        assert (model.n_layers, model.vector_size) == (3, 16)
        assert all_layers.shape == (len(GOLDEN_SENTENCES), 3, longest, 16)
        assert average.shape == top.shape == (len(GOLDEN_SENTENCES), longest, 16)
        for number, layers in enumerate(expected):
            length = layers.shape[1]
            np.testing.assert_allclose(all_layers[number, :, :length], layers, **CLOSE)
            np.testing.assert_allclose(average[number, :length], layers.mean(axis=0), **CLOSE)
            np.testing.assert_allclose(top[number, :length], layers[-1], **CLOSE)
            assert not average[number, length:].any()
            assert not all_layers[number, :, length:].any()

    def test_a_vector_a_sentence(self, model, expected):
        averages = model.get_elmo_vector_average([*GOLDEN_SENTENCES, []])
        by_layer = model.get_elmo_vector_average(GOLDEN_SENTENCES, layers="all")
        for number, layers in enumerate(expected):
            mean = layers.mean(axis=(0, 1))
            np.testing.assert_allclose(averages[number], mean / np.linalg.norm(mean), **CLOSE)
            means = layers.mean(axis=1)
            np.testing.assert_allclose(by_layer[number], means / np.linalg.norm(means, axis=-1, keepdims=True), **CLOSE)
        assert not averages[-1].any()

    def test_no_sentences(self, model):
        assert model.get_elmo_vectors([]).shape == (0, 0, 16)
        assert model.get_elmo_vector_average([], layers="all").shape == (0, 3, 16)

    def test_an_archive_as_it_was_downloaded(self):
        model = ElmoModel()
        model.load(FIXTURES / "nlpl" / "model.zip")
        sentences = sentences_of("nlpl")
        with np.load(FIXTURES / "nlpl" / "activations.npz") as expected:
            for number, vectors in enumerate(model.get_elmo_vectors(sentences, layers="all")):
                np.testing.assert_allclose(vectors[:, : len(sentences[number])], expected[str(number)], **CLOSE)

    def test_before_and_without_what_is_needed(self, model):
        with pytest.raises(ConfigError, match="no model is loaded"):
            ElmoModel().get_elmo_vectors([["word"]])
        with pytest.raises(CheckpointError, match="no softmax"):
            model.get_elmo_substitutes(["A sentence"])


class TestSubstitutes:
    @pytest.fixture
    def model(self):
        model = ElmoModel()
        model.load(FIXTURES / "bilm_tf", full=True)
        return model

    @pytest.mark.parametrize("nodelimiters", [True, False])
    def test_as_the_softmax_of_the_original_ranks_them(self, model, nodelimiters):
        sentences = sentences_of("bilm_tf")
        found = model.get_elmo_substitutes([" ".join(tokens) for tokens in sentences], 4, nodelimiters)
        words = elmokit.load(FIXTURES / "bilm_tf").vocabulary.words
        with np.load(FIXTURES / "bilm_tf" / "activations.npz") as expected:
            for number, (tokens, rows) in enumerate(zip(sentences, found, strict=True)):
                assert [row["word"] for row in rows] == tokens
                for place, row in enumerate(rows):
                    forward = expected[f"scores/{number}/forward"][place]
                    backward = expected[f"scores/{number}/backward"][len(tokens) - 1 - place]
                    for best, scores in ((row["forward"], forward), (row["backward"], backward)):
                        log_probabilities = scores - np.log(np.exp(scores.astype(np.float64)).sum())
                        if nodelimiters:
                            log_probabilities[:2] = -np.inf  # <S> and </S>
                        wanted = np.sort(log_probabilities)[::-1][:4]
                        np.testing.assert_allclose(best["logp"], wanted, atol=1e-4)
                        np.testing.assert_allclose(log_probabilities[best["candidates"]], wanted, atol=1e-4)
                        assert best["candidate_words"] == [words[number] for number in best["candidates"]]

    def test_tokens_and_no_more_words_than_there_are(self, model):
        ((row,),) = model.get_elmo_substitutes([["bank"]], topn=10_000, nodelimiters=False)
        assert row["word"] == "bank"
        assert len(row["forward"]["candidates"]) == len(model.elmo.vocabulary)
        assert model.get_elmo_substitutes([[]]) == [[]]
