"""A SentenceTransformer that reads by ELMo."""

import json

import numpy as np
import pytest
import torch
from conftest import random_elmo
from sentence_transformers import SentenceTransformer, util
from sentence_transformers.sentence_transformer.modules import Dense, Pooling

import elmokit
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.integrations.sentence_transformers import ElmoModule

TEXTS = ["He sat on the bank of the river.", "Two words", "", "今天天气很好。"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentence_transformers") / "model"
    random_elmo().save(folder)
    return folder


def pooled(module, mode="mean"):
    pooling = Pooling(module.get_embedding_dimension(), pooling_mode=mode)
    return SentenceTransformer(modules=[module, pooling], device="cpu")


class TestVectors:
    @pytest.mark.parametrize("mode", ["mean", "max"])
    @pytest.mark.parametrize("layers", ["average", 1])
    def test_are_those_of_elmo(self, folder, layers, mode):
        found = pooled(ElmoModule(folder, layers=layers), mode).encode(TEXTS)
        texts = [text for text in TEXTS if text]
        expected = elmokit.load(folder).sentence_vectors(texts, layers=layers, pooling=mode)
        np.testing.assert_allclose(found[[bool(text) for text in TEXTS]], expected, atol=2e-6)

    def test_words_and_mask(self, folder):
        module, elmo = ElmoModule(folder), elmokit.load(folder)
        features = module(module.preprocess(TEXTS))
        assert features["attention_mask"].sum(dim=1).tolist() == [len(words) for words in elmo.tokenize(TEXTS)]
        for row, mask, vectors in zip(
            features["token_embeddings"], features["attention_mask"].bool(), elmo.embed(TEXTS), strict=True
        ):
            np.testing.assert_allclose(row[mask], vectors, atol=2e-6)
            assert not row[~mask].any()

    def test_one_vector_per_word(self, folder):
        found = pooled(ElmoModule(folder)).encode(TEXTS[:2], output_value="token_embeddings")
        assert [len(vectors) for vectors in found] == [9, 2]

    def test_empty_texts_alone(self, folder):
        assert not pooled(ElmoModule(folder)).encode(["", ""]).any()

    def test_prompts(self, folder):
        model, elmo = pooled(ElmoModule(folder)), elmokit.load(folder)
        found = model.encode(["two words"], prompt="query: ")
        tokens = elmo.tokens("query: two words")
        np.testing.assert_allclose(found[0], elmo.sentence_vectors([tokens])[0], atol=2e-6)


class TestStoring:
    def test_saves_the_model_itself(self, folder, tmp_path):
        elmokit.load(folder).save(tmp_path / "gone")
        model = pooled(ElmoModule(tmp_path / "gone", layers="top"))
        expected = model.encode(TEXTS)
        for path in (tmp_path / "gone").iterdir():
            path.unlink()
        for _ in range(2):  # the second time over the first
            model.save(str(tmp_path / "saved"))
        [first, _] = json.loads((tmp_path / "saved" / "modules.json").read_text())
        assert first["type"] == "elmokit.integrations.sentence_transformers.ElmoModule"
        copy = SentenceTransformer(str(tmp_path / "saved"), device="cpu", trust_remote_code=True)
        np.testing.assert_array_equal(copy.encode(TEXTS), expected)
        assert copy[0].layers == "top"

    def test_what_follows_can_learn(self, folder):
        model = pooled(ElmoModule(folder))
        model.append(Dense(model[0].get_embedding_dimension(), 5))
        features = model(model.preprocess(TEXTS))
        features["sentence_embedding"].sum().backward()
        assert [tuple(weight.shape) for weight in model.parameters() if weight.grad is not None] == [(5, 20), (5,)]


def test_semantic_search():
    model = pooled(ElmoModule("en"))
    corpus = ["They sat down by the river.", "She had put all her money in the bank.", "It rained for two days."]
    question = model.encode("He sat by the stream.", convert_to_tensor=True)
    [[best, *_]] = util.semantic_search(question, model.encode(corpus, convert_to_tensor=True))
    assert best["corpus_id"] == 0
    assert torch.is_tensor(question)


def test_mistakes(folder):
    with pytest.raises(CheckpointError, match=r"no model of that name comes with elmokit \(en, zh\)"):
        ElmoModule("nowhere")
    with pytest.raises(ConfigError, match="'all' is not one"):
        ElmoModule(folder, layers="all")
    with pytest.raises(ConfigError, match="0 to 2"):
        ElmoModule(folder, layers=7)
    with pytest.raises(DataError, match="sentence 0 is 3"):
        ElmoModule(folder).preprocess([3])
