"""The compiled kernels of a training step: in 32 bits as torch in 64, in 16 within what 16 bits can hold."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import BYTES, CHARACTERS, SENTENCES

from elmokit.config import ModelConfig, WordConfig
from elmokit.model import fused
from elmokit.model.fused import array, kernels_for
from elmokit.model.recurrent import RecurrentLayer, lstm_stream, plain_stream
from elmokit.model.softmax import AdaptiveSoftmax, FullSoftmax
from elmokit.model.tokens import TokenEncoder, as_tensors
from elmokit.text.words import WordEncoder

kernels = pytest.importorskip("elmokit.model.kernels", reason="numba is not installed")
HALF_STEP = 2**-8  # of bfloat16, relative


def gradients(loss, weights):
    return torch.autograd.grad(loss, list(weights))


@pytest.mark.parametrize("clips", [(1.0, 0.4), (None, None), (float("inf"), 0.4)])
@pytest.mark.parametrize("projection", [32, 96])
def test_lstm(clips, projection):
    """Wide enough for the compiler's wide registers, and not a multiple of them."""
    torch.manual_seed(0)
    sizes = {"hidden": 97 if projection == 32 else 96, "projection": projection}
    config = ModelConfig(
        words=WordConfig(size=9), **sizes, forget_bias=1.0, cell_clip=clips[0], projection_clip=clips[1]
    )
    layer = RecurrentLayer(33, config)
    layer.weight.data.mul_(4)  # so that both clips are met
    x, h, c = torch.randn(7, 5, 33), torch.randn(5, projection), torch.randn(5, config.hidden) / 2
    keep, d_output, d_cell = torch.rand(7, 5) > 0.2, torch.randn(7, 5, projection), torch.randn(5, config.hidden)
    assert kernels_for(layer.weight) is kernels
    found = []
    for run, dtype in ((lstm_stream, torch.float32), (plain_stream, torch.float64)):
        layer.to(dtype)
        given = [part.to(dtype, copy=True).requires_grad_() for part in (x, h, c)]
        outputs, _, last = run(layer, *given, keep)
        loss = (outputs * d_output).sum() + (last * d_cell).sum()
        found.append([outputs, last, *gradients(loss, [*given, *layer.parameters()])])
    for fast, exact in zip(*found, strict=True):
        assert fast.dtype == torch.float32
        torch.testing.assert_close(fast.double(), exact, rtol=1e-4, atol=1e-4)  # 7 steps of sums of 130 products


@pytest.mark.parametrize("autocast", [False, True], ids=["32 bits", "16 bits"])
@pytest.mark.parametrize("make", [lambda: FullSoftmax(3001, 32), lambda: AdaptiveSoftmax(3001, 32, [100, 500])])
def test_cross_entropy(make, autocast):
    torch.manual_seed(0)
    softmax, h, targets = make(), torch.randn(700, 32) * 3, torch.randint(3001, (700,))  # more than one chunk of rows
    given = h.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = softmax.loss(given, targets)
    fast = [loss, *gradients(loss, [given, *softmax.parameters()])]
    exact_h = h.double().requires_grad_()
    loss = softmax.double().loss(exact_h, targets, plain=True)
    for found, exact in zip(fast, [loss, *gradients(loss, [exact_h, *softmax.parameters()])], strict=True):
        distance = (found.double() - exact).norm() / exact.norm()
        assert distance < (3 * HALF_STEP if autocast else 1e-5)  # sums over 700 rows in 32 bits; bits of bfloat16


def test_a_gradient_of_16_bits_is_rounded_to_the_nearest():
    torch.manual_seed(0)
    logits, bias, targets = torch.randn(50, 301).bfloat16() * 4, torch.randn(301), torch.randint(301, (50,))
    exact = (logits.double() + bias).requires_grad_()
    loss = torch.nn.functional.cross_entropy(exact, targets, reduction="sum")
    (gradient,) = gradients(loss, [exact])
    found = kernels.softmax_gradient(*map(array, (logits, bias, targets, torch.zeros(301), torch.empty(301))))
    assert found == pytest.approx(loss.item(), rel=1e-6)
    torch.testing.assert_close(logits.double(), gradient, rtol=HALF_STEP, atol=1e-6)


@pytest.mark.parametrize("number", [float("nan"), -float("nan"), float("inf")])
def test_a_loss_that_is_not_a_number_says_so(number):
    logits, targets = torch.zeros(3, 40), torch.arange(3)
    logits[1, 7] = number
    rest = (torch.zeros(40), targets, torch.zeros(40), torch.empty(40))
    assert not kernels.softmax_gradient(*map(array, (logits, *rest))) < float("inf")


@pytest.mark.parametrize("threads", [1, 2])
def test_characters(threads):
    torch.manual_seed(0)
    config = replace(BYTES, characters=replace(CHARACTERS, filters=((1, 8), (2, 9), (5, 40))))
    words = list(dict.fromkeys(word for sentence in SENTENCES for word in sentence))
    encoder, (char_ids, _) = TokenEncoder(config), as_tensors(WordEncoder(config, None).encode(words))
    d_vectors, found = torch.randn(len(words), config.projection), []
    torch.set_num_threads(threads)
    for plain in (False, True):
        vectors = encoder.to(torch.float64 if plain else torch.float32)(char_ids, None, plain=plain)
        found.append([vectors, *gradients((vectors * d_vectors).sum(), encoder.parameters())])
    torch.set_num_threads(1)
    for fast, exact in zip(*found, strict=True):
        torch.testing.assert_close(fast.double(), exact, rtol=1e-5, atol=1e-5)  # sums over 30 words


def test_what_the_kernels_do_not_cover_is_left_to_torch():
    assert kernels_for(torch.zeros(1, dtype=torch.float64)) is None
    assert kernels_for(torch.zeros(1, device="meta")) is None
    with torch.autocast("cpu", torch.float16):
        assert kernels_for(torch.zeros(1)) is None


def run_python(code: str, **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_training_works_without_numba_and_inference_does_not_load_it():
    code = """
import sys
import torch
import elmokit
elmokit.load("en").embed(["A bank by the river ."], layers="all")
elmokit.load("zh").embed(["河边的银行。"])
assert "numba" not in sys.modules
sys.modules["numba"] = None
from elmokit.model.fused import kernels_for
from elmokit.model.softmax import FullSoftmax
softmax = FullSoftmax(30, 4)
assert kernels_for(softmax.weight) is None
softmax.loss(torch.randn(9, 4), torch.arange(9)).backward()
print(softmax.weight.grad.shape)
"""
    assert run_python(code) == "torch.Size([30, 4])"


def test_the_kernels_compile_where_no_cache_can_be_written(tmp_path):
    shutil.copy(Path(fused.__file__).with_name("kernels.py"), tmp_path / "copied.py")
    (tmp_path / "__pycache__").write_text("in the way of a folder")
    code = """
import numpy as np
import copied
found, windows = np.zeros((1, 2), np.float32), np.zeros((1, 2), np.int32)
copied.maxima(np.array([[[1, 5], [3, 2]]], np.float32), found, windows)
print(found.tolist(), windows.tolist())
"""
    nowhere = str(tmp_path / "__pycache__")
    found = run_python(code, PYTHONPATH=str(tmp_path), XDG_CACHE_HOME=nowhere, HOME=nowhere, NUMBA_CACHE_DIR="")
    assert found == "[[3.0, 5.0]] [[1, 0]]"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__pycache__", "copied.py"]
