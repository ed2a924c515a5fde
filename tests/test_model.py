"""The arithmetic, piece by piece."""

from dataclasses import replace

import pytest
import torch
from conftest import BYTES, CHARACTERS, CONFIGS, VOCABULARY, random_elmo

import elmokit.model.tokens
from elmokit.config import ModelConfig, WordConfig, config_from_dict, config_to_dict
from elmokit.errors import ConfigError
from elmokit.model.bilm import BiLM, pack, run_stack
from elmokit.model.mix import ScalarMix
from elmokit.model.tokens import CharacterCnn
from elmokit.text.characters import character_encoder
from elmokit.text.vocabulary import Vocabulary
from elmokit.text.words import WordEncoder


def token_vectors(elmo, words):
    """Through the modules themselves, gradients and all."""
    ids = elmo.encoder.encode(words)
    return elmo.bilm.tokens(*(None if part is None else torch.from_numpy(part) for part in ids))


LAYERS = torch.randn(3, 2, 4, 5, generator=torch.Generator().manual_seed(0))  # (L, B, T, D)


def test_packing_lays_out_step_by_step():
    packing = pack([3, 2, 1])  # flat: a0 a1 a2 b0 b1 c0
    assert packing.forward.tolist() == [0, 3, 5, 1, 4, 2]
    assert packing.backward.tolist() == [2, 4, 5, 1, 3, 0]
    assert packing.batch_sizes == [3, 2, 1]
    assert packing.last_rows.tolist() == [5, 4, 2]


def test_packing_of_nothing():
    assert pack([]).batch_sizes == []


def test_packing_refuses_unsorted_lengths():
    with pytest.raises(ValueError, match="sorted"):
        pack([1, 2])


WORDS = ["a", "bank", "天气", "internationalisation", "x" * 60, "<S>", ""]


@pytest.mark.parametrize("positions", [1, 40, 2048], ids="{} positions at a time".format)
@pytest.mark.parametrize("name", ["bytes", "unicode", "few_characters"])
def test_the_fast_character_cnn_is_the_plain_one(name, positions, monkeypatch):
    """Values and gradients, however words are grouped and whatever padding is cropped."""
    monkeypatch.setattr(elmokit.model.tokens, "POSITIONS", positions)
    config = CONFIGS[name].characters
    torch.manual_seed(0)
    cnn = CharacterCnn(config).double()
    char_ids = torch.from_numpy(character_encoder(config).encode(WORDS))
    results = []
    for run in (cnn, cnn.fast):
        features = run(char_ids)
        loss = (features * torch.linspace(-1, 2, features.numel()).view_as(features)).sum()
        results.append([features, *torch.autograd.grad(loss, list(cnn.parameters()))])
    torch.testing.assert_close(results[1], results[0], rtol=1e-10, atol=1e-10)


def test_cropping_keeps_a_window_of_padding():
    cnn = CharacterCnn(CHARACTERS)
    ids = torch.from_numpy(character_encoder(CHARACTERS).encode(["bank", "a"]))
    assert cnn.crop(ids).shape == (2, len("bank") + 2 + 5)
    assert cnn.crop(ids[:0]).shape == (0, 5)


@pytest.mark.parametrize("residual", [True, False])
def test_a_stack_adds_a_layers_input_from_the_second_layer_on(residual):
    outputs = list(run_stack("abc", torch.tensor(1.0), lambda level, _, x: 10 * x, residual=residual))
    assert [value.item() for value in outputs] == ([10, 110, 1210] if residual else [10, 100, 1000])


def test_what_falls_from_a_layers_input_falls_from_what_is_added():
    outputs = run_stack("ab", torch.tensor(1.0), lambda level, _, x: 10 * x, residual=True, drop=lambda x: 2 * x)
    assert [value.item() for value in outputs] == [20, 440]


def test_padding_windows_count_in_the_maximum():
    """A filter that likes padding more than any letter must see padding, even in a long word."""
    cnn = CharacterCnn(CHARACTERS).eval()
    with torch.no_grad():
        cnn.embedding.weight.zero_()
        cnn.embedding.weight[cnn.pad] = 1
        cnn.convolutions[2].weight.fill_(1)
        cnn.convolutions[2].bias.zero_()
        cnn.highways = torch.nn.Sequential()
        ids = torch.from_numpy(character_encoder(CHARACTERS).encode(["a" * 30]))
        assert cnn(ids)[0, -1] == cnn.fast(ids)[0, -1] == 5 * CHARACTERS.dim


def test_batch_mates_and_order_change_nothing(config):
    elmo = random_elmo(config)
    long, short = token_vectors(elmo, ["One", "bank", "river", "bank"]), token_vectors(elmo, ["One", "bank"])
    together, _ = elmo.bilm(torch.cat([long, short]), [4, 2])
    torch.testing.assert_close(together[:, :4], elmo.bilm(long, [4])[0], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(together[:, 4:], elmo.bilm(short, [2])[0], atol=1e-6, rtol=1e-5)


def test_state_goes_on_where_it_ended(config):
    """The forward layers over one sequence equal two runs over its halves with the state handed on."""
    elmo = random_elmo(config)
    x = token_vectors(elmo, "The bank of the river was steep".split())
    whole, end = elmo.bilm(x, [7])
    _, middle = elmo.bilm(x[:3], [3])
    second, last = elmo.bilm(x[3:], [4], middle)
    width = config.projection
    torch.testing.assert_close(second[..., :width], whole[:, 3:, :width], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(last.h[0], end.h[0], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(last.c[0], end.c[0], atol=1e-6, rtol=1e-5)


def test_every_parameter_gets_a_gradient(config):
    elmo = random_elmo(config)
    elmo.bilm.requires_grad_(True)
    x = token_vectors(elmo, [*"The bank of the river".split(), "One"])
    layers, _ = elmo.bilm(x, [5, 1])
    layers.square().sum().backward()
    assert [name for name, weight in elmo.bilm.named_parameters() if weight.grad is None] == []


def test_clips_bound_the_outputs():
    elmo = random_elmo(ModelConfig(words=WordConfig(size=2), hidden=8, projection=4, residual=False, cell_clip=0.3))
    with torch.no_grad():
        for weight in elmo.bilm.parameters():
            weight.mul_(20)
    _, state = elmo.bilm(torch.randn(6, 4), [6])
    assert state.c.abs().max() == pytest.approx(0.3)
    assert state.h.abs().max() <= 3


class TestScalarMix:
    def test_starts_as_the_average(self):
        torch.testing.assert_close(ScalarMix(3)(LAYERS), LAYERS.mean(dim=0))

    def test_is_gamma_times_the_weighted_sum(self):
        mix = ScalarMix(3)
        with torch.no_grad():
            mix.weights.copy_(torch.tensor([1.0, 2.0, 3.0]))
            mix.gamma.fill_(0.5)
        s = torch.tensor([1.0, 2.0, 3.0]).exp()
        s /= s.sum()
        torch.testing.assert_close(mix(LAYERS), 0.5 * (s[0] * LAYERS[0] + s[1] * LAYERS[1] + s[2] * LAYERS[2]))

    def test_last_layer_only_keeps_gamma(self):
        mix = ScalarMix(3, kind="last")
        torch.testing.assert_close(mix(LAYERS), LAYERS[2])
        assert [name for name, _ in mix.named_parameters()] == ["gamma"]
        assert mix.layer_weights().tolist() == [0, 0, 1]

    def test_fixed_weights_are_not_learned(self):
        mix = ScalarMix(3, fixed=[0.0, 1.0, 2.0])
        torch.testing.assert_close(mix(LAYERS), LAYERS[1] + 2 * LAYERS[2])
        assert [name for name, _ in mix.named_parameters()] == ["gamma"]

    def test_static_vector_plus_weighted_layers(self):
        mix = ScalarMix(3, kind="static")
        torch.testing.assert_close(mix(LAYERS), LAYERS[0] + (LAYERS[1] + LAYERS[2]) / 2)
        assert mix.layer_weights().tolist() == [1, 0.5, 0.5]

    def test_static_vectors_with_fixed_weights(self):
        mix = ScalarMix(3, kind="static", fixed=[0.25, 2.0])
        torch.testing.assert_close(mix(LAYERS), LAYERS[0] + 0.25 * LAYERS[1] + 2 * LAYERS[2])
        assert [name for name, _ in mix.named_parameters()] == ["gamma"]

    def test_static_vectors_of_other_make(self):
        """Of the layers' width they are added as they are; of another, by a projection that learns."""
        width = LAYERS.shape[-1]
        given = torch.randn(*LAYERS.shape[1:-1], width)
        mix = ScalarMix(3, kind="static", widths=(width, width))
        torch.testing.assert_close(mix(LAYERS, given), given + (LAYERS[1] + LAYERS[2]) / 2)
        narrow = torch.randn(*LAYERS.shape[1:-1], 3)
        mix = ScalarMix(3, kind="static", widths=(3, width))
        expected = narrow @ mix.projection.weight.T + (LAYERS[1] + LAYERS[2]) / 2
        torch.testing.assert_close(mix(LAYERS, narrow), expected)
        mix(LAYERS, narrow).square().sum().backward()
        assert mix.projection.weight.grad.any()

    def test_static_vectors_are_given_where_the_mix_was_made_for_them(self):
        with pytest.raises(ConfigError, match="made with widths: static vectors were not given"):
            ScalarMix(3, kind="static", widths=(3, 4))(LAYERS)
        with pytest.raises(ConfigError, match="made without widths: static vectors were given"):
            ScalarMix(3, kind="static")(LAYERS, LAYERS[0])
        with pytest.raises(ConfigError, match="kind 'static'"):
            ScalarMix(3, widths=(3, 4))

    @pytest.mark.parametrize("kind", ["learned", "last", "static"])
    def test_layer_norm_treats_each_token_on_its_own(self, kind):
        mix = ScalarMix(3, kind=kind, layer_norm=True)
        torch.testing.assert_close(mix(LAYERS)[:1, :2], mix(LAYERS[:, :1, :2]))
        torch.testing.assert_close(mix(LAYERS * 7), mix(LAYERS))

    def test_weights_and_gamma_learn(self):
        mix = ScalarMix(3)
        mix(LAYERS).square().sum().backward()
        assert mix.weights.grad.abs().sum() > 0
        assert mix.gamma.grad != 0

    @pytest.mark.parametrize(
        "settings",
        [
            {"kind": "best"},
            {"fixed": [1.0]},
            {"fixed": [1.0, 1.0, 1.0], "kind": "last"},
            {"fixed": [1.0, 1.0, 1.0], "kind": "static"},
        ],
    )
    def test_bad_settings(self, settings):
        with pytest.raises(ConfigError):
            ScalarMix(3, **settings)

    def test_wrong_number_of_layers(self):
        with pytest.raises(ConfigError, match="3 layers, not 2"):
            ScalarMix(3)(LAYERS[:2])


def test_config_survives_json(config):
    assert config_from_dict(config_to_dict(config)) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "neither"),
        ({"characters": {"dim": "wide"}}, r"characters\.dim"),
        ({"characters": {"dim": 0}}, "dim is 0"),
        ({"characters": {"filters": []}}, "filters is empty"),
        ({"characters": {"filters": [[60, 4]]}}, "width goes from 1"),
        ({"characters": {"characters": "ab"}}, "alphabet"),
        ({"characters": {"alphabet": "unicode", "characters": "aa"}}, "twice"),
        ({"characters": {}, "hidden": 4}, "wider than hidden"),
        ({"characters": {}, "cell_clip": 0}, "cell_clip"),
        ({"characters": {}, "tokenizer": "none"}, "tokenizer"),
        ({"words": {"size": -1}}, "size is -1"),
        ([], "object"),
    ],
)
def test_bad_config(values, message):
    with pytest.raises(ConfigError, match=message):
        config_from_dict(values)


def test_new_model_starts_with_zero_biases():
    assert not BiLM(BYTES).forward_layers[0].bias.any()


def test_words_beyond_the_frequent_ones_share_a_vector():
    """Their characters still tell them apart; a model of words alone does not."""
    both = CONFIGS["frequent_words_and_characters"]
    for config in (both, replace(both, characters=None)):
        elmo = random_elmo(config)
        assert elmo.bilm.tokens.words.num_embeddings == 12
        assert elmo.encoder.encode(VOCABULARY.words).word_ids.tolist() == [*range(12), *[2] * (len(VOCABULARY) - 12)]
        frequent, rare, rarer, unknown = elmo.embed([[word] for word in (*VOCABULARY.words[11:14], "zebra")], layers=0)
        assert not torch.equal(*map(torch.from_numpy, (frequent, rare)))
        assert ((rare == rarer).all() and (rare == unknown).all()) == (config.characters is None)


def test_unknown_words_need_a_vector_to_share():
    config = replace(CONFIGS["words"], words=WordConfig(size=5, frequent=4))
    with pytest.raises(ConfigError, match=r"<UNK> is word 5 of the vocabulary, and words.frequent is 4"):
        WordEncoder(config, Vocabulary(("<S>", "</S>", "the", "cat", "<UNK>")))
    with pytest.raises(ConfigError, match=r"words.frequent is 2: it must be at least 3"):
        WordConfig(frequent=2)
