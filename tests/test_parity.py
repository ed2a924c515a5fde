"""The same numbers as the code ELMo was published with."""

import json

import h5py
import numpy as np
import pytest
import torch
from conftest import CASES, GOLDEN, GOLDEN_SENTENCES, random_checkpoint

import elmokit
from elmokit.checkpoints import read_checkpoint
from elmokit.checkpoints.tables import weight_shapes
from elmokit.config import CharacterConfig, ModelConfig, WordConfig
from elmokit.model.bilm import pack
from elmokit.model.recurrent import RecurrentLayer

# float32 sums in another order; the bar of AllenNLP's own test
CLOSE = {"atol": 1e-6, "rtol": 1e-5}
# the golden values are float32 too: they differ from make_golden.py's float64 loop by up to 2.9e-6, where clips bite
GOLDEN_CLOSE = {"atol": 5e-6, "rtol": 1e-5}


@pytest.mark.parametrize("case", CASES)
def test_golden_stateless(case):
    elmo = elmokit.load(GOLDEN / case)
    with np.load(GOLDEN / case / "activations.npz") as expected:
        for number, layers in enumerate(elmo.embed(GOLDEN_SENTENCES, layers="all")):
            np.testing.assert_allclose(layers, expected[f"stateless/{number}"], **GOLDEN_CLOSE)


@pytest.mark.parametrize("case", CASES)
def test_golden_stateful(case):
    elmo = elmokit.load(GOLDEN / case, stateful=True)
    batches = [GOLDEN_SENTENCES[start : start + 3] for start in range(0, len(GOLDEN_SENTENCES), 3)]
    vectors = [layers for batch in batches for layers in elmo.embed(batch, layers="all")]
    with np.load(GOLDEN / case / "activations.npz") as expected:
        for number, layers in enumerate(vectors):
            np.testing.assert_allclose(layers, expected[f"stateful/{number}"], **GOLDEN_CLOSE)


def test_stateful_does_not_depend_on_how_a_call_is_batched():
    whole = elmokit.load(GOLDEN / "base", stateful=True)
    small = elmokit.load(GOLDEN / "base", stateful=True, batch_tokens=8)
    for _ in range(2):
        for one, other in zip(whole.embed(GOLDEN_SENTENCES), small.embed(GOLDEN_SENTENCES), strict=True):
            np.testing.assert_allclose(one, other, **CLOSE)


def test_reset_state_forgets():
    elmo = elmokit.load(GOLDEN / "base", stateful=True)
    first = elmo.embed(GOLDEN_SENTENCES[:2])
    assert not np.allclose(elmo.embed(GOLDEN_SENTENCES[:2])[0], first[0], atol=1e-3)
    elmo.reset_state()
    np.testing.assert_array_equal(elmo.embed(GOLDEN_SENTENCES[:2])[0], first[0])


def test_stateful_stream_runs_one_sentence_after_another():
    stream, calls = (elmokit.load(GOLDEN / "base", stateful=True) for _ in range(2))
    for one, sentence in zip(stream.embed_stream(GOLDEN_SENTENCES), GOLDEN_SENTENCES, strict=True):
        np.testing.assert_array_equal(one, calls.embed([sentence])[0])


class TestOriginalActivations:
    """What the TensorFlow code gave for AllenNLP's own test model."""

    @pytest.fixture
    def folder(self, shared_data):
        return shared_data / "fixtures" / "allenai"

    def test_top_layer_with_running_state(self, folder):
        elmo = elmokit.load(folder, stateful=True)
        rows = json.loads((folder / "sentences.json").read_text())
        for number, batch in enumerate(zip(*rows, strict=True)):
            vectors = elmo.embed([sentence.split() for sentence in batch], layers="top")
            for row, found in enumerate(vectors):
                with h5py.File(folder / f"lm_embeddings_{row}.hdf5") as file:
                    expected = np.concatenate(list(file[str(number)][()]), axis=-1)
                assert np.allclose(found, expected, **CLOSE)

    def test_token_vectors(self, folder):
        elmo = elmokit.load(folder)
        words = (folder / "vocab_test.txt").read_text().split("\n")
        with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
            expected = file["embedding"][()]
        found = np.concatenate([vectors[0] for vectors in elmo.embed([[word] for word in words], layers="all")])
        assert np.allclose(found[:, :16], expected, **CLOSE)
        np.testing.assert_array_equal(found[:, :16], found[:, 16:])


def test_original_size_has_the_published_number_of_parameters():
    shapes = weight_shapes(ModelConfig(characters=CharacterConfig()))
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 93_600_848


@pytest.mark.parametrize("projection", [12, 7], ids=["plain", "projected"])
def test_lstm_equals_torch_where_torch_can(projection):
    config = ModelConfig(
        words=WordConfig(size=1), hidden=12, projection=projection, cell_clip=None, projection_clip=None
    )
    ours = RecurrentLayer(5, config)
    theirs = torch.nn.LSTM(5, 12, proj_size=projection if projection < 12 else 0)
    with torch.no_grad():
        i, f, o, g = (block.clone() for block in torch.cat([ours.weight, ours.bias[:, None]], dim=1).chunk(4))
        blocks = torch.cat([i, f, g, o])  # torch's order
        theirs.weight_ih_l0.copy_(blocks[:, :5])
        theirs.weight_hh_l0.copy_(blocks[:, 5:-1])
        theirs.bias_ih_l0.copy_(blocks[:, -1])
        theirs.bias_hh_l0.zero_()
        if ours.projection is not None:
            theirs.weight_hr_l0.copy_(ours.projection)
    _assert_same_run(ours, theirs, lambda state: state)


def test_gru_equals_torch():
    config = ModelConfig(words=WordConfig(size=1), cell="gru", hidden=12, projection=12, cell_clip=None)
    ours, theirs = RecurrentLayer(5, config), torch.nn.GRU(5, 12)
    with torch.no_grad():
        ours.candidate_bias.normal_()
        theirs.weight_ih_l0.copy_(ours.weight[:, :5])
        theirs.weight_hh_l0.copy_(ours.weight[:, 5:])
        theirs.bias_ih_l0.copy_(ours.bias)
        theirs.bias_hh_l0.zero_()
        theirs.bias_hh_l0[24:] = ours.candidate_bias
    _assert_same_run(ours, theirs, lambda state: (state, state))


def _assert_same_run(ours, theirs, as_pair):
    lengths = [9, 4, 4, 1]
    x = torch.randn(sum(lengths), 5, generator=torch.Generator().manual_seed(1))
    packing = pack(lengths)
    packed = torch.nn.utils.rnn.pack_sequence(x.split(lengths))
    assert torch.equal(packed.data, x[packing.forward])
    h, c = torch.zeros(4, ours.output_size), torch.zeros(4, 12)
    found, last_h, last_c = ours(packed.data, packing.batch_sizes, h, c)
    expected, state = theirs(packed)
    expected_h, expected_c = as_pair(state)
    torch.testing.assert_close(found, expected.data, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(last_h, expected_h[0], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(last_c, expected_c[0], atol=1e-6, rtol=1e-5)


def test_forget_bias_is_added_at_run_time():
    plain = random_checkpoint(read_checkpoint(GOLDEN / "base").config)
    assert plain.config.forget_bias == 1.0
    layer = RecurrentLayer(8, plain.config)
    hidden = plain.config.hidden
    difference = (layer.gate_bias() - layer.bias).detach().split(hidden)
    assert [float(part.unique()) for part in difference] == [0.0, 1.0, 0.0, 0.0]
