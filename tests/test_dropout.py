"""Dropout: how much falls, what stays, where its choices come from."""

import pytest
import torch

from elmokit.model.dropout import Dropout, dropout


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_share_falls_and_the_rest_makes_up_for_it(share, dtype):
    torch.manual_seed(0)
    x = torch.full((500, 401), 3.0, dtype=dtype)
    dropped = dropout(x, share)
    assert dropped.dtype == dtype
    assert dropped.shape == x.shape
    kept = dropped != 0
    assert 1 - kept.double().mean().item() == pytest.approx(share, abs=0.005)
    assert kept.double().std(dim=0).min() > 0  # no column always stays or falls
    rest = dropped[kept].double()
    assert torch.allclose(rest, torch.full_like(rest, 3 / (1 - share)), rtol=torch.finfo(dtype).eps)


def test_gradients_fall_with_the_values():
    x = torch.randn(7, 5, 3, requires_grad=True)
    dropped = dropout(x, 0.4)
    dropped.sum().backward()
    expected = (dropped != 0) / 0.6
    assert torch.allclose(x.grad, expected)


def test_choices_come_from_the_generator():
    x = torch.ones(33)
    first, same, other = (dropout(x, 0.5, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    torch.manual_seed(5)
    first = dropout(x, 0.5)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.5), first)


@pytest.mark.parametrize("share", [0.99999, 0.999999])
def test_nearly_all_may_fall(share):
    torch.manual_seed(0)
    kept = dropout(torch.ones(1_000_000), share) != 0
    assert 0 < kept.sum() < 100


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (5, 1)])
def test_any_shape(shape):
    assert dropout(torch.ones(shape), 0.5).shape == shape


def test_nothing_falls_out_of_training():
    x = torch.randn(20)
    module = Dropout(0.5)
    assert not torch.equal(module(x), x)
    assert torch.equal(module.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert str(module) == "Dropout(0.5)"
