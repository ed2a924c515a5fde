"""What a user asks of Elmo: the same vectors however they are asked for, and clear words for every mistake."""

from collections import UserList
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch
from conftest import BYTES, GOLDEN, SENTENCES, VOCABULARY, random_elmo
from hypothesis import given, settings
from hypothesis import strategies as st

import elmokit
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.tables import weight_shapes
from elmokit.config import SoftmaxConfig
from elmokit.elmo import Elmo
from elmokit.errors import CheckpointError, ConfigError, DataError

# the vectors of a sentence may differ by float32 rounding when its batch has another size
SAME = {"atol": 1e-5, "rtol": 0}
LONG = [f"word{number % 97}" for number in range(2000)]


DIGEST = "ab75357401204c0630c245530e81e7e35ebcd9bdf5de728143d280170f88f753"


@pytest.fixture(params=["full", "sampled", "adaptive"])
def predictor(request) -> Elmo:
    """A random model with a softmax."""
    softmax = SoftmaxConfig(kind=request.param, size=len(VOCABULARY), samples=8, cutoffs=(5, 20))
    config, generator = replace(BYTES, softmax=softmax), torch.Generator().manual_seed(1)
    weights = {name: torch.randn(shape, generator=generator) * 0.4 for name, shape in weight_shapes(config).items()}
    return Elmo(Checkpoint(config, weights, VOCABULARY, "made in a test"))


def assert_same(one, other):
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        np.testing.assert_allclose(left, right, **SAME)


class TestStateless:
    def test_a_sentence_alone_and_among_others(self, config):
        elmo = random_elmo(config)
        sentences = [*SENTENCES, LONG, [], SENTENCES[0]]
        together = elmo.embed(sentences, layers="all")
        assert_same(together, [elmo.embed([sentence], layers="all")[0] for sentence in sentences])
        assert_same(together, elmo.embed(sentences, layers="all"))
        assert_same(together[::-1], elmo.embed(sentences[::-1], layers="all"))

    @pytest.mark.parametrize("batch_tokens", [1, 7, 100])
    def test_any_size_of_batch(self, elmo, batch_tokens):
        small = random_elmo(batch_tokens=batch_tokens)
        assert_same(elmo.embed(SENTENCES), small.embed(SENTENCES))
        assert_same(elmo.embed(SENTENCES), list(small.embed_stream(iter(SENTENCES))))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.lists(st.text(max_size=60), max_size=12), max_size=6), st.randoms(use_true_random=False))
    def test_any_text_in_any_order(self, sentences, random):
        elmo = random_elmo()
        expected = [elmo.embed([sentence])[0] for sentence in sentences]
        order = list(range(len(sentences)))
        random.shuffle(order)
        found = elmo.embed([sentences[index] for index in order])
        assert_same(found, [expected[index] for index in order])


class TestLayers:
    def test_shapes(self, config):
        elmo = random_elmo(config)
        layers = elmo.embed(SENTENCES, layers="all")
        assert [part.shape for part in layers] == [(config.layers + 1, len(s), elmo.width) for s in SENTENCES]
        assert {part.dtype for part in layers} == {np.dtype(np.float32)}

    def test_choices_are_parts_of_all(self, elmo):
        everything = elmo.embed(SENTENCES, layers="all")
        assert_same(elmo.embed(SENTENCES), [part.mean(axis=0) for part in everything])
        assert_same(elmo.embed(SENTENCES, layers="top"), [part[2] for part in everything])
        for layer in range(3):
            assert_same(elmo.embed(SENTENCES, layers=layer), [part[layer] for part in everything])

    def test_layer_0_knows_no_context(self, elmo):
        river, wages = elmo.embed([SENTENCES[0], SENTENCES[3]], layers="all")
        np.testing.assert_allclose(river[0, 1], wages[0, 6], **SAME)
        assert np.abs(river[2, 1] - wages[2, 6]).max() > 0.01

    @pytest.mark.parametrize("layers", ["best", -1, 3, 1.5, None, True])
    def test_unknown(self, elmo, layers):
        with pytest.raises(ConfigError, match="unknown layers .* 0 to 2"):
            elmo.embed(SENTENCES, layers=layers)

    def test_arrays_do_not_share_memory(self, elmo):
        one, other = elmo.embed(["a b".split(), "c d".split()])
        assert one.base is None
        assert not np.shares_memory(one, other)


class TestInput:
    def test_raw_text_is_tokenised(self, elmo):
        assert elmo.tokenize(["Raw text works too."]) == [["Raw", "text", "works", "too", "."]]
        assert_same(elmo.embed(["Raw text works too."]), elmo.embed([["Raw", "text", "works", "too", "."]]))

    def test_empty(self, elmo):
        assert elmo.embed([]) == []
        vectors = elmo.embed([[], ["a"], "", "   "], layers="all")
        assert [part.shape for part in vectors] == [(3, 0, 20), (3, 1, 20), (3, 0, 20), (3, 0, 20)]

    def test_any_iterable(self, elmo):
        assert_same(elmo.embed(iter(SENTENCES)), elmo.embed(tuple(tuple(sentence) for sentence in SENTENCES)))
        assert_same(elmo.embed([np.array(SENTENCES[0])]), elmo.embed([SENTENCES[0]]))
        assert_same(elmo.embed(UserList(SENTENCES)), elmo.embed(SENTENCES))

    def test_stream_is_lazy(self, elmo):
        def endless():
            while True:
                yield from SENTENCES

        stream = elmo.embed_stream(endless())
        assert_same([next(stream) for _ in SENTENCES], elmo.embed(SENTENCES))

    @pytest.mark.parametrize("item", [None, 3, b"bytes", {"a": 1}, {"a"}])
    def test_not_a_sentence(self, elmo, item):
        with pytest.raises(DataError, match="sentence 1 is .*: expected a str or a list of tokens"):
            elmo.embed([["fine"], item])

    @pytest.mark.parametrize("item", [None, 3, b"bytes", ["nested"]])
    def test_not_a_token(self, elmo, item):
        with pytest.raises(DataError, match="token 1 of sentence 0 is .*: expected a str"):
            elmo.embed([["fine", item]])

    def test_a_string_is_one_sentence(self, elmo):
        [vectors] = elmo.embed("He sat on the bank.", layers="top")
        assert_same([vectors], elmo.embed(["He sat on the bank."], layers="top"))
        assert_same(list(elmo.embed_stream("He sat on the bank.", layers="top")), [vectors])
        assert elmo.sentence_vectors("He sat on the bank.").shape == (1, elmo.width)

    @pytest.mark.parametrize("wrong", [None, 3, 2.5, b"bytes", {"a": "b"}, object()])
    def test_neither_sentences_nor_a_string(self, elmo, wrong):
        message = f"sentences came as {type(wrong).__name__}: pass a list of sentences"
        for ask in (elmo.embed, elmo.embed_stream, elmo.sentence_vectors, elmo.tokenize):
            with pytest.raises(DataError, match=message):
                ask(wrong)
        with pytest.raises(ValueError, match=message):
            elmo.embed(wrong)

    def test_a_flat_list_of_words_is_pointed_out(self, elmo):
        with pytest.warns(UserWarning, match=r"pass it as \[tokens\]"):
            assert len(elmo.embed(["A", "flat", "list"])) == 3

    @pytest.mark.parametrize("sentences", [["Hello"], ["Two words", "one"], [["A"], ["flat"]], ["今天天气很好", "好"]])
    def test_what_is_no_flat_list_passes(self, elmo, sentences):
        elmo.embed(sentences)


class TestSentenceVectors:
    def test_pooling(self, elmo):
        vectors = elmo.embed(SENTENCES, layers="top")
        mean = elmo.sentence_vectors(SENTENCES, layers="top")
        assert mean.shape == (len(SENTENCES), elmo.width)
        assert_same(mean, [part.mean(axis=0) for part in vectors])
        assert_same(
            elmo.sentence_vectors(SENTENCES, pooling="max", layers="top"), [part.max(axis=0) for part in vectors]
        )

    def test_empty(self, elmo):
        assert elmo.sentence_vectors([]).shape == (0, elmo.width)
        assert not elmo.sentence_vectors([[]]).any()

    def test_unknown(self, elmo):
        with pytest.raises(ConfigError, match="pooling"):
            elmo.sentence_vectors(SENTENCES, pooling="sum")
        with pytest.raises(ConfigError, match="all"):
            elmo.sentence_vectors(SENTENCES, layers="all")


class TestVector:
    TEXT = "He sat on the [bank] of the river ."

    def test_of_the_word_in_brackets(self, elmo):
        tokens = elmo.tokens("He sat on the bank of the river .")
        assert tokens == "He sat on the bank of the river .".split()
        for layers in ("average", "top", 0, "all"):
            [vectors] = elmo.embed([tokens], layers=layers)
            np.testing.assert_array_equal(elmo.vector(self.TEXT, layers=layers), vectors[..., 4, :])

    @pytest.mark.parametrize("text", ["no brackets", "[two] [words]", "[ ]"])
    def test_without_one_word_in_brackets(self, elmo, text):
        with pytest.raises(DataError, match="brackets"):
            elmo.vector(text)

    def test_similarity_of_words_in_their_sentences(self, elmo):
        other = "She went to the [bank] at noon ."
        one, two = elmo.vector(self.TEXT, layers=1), elmo.vector(other, layers=1)
        expected = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
        assert elmo.similarity(self.TEXT, other, layers=1) == pytest.approx(expected, rel=1e-5)
        assert elmo.similarity(self.TEXT, other, layers=0) == pytest.approx(1)
        assert elmo.similarity(self.TEXT, self.TEXT) == pytest.approx(1, abs=1e-12)

    def test_similarity_of_sentences(self, elmo):
        one, two = elmo.sentence_vectors(SENTENCES[:2])
        expected = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
        assert elmo.similarity(*SENTENCES[:2]) == pytest.approx(expected, rel=1e-5)
        word, sentence = elmo.vector(self.TEXT), elmo.sentence_vectors(["A bank"])[0]
        mixed = word @ sentence / np.linalg.norm(word) / np.linalg.norm(sentence)
        assert elmo.similarity(self.TEXT, "A bank") == pytest.approx(mixed, rel=1e-5)

    def test_nothing_to_compare(self, elmo):
        with pytest.raises(DataError, match="'' has no tokens"):
            elmo.similarity("A bank", "")
        with pytest.raises(ConfigError, match="'all'"):
            elmo.similarity("A bank", "A bank", layers="all")


class TestPredictions:
    WORDS = "The bank of the zigzag was steep".split()

    def test_are_those_of_the_softmax(self, predictor):
        found = predictor.predictions(self.WORDS)
        assert found.tokens == self.WORDS
        assert found.forward.shape == found.backward.shape == (7, len(VOCABULARY))
        assert found.forward.dtype == found.backward.dtype == np.float32
        words = ["<S>", *self.WORDS, "</S>"]
        top = predictor.run([words], gradients=True)[-1]
        softmax, width = predictor.language_model.softmax, predictor.config.projection
        forward, backward = (softmax.log_probabilities(part).numpy() for part in (top[:7, :width], top[2:, width:]))
        np.testing.assert_allclose(found.forward, forward, atol=1e-4)  # the engine's single precision
        np.testing.assert_allclose(found.backward, backward, atol=1e-4)
        np.testing.assert_allclose(np.exp(found.forward).sum(axis=1), 1, rtol=1e-5)

    def test_of_some_tokens(self, predictor):
        everything = predictor.predictions(" ".join(self.WORDS))
        some = predictor.predictions(self.WORDS, positions=(5, 0))
        assert some.tokens == ["was", "The"]
        np.testing.assert_allclose(some.forward, everything.forward[[5, 0]], atol=1e-5)
        np.testing.assert_allclose(some.backward, everything.backward[[5, 0]], atol=1e-5)
        assert predictor.predictions([]).forward.shape == (0, len(VOCABULARY))

    def test_do_not_see_the_token(self, predictor):
        one, other = (predictor.predictions(["The", word, "of"], positions=[1]) for word in ("bank", "zigzag"))
        np.testing.assert_array_equal(one.forward, other.forward)
        np.testing.assert_array_equal(one.backward, other.backward)

    def test_log_likelihoods_are_those_of_each_token_and_the_bounds(self, predictor):
        sentences = [self.WORDS, [], ["bank"], *SENTENCES[:5]]
        found = list(predictor.log_likelihoods(iter(sentences)))
        assert [one.tokens for one in found] == sentences
        for tokens, one in zip(sentences, found, strict=True):
            assert one.forward.shape == one.backward.shape == (len(tokens) + 1,)
            expected, ids = predictor.predictions(tokens), VOCABULARY.encode(tokens)
            rows = np.arange(len(tokens))
            np.testing.assert_allclose(one.forward[:-1], expected.forward[rows, ids], atol=1e-4)
            np.testing.assert_allclose(one.backward[1:], expected.backward[rows, ids], atol=1e-4)
            [alone] = predictor.log_likelihoods([tokens])
            np.testing.assert_allclose(alone.forward, one.forward, atol=1e-5)
            np.testing.assert_allclose(alone.backward, one.backward, atol=1e-5)

    def test_log_likelihoods_are_lazy(self, predictor):
        stream = predictor.log_likelihoods(SENTENCES[number % 5] for number in count())
        assert next(stream).tokens == SENTENCES[0]

    def test_mistakes(self, predictor, elmo):
        for position in (-1, 7):
            with pytest.raises(DataError, match=f"no token {position}: the sentence has 7"):
                predictor.predictions(self.WORDS, positions=[position])
        for ask in (elmo.predictions, elmo.log_likelihoods):
            with pytest.raises(CheckpointError, match="has no softmax, so it cannot predict words"):
                ask(self.WORDS)


class TestIdentity:
    def test_digest_is_of_what_vectors_depend_on(self, config):
        one, same, other = random_elmo(config), random_elmo(config), random_elmo(config, seed=1)
        assert one.digest == same.digest == random_elmo(replace(config, tokenizer="jieba")).digest
        assert len({one.digest, other.digest, random_elmo(replace(config, forget_bias=0.5)).digest}) == 3

    def test_digest_of_a_model_that_must_keep_its_name(self):
        """An index of occurrences is tied to it."""
        assert elmokit.load(GOLDEN / "base").digest == DIGEST

    def test_digest_follows_what_was_learned(self):
        elmo = random_elmo()
        before = elmo.digest
        assert elmo.digest == before
        elmo.bilm.forward_layers[0].bias.add_(1)
        assert elmo.digest != before

    def test_repr(self, elmo, predictor):
        shown = "Elmo('made in a test', layers=3, width=20, vocabulary=none, tokenizer='auto', precision='fp32')"
        assert repr(elmo) == shown
        assert f"vocabulary={len(VOCABULARY)} words" in repr(predictor)


class TestLoading:
    @pytest.mark.parametrize("nothing", ["", "  "])
    def test_no_name(self, nothing):
        with pytest.raises(ConfigError, match=r'names no model: write load\("en"\)'):
            elmokit.load(nothing)

    def test_save_and_load(self, config, tmp_path):
        elmo = random_elmo(config)
        elmo.save(tmp_path / "model")
        again = elmokit.load(str(tmp_path / "model"))
        for one, other in zip(elmo.embed(SENTENCES), again.embed(SENTENCES), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_settings_are_checked(self, model_folder):
        for bad in ({"precision": "fp12"}, {"batch_tokens": 0}, {"device": "toaster"}):
            with pytest.raises(ConfigError, match=next(iter(bad))):
                elmokit.load(model_folder, **bad)

    def test_weights_are_frozen(self, elmo):
        assert not any(weight.requires_grad for weight in elmo.bilm.parameters())
        assert elmo.device == torch.device("cpu")
        assert elmo.config == BYTES
