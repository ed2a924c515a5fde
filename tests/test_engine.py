"""The fast forms give what the plain ones give."""

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import BYTES, CONFIGS, SENTENCES, random_checkpoint, random_elmo

import elmokit.model.linear
import elmokit.model.tokens
from elmokit.checkpoints import write_checkpoint
from elmokit.errors import ConfigError
from elmokit.model.engine import Engine, TokenCache
from elmokit.model.linear import Int8Linear, PackedLinear, PlainLinear
from elmokit.model.recurrent import WINDOW_ROWS
from elmokit.model.tokens import as_tensors

CLOSE = {"atol": 1e-5, "rtol": 1e-5}  # float32 sums in another order, and tanh in terms of sigmoid
LENGTHS = [40, 17, 17, 5, 2, 1]
LINEARS = [PlainLinear, PackedLinear, Int8Linear]
PACKED = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.fixture(params=[1, 2, 8], ids=["one thread", "two threads", "eight threads"])
def threads(request):
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(1)


def random_state(bilm):
    zero = bilm.zero_state(len(LENGTHS))
    generator = torch.Generator().manual_seed(5)
    return type(zero)(*(torch.randn(part.shape, generator=generator) * 0.5 for part in zero))


class TestEngine:
    @pytest.mark.parametrize("carried", [False, True], ids=["from zero", "from a state"])
    def test_equals_the_module(self, config, threads, carried):
        bilm = random_elmo(config).bilm
        x = torch.randn(sum(LENGTHS), config.projection, generator=torch.Generator().manual_seed(3))
        state = random_state(bilm) if carried else None
        expected, expected_state = bilm(x, LENGTHS, state)
        found, found_state = Engine(bilm).layers(x, LENGTHS, state)
        torch.testing.assert_close(found, expected, **CLOSE)
        torch.testing.assert_close(found_state.h, expected_state.h, **CLOSE)
        torch.testing.assert_close(found_state.c, expected_state.c, **CLOSE)

    def test_inner_layers_leave_out_what_no_token_hears(self, config, threads):
        bilm, lengths = random_elmo(config).bilm, [length + 1 for length in LENGTHS]
        x = torch.randn(sum(lengths), config.projection, generator=torch.Generator().manual_seed(3))
        starts = np.cumsum(lengths) - lengths
        x[starts] = x[0].clone()  # as every sentence begins with <S>
        expected = bilm(x, lengths)[0].unflatten(2, (2, -1))
        expected[1:, starts + np.array(lengths) - 1, 0] = 0
        expected[1:, starts, 1] = 0
        torch.testing.assert_close(Engine(bilm).inner_layers(x, lengths).unflatten(2, (2, -1)), expected, **CLOSE)

    def test_windows_change_nothing(self, config):
        bilm = random_elmo(config).bilm
        x = torch.randn(3 * WINDOW_ROWS + 50, config.projection, generator=torch.Generator().manual_seed(3)) * 0.2
        for lengths in ([len(x)], [2] * (len(x) // 2)):
            torch.testing.assert_close(Engine(bilm).layers(x, lengths)[0], bilm(x, lengths)[0], atol=1e-4, rtol=1e-4)

    @pytest.mark.parametrize("lengths", [[1] * 200, sorted(range(1, 151), reverse=True), [300, *[2] * 149]])
    def test_many_sentences_on_many_threads(self, threads, lengths):
        bilm = random_elmo().bilm
        x = torch.randn(sum(lengths), BYTES.projection, generator=torch.Generator().manual_seed(3)) * 0.2
        found, state = Engine(bilm).layers(x, lengths)
        expected, expected_state = bilm(x, lengths)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(state.c, expected_state.c, atol=1e-4, rtol=1e-4)

    def test_token_vectors_equal_the_module(self, config, threads):
        elmo = random_elmo(config)
        words = [word for sentence in SENTENCES for word in sentence] + [f"word{i}" * (i % 9) for i in range(400)]
        ids = as_tensors(elmo.encoder.encode(words))
        torch.testing.assert_close(elmo.engine.prepared.tokens(*ids), elmo.bilm.tokens(*ids), **CLOSE)

    def test_an_alphabet_too_large_for_tables(self, monkeypatch):
        elmo = random_elmo(CONFIGS["unicode"])
        by_table = elmo.embed(SENTENCES)
        monkeypatch.setattr(elmokit.model.tokens, "LARGEST_TABLES", 0)
        for one, other in zip(by_table, random_elmo(CONFIGS["unicode"]).embed(SENTENCES), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)

    @PACKED
    def test_batch_mates_do_not_change_a_bit(self, threads):
        elmo = random_elmo(reproducible=True)
        together = elmo.embed(SENTENCES, layers="all")
        for sentence, vectors in zip(SENTENCES, together, strict=True):
            np.testing.assert_array_equal(elmo.embed([sentence], layers="all")[0], vectors)

    @pytest.mark.parametrize("again", [copy.deepcopy, lambda elmo: pickle.loads(pickle.dumps(elmo))])
    def test_copies_work(self, again):
        elmo = random_elmo()
        vectors = elmo.embed(SENTENCES)
        for one, other in zip(again(elmo).embed(SENTENCES), vectors, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)

    def test_works_in_a_data_loader(self):
        """Its workers are forks of a process whose threads they do not inherit."""
        torch.set_num_threads(2)
        elmo = random_elmo()
        expected = elmo.embed(SENTENCES)
        loader = torch.utils.data.DataLoader(
            SENTENCES, batch_size=2, num_workers=1, collate_fn=elmo.embed, multiprocessing_context="fork", timeout=60
        )
        found = [vectors for batch in loader for vectors in batch]
        torch.set_num_threads(1)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


class TestInt8:
    @pytest.fixture(autouse=True)
    def even_small_matrices(self, monkeypatch):
        monkeypatch.setattr(elmokit.model.linear, "INT8_LEAST", 0)

    def test_close_to_fp32(self):
        fp32, int8 = random_elmo(), random_elmo(precision="int8", reproducible=True)
        vectors = zip(fp32.embed(SENTENCES, layers="all"), int8.embed(SENTENCES, layers="all"), strict=True)
        for one, other in vectors:
            cosine = (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)
            assert cosine.min() > 0.99

    def test_batch_mates_do_not_change_a_bit(self):
        elmo = random_elmo(precision="int8", reproducible=True)
        together = elmo.embed([*SENTENCES, *SENTENCES * 20], layers="all")
        for sentence, vectors in zip(SENTENCES, together, strict=False):
            np.testing.assert_array_equal(elmo.embed([sentence], layers="all")[0], vectors)

    def test_small_matrices_are_left_alone(self, monkeypatch):
        monkeypatch.setattr(elmokit.model.linear, "INT8_LEAST", 10**6)
        for one, other in zip(
            random_elmo().embed(SENTENCES), random_elmo(precision="int8").embed(SENTENCES), strict=True
        ):
            np.testing.assert_array_equal(one, other)

    def test_is_for_lstms(self):
        with pytest.raises(ConfigError, match="LSTM"):
            random_elmo(CONFIGS["gru"], precision="int8")


@PACKED
class TestEveryLinear:
    @pytest.fixture(params=LINEARS)
    def kind(self, request):
        return request.param

    @pytest.mark.parametrize("rows", [1, 3, 64, 65, 200])
    def test_product(self, kind, rows):
        generator = torch.Generator().manual_seed(0)
        weight, x = torch.randn(24, 40, generator=generator), torch.randn(rows, 40, generator=generator)
        bias, out = torch.randn(24, generator=generator), torch.randn(rows, 24, generator=generator)
        # 7 bits for an input and 8 for a weight make an error of 1.5% of a product of normal values, by theory
        bound = 0.03 if kind is Int8Linear else 1e-6
        linear, product = kind(weight), x @ weight.t()
        for found, expected in (
            (linear(x), product),
            (linear(x, bias), product + bias),
            (linear.add_to(out.clone(), x), product + out),
        ):
            assert (found - expected).norm() < bound * product.norm()

    def test_zeros_and_large_values(self, kind):
        weight = torch.eye(8)
        weight[3] = 0
        x = torch.zeros(2, 8)
        x[1] = 1e6
        product = kind(weight)(x)
        assert product.isfinite().all()
        assert not product[0].any()
        torch.testing.assert_close(product[1], x[1] * weight.diagonal(), rtol=0.01, atol=0)


class TestCache:
    def make(self, capacity: int) -> TokenCache:
        return TokenCache(4, capacity * (4 * 4 + 200) / 2**20)

    def test_computes_a_word_once(self):
        cache, computed = self.make(10), []

        def compute(words):
            computed.extend(words)
            return torch.tensor([[float(len(word))] * 4 for word in words])

        for words in (["a", "bb"], ["bb", "ccc", "a"], ["ccc"]):
            assert cache.lookup(words, compute)[:, 0].tolist() == [len(word) for word in words]
        assert computed == ["a", "bb", "ccc"]

    def test_keeps_within_its_bound_and_forgets_the_oldest(self):
        cache = self.make(3)
        for words in (["a", "b", "c"], ["a"], ["d"]):
            cache.lookup(words, lambda new: torch.ones(len(new), 4))
        assert list(cache.rows) == ["c", "a", "d"]
        assert cache.table.shape == (3, 4)

    def test_more_words_at_once_than_it_holds(self):
        cache = self.make(3)
        words = [f"w{number}" for number in range(10)]
        rows = cache.lookup(words, lambda new: torch.arange(len(new)).float()[:, None].expand(-1, 4))
        assert rows[:, 0].tolist() == list(range(10))
        assert len(cache.rows) == 3
        again = cache.lookup(words, lambda new: torch.tensor([[float(word[1:])] * 4 for word in new]))
        assert again[:, 0].tolist() == list(range(10))

    @pytest.mark.parametrize("megabytes", [0, 0.001, 64])
    def test_any_size_gives_the_same_vectors(self, megabytes):
        elmo = random_elmo(token_cache_mb=megabytes)
        for _ in range(2):
            for one, other in zip(elmo.embed(SENTENCES), random_elmo().embed(SENTENCES), strict=True):
                np.testing.assert_allclose(one, other, atol=1e-6)

    def test_negative(self):
        with pytest.raises(ConfigError, match="token_cache_mb"):
            random_elmo(token_cache_mb=-1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_a_long_sentence_takes_bounded_memory(tmp_path):
    """20,000 tokens: what grows is what is read and given back, not the gates of every step."""
    write_checkpoint(random_checkpoint(replace(BYTES, hidden=256)), tmp_path / "model")
    code = (
        "import sys, elmokit\n"
        "def peak():\n"
        "    return next(int(x.split()[1]) / 1024 for x in open('/proc/self/status') if x.startswith('VmHWM'))\n"
        "elmo = elmokit.load(sys.argv[1])\n"
        "elmo.embed([['word'] * 100])\n"
        "before = peak()\n"
        "elmo.embed([[f'word{n % 500}' for n in range(20_000)]])\n"
        "print(peak() - before)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert float(done.stdout) < 50  # megabytes; the gates of one layer in one direction would be 82
