"""Muon against Newton and Schulz as published, and what it moves."""

from dataclasses import replace

import pytest
import torch
from conftest import BYTES

from elmokit.config import SoftmaxConfig
from elmokit.model.language_model import LanguageModel
from elmokit.pretrain.optimizer import make_optimizer, orthogonal
from elmokit.pretrain.recipe import TrainSettings


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_orthogonal_is_newton_schulz(scale):
    torch.manual_seed(0)
    matrices = {
        "plain": torch.randn(512, 128),
        "bad condition": torch.randn(512, 128) * torch.logspace(0, -4, 128),
        "low rank": torch.randn(512, 3) @ torch.randn(3, 128),
    }
    for name, matrix in matrices.items():
        x = matrix.double().t() / matrix.double().norm()
        for _ in range(5):
            gram = x @ x.t()
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        # in 32 bits; rounds of the smallest singular values grow what was rounded by up to 3.4 to the fifth
        torch.testing.assert_close(orthogonal(matrix * scale).double(), x.t(), rtol=0, atol=1e-4, msg=name)
    assert not orthogonal(torch.zeros(8, 4)).any()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("hidden", [24, 10])
def test_a_step_moves_each_gate_by_an_orthogonal_matrix_and_the_rest_as_adam(hidden, cell):
    config = replace(BYTES, cell=cell, hidden=hidden, softmax=SoftmaxConfig(kind="full", size=20))
    models = []
    for optimizer in ("muon", "adam"):
        torch.manual_seed(0)
        model = LanguageModel(config)
        models.append((model, {name: weight.clone() for name, weight in model.weights().items()}))
        for weight in model.parameters():
            weight.grad = torch.randn_like(weight)
        model.bilm.forward_layers[0].weight.grad = None  # as if it were frozen
        make_optimizer(model, TrainSettings(optimizer=optimizer, learning_rate=0.1)).step()
    (muon, before), (adam, _) = models
    by_adam = adam.weights()
    for name, weight in muon.weights().items():
        moved = before[name] - weight
        if name == "forward_layers.0.weight":
            assert not moved.any()
        elif "layers" in name and weight.ndim == 2:
            blocks = (
                [moved.t()] if "projection" in name else moved.view(-1, hidden, 2, 10).transpose(1, 2).flatten(0, 1)
            )
            for block in blocks:
                singular = torch.linalg.svdvals(block) / (0.1 * 0.2 * hidden**0.5)
                assert 0.3 < singular.min() <= singular.max() < 1.3, name  # as the published rounds leave them
        else:
            torch.testing.assert_close(weight, by_adam[name])
