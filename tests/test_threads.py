"""Many threads on one model: every call gets what it would get alone."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import BYTES, random_elmo
from test_tasks_contract import ENTITIES
from test_tasks_fit import train

import elmokit
from elmokit.model.engine import BYTES_A_KEY
from elmokit.model.threads import side_by_side
from elmokit.text.corpus import open_corpus
from elmokit.text.tokenizers import get_tokenizer

SAMPLES = Path(__file__).parents[1] / "samples"
CALLS = 60
FEW_WORDS = 8 * (4 * BYTES.projection + BYTES_A_KEY) / 2**20  # megabytes: fewer than a sentence has


@pytest.fixture(scope="module")
def sentences():
    """Real ones, so that calls share some of their words."""
    corpus = open_corpus([SAMPLES / "en.txt"], get_tokenizer("words"))
    found = [sentence.words for sentence in corpus if 4 <= len(sentence.words) <= 25]
    return found[:CALLS]


@pytest.fixture(params=[2, 8, 32])
def callers(request):
    """As many threads, which take turns as often as can be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    with ThreadPoolExecutor(request.param) as pool:
        yield pool
    sys.setswitchinterval(interval)


@pytest.fixture(params=[1, 2], ids=["one core a call", "two cores a call"])
def cores(request):
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(1)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def alone(elmo, sentences):
    return [elmo.embed([sentence])[0] for sentence in sentences]


def together(callers, elmo, sentences):
    return list(callers.map(lambda sentence: elmo.embed([sentence])[0], sentences))


@pytest.mark.parametrize("megabytes", [64, FEW_WORDS, 0], ids=["a cold cache", "one that evicts", "none"])
def test_vectors(callers, cores, sentences, megabytes):
    expected = alone(random_elmo(), sentences)
    for _ in range(2):
        assert_same(together(callers, random_elmo(token_cache_mb=megabytes), sentences), expected)


def test_a_real_model(callers, sentences):
    expected = alone(elmokit.load("en"), sentences)
    assert_same(together(callers, elmokit.load("en"), sentences), expected)


def test_weights_that_change_between_calls(callers, sentences):
    elmo = random_elmo()
    for seed in range(4):
        other = random_elmo(seed=seed)
        with torch.no_grad():
            for weight, new in zip(elmo.bilm.parameters(), other.bilm.parameters(), strict=True):
                weight.copy_(new)
        assert_same(together(callers, elmo, sentences[:40]), alone(other, sentences[:40]))


def test_a_state_that_goes_on_loses_no_call(callers):
    """The same sentence every time, so that any order of the calls gives the same vectors in the end."""
    one, many = random_elmo(stateful=True), random_elmo(stateful=True)
    expected = sorted(one.embed([["The", "bank"]])[0].tobytes() for _ in range(40))
    assert sorted(callers.map(lambda _: many.embed([["The", "bank"]])[0].tobytes(), range(40))) == expected


def test_as_a_layer(callers, sentences):
    layer = elmokit.ElmoEmbedding(random_elmo()).eval()
    with torch.no_grad():
        expected = [layer([sentence])[0].numpy() for sentence in sentences]
    fresh = elmokit.ElmoEmbedding(random_elmo()).eval()

    def run(sentence):
        with torch.no_grad():
            return fresh([sentence])[0].numpy()

    assert_same(callers.map(run, sentences), expected)


def test_a_task(callers, sentences, tmp_path):
    predictor = train(tmp_path / "task", {"model": random_elmo()}, examples=ENTITIES)
    expected = [predictor.predict([sentence]) for sentence in sentences]
    for source in predictor.model.inputs.sources:
        source.embedder.engine.prepared.cache.clear()
    assert list(callers.map(lambda sentence: predictor.predict([sentence]), sentences)) == expected


def test_index_search(callers, tmp_path):
    pytest.importorskip("lancedb", reason="needs the extra 'search'")
    from elmokit.lexicon.index import build_index, open_index

    elmo = random_elmo()
    corpus = list(open_corpus([SAMPLES / "en.txt"], elmo.tokenizer))[:60]
    build_index(corpus, elmo, tmp_path / "index")
    queries = [f"[{sentence.words[0]}] {' '.join(sentence.words[1:])}" for sentence in corpus[:20]]
    queries = [query for query in queries if query.count("[") == 1]

    index = open_index(tmp_path / "index")

    def search(query, model=elmo):
        return [(hit.occurrence.context.text, hit.cosine) for hit in index.search_word(query, model)]

    expected, fresh = [search(query) for query in queries], random_elmo()
    assert list(callers.map(lambda query: search(query, fresh), queries)) == expected


def test_threads_of_the_user_keep_their_own_number_of_cores():
    """Those of the engine have one each; torch would give that to others, or the others' number to them."""
    torch.set_num_threads(2)
    own = side_by_side([torch.get_num_threads] * 4)
    with ThreadPoolExecutor(1) as later:
        found = later.submit(torch.get_num_threads).result()
    torch.set_num_threads(1)
    assert (own, found) == ([1] * 4, 2)
