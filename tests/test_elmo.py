"""What a user asks of Elmo: the same vectors however they are asked for, and clear words for every mistake."""

import numpy as np
import pytest
import torch
from conftest import BYTES, SENTENCES, random_elmo
from hypothesis import given, settings
from hypothesis import strategies as st

import elmokit
from elmokit.errors import ConfigError, DataError

# the vectors of a sentence may differ by float32 rounding when its batch has another size
SAME = {"atol": 1e-5, "rtol": 0}
LONG = [f"word{number % 97}" for number in range(2000)]


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
        found = elmo.embed([sentences[place] for place in order])
        assert_same(found, [expected[place] for place in order])


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

    @pytest.mark.parametrize("text", ["one string", b"bytes"])
    def test_a_string_for_a_list(self, elmo, text):
        with pytest.raises(DataError, match="put it in a list"):
            elmo.embed(text)

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


class TestLoading:
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
