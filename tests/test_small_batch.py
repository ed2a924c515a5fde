"""One sentence or a few, by compiled layers: what the others give, to rounding; and code that is kept."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import BYTES, CONFIGS, SENTENCES, random_elmo

import elmokit.model.engine
import elmokit.model.small_batch
from elmokit import machine_code
from elmokit.model.bilm import pack
from elmokit.model.engine import FEW_SENTENCES
from elmokit.model.small_batch import COLUMNS, WINDOW_ROWS, SmallBatchLstm, kernel
from elmokit.text.corpus import open_corpus

pytest.importorskip("numba")
LENGTHS = [WINDOW_ROWS + 9, 17, 17, 5, 2, 1, 1]  # more rows than fit in one window
CLOSE = {"atol": 2e-6, "rtol": 0}  # float32 sums in another order
PROMISED = {"atol": 4e-6, "rtol": 0}  # for the bundled models: see `load`
SAMPLES = Path(__file__).parents[1] / "samples"
LSTMS = {name: config for name, config in CONFIGS.items() if config.cell == "lstm"}
# columns that divide evenly, that do not divide at all, and inputs that are no multiple of four or eight
SIZES = [(24, 10), (512, 128), (COLUMNS + 9, 61), (131, 131)]


def run(config, *, precision="fp32", lengths=LENGTHS, carried=False):
    """What the compiled layer gives, and what the module does."""
    layer, packing = random_elmo(config).bilm.stacks[1][0], pack(lengths)
    for weight in (layer.weight, layer.projection):
        if weight is not None:
            weight.div_(0.3 * weight.shape[1] ** 0.5)  # so that sums of many are of order one
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(sum(lengths), config.projection, generator=generator)
    widths = config.projection, config.hidden
    h, c = (torch.randn(len(lengths), width, generator=generator) * carried for width in widths)
    expected, _, expected_c = layer(x, packing.batch_sizes, h, c)
    found = SmallBatchLstm(layer, precision)(x, packing.batch_sizes, h if carried else None, c)
    return (found, c), (expected, expected_c)


@pytest.mark.parametrize("carried", [False, True], ids=["from zero", "from a state"])
@pytest.mark.parametrize("name", LSTMS)
def test_equals_the_module(name, carried):
    found, expected = run(LSTMS[name], carried=carried)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lengths", [[1], [2] * FEW_SENTENCES, LENGTHS], ids=["one token", "many", "several"])
def test_any_size(size, lengths):
    hidden, projection = size
    found, expected = run(replace(BYTES, hidden=hidden, projection=projection), lengths=lengths)
    torch.testing.assert_close(found[0], expected[0], **CLOSE)


@pytest.mark.parametrize("size", [(512, 128), (131, 61), (100, 28)])
def test_one_and_a_few_are_equal_to_the_bit(size):
    """Sums of two rows at once and of one by itself are added in the same order."""
    hidden, projection = size
    config, lengths = replace(BYTES, hidden=hidden, projection=projection), [7] * 5
    layer, packing = random_elmo(config).bilm.stacks[0][0], pack(lengths)
    x = torch.randn(sum(lengths), projection, generator=torch.Generator().manual_seed(3))
    run = SmallBatchLstm(layer, "fp32")
    together = run(x, packing.batch_sizes, None, torch.zeros(5, hidden))
    alone = run(x[::5].contiguous(), [1] * 7, None, torch.zeros(1, hidden))
    torch.testing.assert_close(together[::5], alone, rtol=0, atol=0)


def test_weights_that_need_16_bits_alone_are_kept_so_and_change_nothing(monkeypatch):
    """A weight below 2**-14 has fewer digits in 16 bits; halved, as gates are, it might need one more."""
    layer, packing = random_elmo(replace(BYTES, hidden=131, projection=61)).bilm.stacks[0][0], pack(LENGTHS)
    assert SmallBatchLstm(layer, "fp32").recurrent.blocks.dtype == torch.float32
    with torch.no_grad():
        layer.weight[:9] *= 1e-5
        for weight in (layer.weight, layer.projection):
            weight.copy_(weight.half())
    x = torch.randn(sum(LENGTHS), 61, generator=torch.Generator().manual_seed(3))
    run, c = SmallBatchLstm(layer, "fp32"), torch.zeros(len(LENGTHS), 131)
    assert {run.input.blocks.dtype, run.recurrent.blocks.dtype, run.projection.blocks.dtype} == {torch.float16}
    found = run(x, packing.batch_sizes, None, c)
    monkeypatch.setattr(elmokit.model.small_batch, "kept_as", lambda *_: "fp32")
    wide = SmallBatchLstm(layer, "fp32")
    assert wide.recurrent.blocks.dtype == torch.float32
    assert torch.equal(found, wide(x, packing.batch_sizes, None, torch.zeros(len(LENGTHS), 131)))


def test_int8_is_close():
    found, expected = run(replace(BYTES, hidden=512, projection=128), precision="int8")
    cosine = torch.nn.functional.cosine_similarity(found[0], expected[0], dim=1)
    assert cosine.min() > 0.999
    assert not torch.equal(*(part[0] for part in (found, expected)))


def test_what_is_not_a_number_stays_so():
    elmo = random_elmo(allow_nonfinite=True)
    with torch.no_grad():
        elmo.bilm.stacks[0][0].weight[0, 0] = torch.nan
    assert np.isnan(elmo.embed([["bank"]])[0]).any()


@pytest.fixture
def counted(monkeypatch):
    """Which calls are compiled ones."""
    seen, plain = [], SmallBatchLstm.__call__
    monkeypatch.setattr(SmallBatchLstm, "__call__", lambda *given: (seen.append(given), plain(*given))[1])
    return seen


def test_chosen_by_the_sentences_at_hand(counted):
    elmo = random_elmo()
    elmo.embed([["bank"]] * (FEW_SENTENCES + 1))
    assert not counted
    elmo.embed([["bank"]] * FEW_SENTENCES)
    assert len(counted) == 2 * BYTES.layers


def test_a_layer_that_waits_for_memory_is_not(counted, monkeypatch):
    monkeypatch.setattr(elmokit.model.engine, "COMPILED_WEIGHTS", 100)
    random_elmo().embed(SENTENCES)
    assert not counted


def test_alone_and_among_many_agree_to_rounding():
    elmo, many = elmokit.load("en"), [*SENTENCES] * 5
    among = elmo.embed(many, layers="all")
    for sentence, vectors in zip(SENTENCES, among, strict=False):
        np.testing.assert_allclose(elmo.embed([sentence], layers="all")[0], vectors, **CLOSE)


@pytest.mark.parametrize("name", ["en", "zh"])
def test_the_promise_on_a_text(name):
    elmo = elmokit.load(name)
    sentences = [found.words for found in islice(open_corpus([SAMPLES / f"{name}.txt"], elmo.tokenizer), 60)]
    for sentence, vectors in zip(sentences, elmo.embed(sentences, layers="all"), strict=True):
        np.testing.assert_allclose(elmo.embed([sentence], layers="all")[0], vectors, **PROMISED)


def test_reproducible_is_equal_to_the_bit(counted):
    elmo, many = elmokit.load("en", reproducible=True), [*SENTENCES] * 5
    among = elmo.embed(many, layers="all")
    for sentence, vectors in zip(SENTENCES, among, strict=False):
        np.testing.assert_array_equal(elmo.embed([sentence], layers="all")[0], vectors)
    assert not counted


class TestMachineCode:
    CODE = (
        "import sys, logging; logging.basicConfig(level='INFO', format='%(message)s')\n"
        "import elmokit\n"
        "elmokit.load('en').embed(['The bank .'])\n"
        "print('numba' in sys.modules)\n"
    )

    def embed(self, cache, **environment):
        command = [sys.executable, "-c", self.CODE]
        variables = os.environ | {"ELMOKIT_CACHE": str(cache)} | environment
        return subprocess.run(command, check=True, capture_output=True, text=True, env=variables)

    def test_compiled_once_and_loaded_without_numba(self, tmp_path):
        first, second = self.embed(tmp_path), self.embed(tmp_path)
        assert "compiling lstm_fp16 for this processor: once" in first.stderr
        assert "compiling" not in second.stderr
        assert second.stdout == "False\n"
        [kept] = (tmp_path / "machine-code").iterdir()
        kept.write_bytes(kept.read_bytes()[:-100])  # as a disk would that lost some
        assert "compiling" in self.embed(tmp_path).stderr
        assert "compiling" not in self.embed(tmp_path).stderr

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").touch()
        done = self.embed(tmp_path / "file" / "below")
        assert "cannot be kept" in done.stderr

    def test_without_numba_the_other_layers_serve(self, counted):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "llvmlite.binding", None)
            machine_code._address.cache_clear()
            kernel.cache_clear()
            vectors = random_elmo().embed([SENTENCES[0]])[0]
        machine_code._address.cache_clear()
        kernel.cache_clear()
        assert not counted
        np.testing.assert_allclose(random_elmo().embed([SENTENCES[0]])[0], vectors, atol=2e-6)
