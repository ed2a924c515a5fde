"""gensim's KeyedVectors of our words, with our vectors and neighbours."""

import numpy as np
import pytest
from conftest import HERE

import elmokit
from elmokit.integrations.gensim import keyed_vectors
from elmokit.lexicon import open_corpus, type_vectors, word_neighbors
from elmokit.static import OneHot, StaticVectors


def test_mean_vectors_of_a_corpus():
    means = type_vectors(open_corpus([HERE.parent / "samples" / "en.txt"], "words"), elmokit.load("en"), min_count=3)
    keyed = keyed_vectors(means)
    assert keyed.index_to_key == list(means.words)
    np.testing.assert_array_equal(keyed["river"], means.vectors[means.words.index("river")])
    assert keyed.get_vecattr("river", "count") == means.counts[means.words.index("river")]
    ours = word_neighbors("river", means, k=5)
    assert [word for word, _ in keyed.most_similar("river", topn=5)] == [one.word for one in ours]
    assert keyed.most_similar("river")[0][1] == pytest.approx(ours[0].cosine, abs=1e-5)


def test_static_vectors_there_and_back(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    StaticVectors(["河", "bank", "New York", "bank"], vectors).save(tmp_path / "v.safetensors")
    keyed = keyed_vectors(StaticVectors.load(tmp_path / "v.safetensors"))
    assert keyed.index_to_key == ["河", "bank", "New York"]
    np.testing.assert_array_equal(keyed["bank"], vectors[1])
    back = StaticVectors(keyed.index_to_key, keyed.vectors)
    np.testing.assert_array_equal(back.vectors_of(["河", "sea"]), [vectors[0], np.zeros(6)])


def test_one_hot():
    keyed = keyed_vectors(OneHot(["a", "b", "c"]))
    np.testing.assert_array_equal(keyed.vectors, np.eye(3))
