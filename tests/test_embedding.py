"""ELMo as a layer in a model of one's own."""

import numpy as np
import pytest
import torch
from conftest import SENTENCES, random_elmo

from elmokit import ElmoEmbedding
from elmokit.errors import ConfigError
from elmokit.static.embedders import StaticVectors


def test_padded_vectors_and_mask():
    elmo = random_elmo()
    layer = ElmoEmbedding(elmo, mixes=2).eval()
    first, second, mask = layer([*SENTENCES, []])
    assert first.shape == second.shape == (len(SENTENCES) + 1, 10, elmo.width)
    assert mask.dtype == torch.bool
    assert mask.sum(dim=1).tolist() == [*map(len, SENTENCES), 0]
    assert not first[~mask].any()
    for row, vectors in enumerate(elmo.embed(SENTENCES)):
        np.testing.assert_allclose(first[row, : len(vectors)].detach(), vectors, atol=1e-5)


def test_mixes_learn_apart():
    layer = ElmoEmbedding(random_elmo(), mixes=2)
    first, _, _ = layer(SENTENCES)
    first.sum().backward()
    assert layer.mixes[0].weights.grad is not None
    assert layer.mixes[1].weights.grad is None


@pytest.mark.parametrize(
    ("trainable", "learning"),
    [("mix", set()), ("top", {"forward_layers.1", "backward_layers.1"}), ("all", None)],
)
def test_trainable_decides_what_receives_gradients(trainable, learning):
    layer = ElmoEmbedding(random_elmo(), trainable=trainable, dropout=0.0)
    vectors, _ = layer(SENTENCES[:3])
    vectors.square().sum().backward()
    names = {name for name, weight in layer.bilm.named_parameters() if weight.grad is not None and weight.grad.any()}
    if learning is None:
        assert names == {name for name, _ in layer.bilm.named_parameters()}
    else:
        assert {name.rsplit(".", 1)[0] for name in names} == learning
    assert layer.mixes[0].gamma.grad is not None


def test_embed_follows_what_was_learned():
    elmo = random_elmo()
    before = elmo.embed(SENTENCES)[0]
    layer = ElmoEmbedding(elmo, trainable="all", dropout=0.0)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(SENTENCES)[0].square().mean().backward()
    optimizer.step()
    after = elmo.embed(SENTENCES)[0]
    assert np.abs(after - before).max() > 1e-5
    layers = torch.from_numpy(elmo.embed(SENTENCES, layers="all")[0])
    vectors, _ = layer.eval()(SENTENCES)
    torch.testing.assert_close(vectors[0, : len(after)], layer.mixes[0](layers), atol=1e-5, rtol=0)


def test_learns_a_task():
    """Which sense of 'bank': a linear layer on top must fit two sentences that differ in context alone."""
    torch.manual_seed(0)
    layer = ElmoEmbedding(random_elmo(), dropout=0.0)
    head = torch.nn.Linear(20, 2)
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.05)
    for _ in range(120):
        vectors, _ = layer([SENTENCES[0], SENTENCES[3]])
        loss = torch.nn.functional.cross_entropy(head(vectors[[0, 1], [1, 6]]), torch.tensor([0, 1]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1


@pytest.mark.parametrize("trainable", ["mix", "all"])
@pytest.mark.parametrize("fixed", [None, [0.5, 1.5]])
def test_static_vectors_plus_layers(trainable, fixed):
    """E(x) + Σ s·h, with E(x) from elsewhere, projected to ELMo's width."""
    elmo, words = random_elmo(), sorted({word for sentence in SENTENCES for word in sentence})
    static = StaticVectors(words, np.random.default_rng(0).normal(size=(len(words), 6)).astype(np.float32))
    options = {"kind": "static", "static": static, "fixed": fixed, "trainable": trainable}
    layer = ElmoEmbedding(elmo, mixes=2, **options).eval()
    *found, mask = layer([*SENTENCES, [], ["unheard-of"]])
    assert not found[0][~mask].any()
    shares = fixed or [0.5, 0.5]
    for vectors, mix in zip(found, layer.mixes, strict=True):
        for row, (layers, given) in enumerate(
            zip(elmo.embed(SENTENCES, layers="all"), static.embed(SENTENCES), strict=True)
        ):
            expected = given @ mix.projection.weight.detach().numpy().T + shares[0] * layers[1] + shares[1] * layers[2]
            np.testing.assert_allclose(vectors[row, : len(given)].detach(), expected, atol=1e-5)
    found[0].sum().backward()
    assert layer.mixes[0].projection.weight.grad.any()
    assert layer.mixes[1].projection.weight.grad is None


def test_static_vectors_are_for_the_mix_of_that_kind():
    static = StaticVectors(["a"], np.ones((1, 6), dtype=np.float32))
    with pytest.raises(ConfigError, match="kind 'static'"):
        ElmoEmbedding(random_elmo(), static=static)


def test_state_dict_holds_model_and_mixes():
    layer = ElmoEmbedding(random_elmo(seed=1))
    other = ElmoEmbedding(random_elmo(seed=2))
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other.eval()(SENTENCES)[0], layer.eval()(SENTENCES)[0])


@pytest.mark.parametrize("settings", [{"trainable": "some"}, {"mixes": 0}, {"kind": "best"}])
def test_bad_settings(settings):
    with pytest.raises(ConfigError):
        ElmoEmbedding(random_elmo(), **settings)


def test_a_stateful_model_is_no_layer():
    with pytest.raises(ConfigError, match="stateful"):
        ElmoEmbedding(random_elmo(stateful=True))
