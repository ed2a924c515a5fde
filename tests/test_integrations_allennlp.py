"""AllenNLP's names, shapes and numbers: the expected ones are AllenNLP's own.

    .benchmarks/allennlp/bin/python benchmarks/peers/allennlp_activations.py tests/data/allennlp \
        tests/data/golden/{base,tanh,three_layers}/weights.hdf5 ../shared/data/fixtures/allenai/lm_weights.hdf5
"""

import copy
import inspect
import io
import json
import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from conftest import CONFIGS, GOLDEN, GOLDEN_SENTENCES, HERE, WORDS, random_checkpoint

import elmokit
from elmokit.checkpoints import read_checkpoint, write_checkpoint
from elmokit.checkpoints.allennlp import table_of
from elmokit.checkpoints.tables import to_theirs
from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.integrations.allennlp import (
    Elmo,
    ElmoEmbedder,
    ElmoTokenEmbedder,
    ScalarMix,
    _ElmoBiLm,
    _ElmoCharacterEncoder,
    batch_to_ids,
    remove_sentence_boundaries,
)

EXPECTED = HERE / "data" / "allennlp"
CASES = sorted(path.stem for path in EXPECTED.glob("*.npz"))
CLOSE = {"atol": 1e-5, "rtol": 1e-5}  # float32 sums in another order
CALLS = (3, 5, 2, 3)


class Case:
    """A model and what AllenNLP made of it."""

    def __init__(self, files, expected):
        self.files, self.expected = files, expected
        self.ids = torch.from_numpy(expected["ids"].astype(np.int64))

    def make(self, count=1, **settings):
        return Elmo(*self.files, count, **{"dropout": 0.0} | settings)

    def check(self, name, output):
        """Values, shapes and the mask, which is of whole numbers as in 0.9."""
        for number, vectors in enumerate(output["elmo_representations"]):
            expected = self.expected[f"{name}/{number}"]
            assert vectors.shape == expected.shape
            np.testing.assert_allclose(vectors.detach(), expected, **CLOSE)
        assert output["mask"].dtype == torch.int64
        np.testing.assert_array_equal(output["mask"], self.expected[f"{name}/mask"])


@pytest.fixture(params=CASES)
def case(request):
    if request.param == "allenai":
        folder = request.getfixturevalue("shared_data") / "fixtures" / "allenai"
        files = (folder / "options.json", folder / "lm_weights.hdf5")
    else:
        files = (GOLDEN / request.param / "options.json", GOLDEN / request.param / "weights.hdf5")
    with np.load(EXPECTED / f"{request.param}.npz") as expected:
        return Case(files, dict(expected))


@pytest.fixture
def whole(case):
    """A case whose weights and gradients are known too; they would be too much of the larger model."""
    if not any(name.startswith("state/") for name in case.expected):
        pytest.skip("its weights are not among the expected values")
    return case


@pytest.fixture
def base():
    return GOLDEN / "base" / "options.json", GOLDEN / "base" / "weights.hdf5"


def trained(elmo):
    """The second mix as in the script that made the expected values."""
    with torch.no_grad():
        for number, weight in enumerate(elmo.scalar_mix_1.scalar_parameters):
            weight.fill_(0.4 - 0.3 * number)
        elmo.scalar_mix_1.gamma.fill_(1.5)
    return elmo


def test_there_is_something_to_compare_with():
    assert {"base", "three_layers"} <= set(CASES)


class TestAgainstAllenNLP:
    def test_ids(self, case):
        torch.testing.assert_close(batch_to_ids(GOLDEN_SENTENCES), case.ids)

    def test_two_mixes(self, case):
        case.check("mixed", trained(case.make(2))(case.ids))

    @pytest.mark.parametrize(
        ("name", "settings"),
        [
            ("bounds", {"keep_sentence_boundaries": True}),
            ("normed", {"do_layer_norm": True}),
            ("normed_bounds", {"do_layer_norm": True, "keep_sentence_boundaries": True}),
        ],
    )
    def test_settings(self, case, name, settings):
        case.check(name, case.make(**settings)(case.ids))

    def test_fixed_mix(self, case):
        layers = case.make()._elmo_lstm.num_layers
        elmo = case.make(scalar_mix_parameters=[-9e10, 1.0] + [-9e10] * (layers - 2))
        case.check("fixed", elmo(case.ids))
        assert not any(weight.requires_grad for weight in elmo.parameters())

    def test_rows_of_zeros_at_the_end(self, case):
        case.check("padded", case.make()(torch.nn.functional.pad(case.ids, (0, 0, 0, 3))))

    def test_more_dimensions(self, case):
        case.check("four", case.make()(case.ids[:12].view(3, 4, *case.ids.shape[1:])))

    def test_cached_vocabulary(self, case):
        words = ["@@PADDING@@", *sorted({word for sentence in GOLDEN_SENTENCES for word in sentence})]
        numbers = torch.from_numpy(case.expected["cached/numbers"])
        elmo = case.make(vocab_to_cache=words)
        nothing = torch.zeros_like(case.ids)
        case.check("cached", elmo(nothing, numbers))
        np.testing.assert_allclose(
            elmo.state_dict()["_elmo_lstm._word_embedding.weight"], case.expected["cached/weight"], **CLOSE
        )
        case.check("cached", elmo(case.ids, numbers + (numbers > 0) * 1000))  # unknown: read from the characters

    def test_state_from_call_to_call(self, case):
        elmo, done = case.make(stateful=True), 0
        for call, size in enumerate(CALLS):
            case.check(f"stateful/{call}", elmo(batch_to_ids(GOLDEN_SENTENCES[done : done + size])))
            done += size
        elmo._elmo_lstm._elmo_lstm.reset_states()
        case.check("stateful/0", elmo(batch_to_ids(GOLDEN_SENTENCES[:3])))

    def test_the_bilm_by_itself_carries_its_state(self, case):
        elmo, done = Elmo(None, None, 1, dropout=0.0, module=_ElmoBiLm(*case.files)), 0
        for call, size in enumerate(CALLS):
            case.check(f"stateful/{call}", elmo(batch_to_ids(GOLDEN_SENTENCES[done : done + size])))
            done += size

    @pytest.mark.parametrize("requires_grad", [False, True])
    def test_ids_that_spell_no_word(self, case, requires_grad):
        """0 and padding among a token's characters count as characters; only a token of zeros alone is none."""
        ids = torch.from_numpy(case.expected["odd/ids"].astype(np.int64))
        assert (ids == 0)[case.ids.any(dim=-1)].any()
        elmo = case.make(requires_grad=requires_grad)
        case.check("odd", elmo(ids))
        case.check("odd", elmo(ids))  # what is remembered of words is not confused by them
        case.check("mixed", trained(case.make(2, requires_grad=requires_grad))(case.ids))

    def test_character_encoder(self, case):
        encoder = _ElmoCharacterEncoder(*case.files)
        for name, ids in (("usual", case.ids), ("odd", torch.from_numpy(case.expected["odd/ids"].astype(np.int64)))):
            output = encoder(ids)
            vectors, mask = output["token_embedding"], output["mask"]
            assert vectors.shape[-1] == encoder.get_output_dim()
            assert not vectors[mask == 0].any()
            inner, inner_mask = remove_sentence_boundaries(vectors, mask)
            np.testing.assert_allclose(inner, case.expected[f"encoder/{name}"], **CLOSE)
            assert inner_mask.sum(dim=1).tolist() == list(map(len, GOLDEN_SENTENCES))
            for row, tokens in enumerate(GOLDEN_SENTENCES):
                np.testing.assert_allclose(vectors[row, [0, len(tokens) + 1]], case.expected["encoder/bounds"], **CLOSE)

    def test_token_embedder(self, case):
        embedder = ElmoTokenEmbedder(*case.files, do_layer_norm=True, dropout=0.0, projection_dim=5)
        assert embedder.get_output_dim() == 5
        names = sorted(name for name in embedder.state_dict() if "lstm" not in name)
        assert names == case.expected["projected/state"].tolist()
        with torch.no_grad():
            for weight in embedder._projection.parameters():
                weight.copy_(torch.arange(weight.numel(), dtype=torch.float64).sin().view_as(weight))
        np.testing.assert_allclose(embedder(case.ids).detach(), case.expected["projected"], rtol=1e-5, atol=2e-5)

    def test_state_from_call_to_call_while_learning(self, case):
        elmo, done = case.make(stateful=True, requires_grad=True), 0
        for call, size in enumerate(CALLS):
            output = elmo(batch_to_ids(GOLDEN_SENTENCES[done : done + size]))
            case.check(f"stateful/{call}", output)
            output["elmo_representations"][0].sum().backward()
            done += size

    def test_gradients(self, whole):
        elmo = trained(whole.make(2, requires_grad=True))
        weighed(elmo, whole.ids).backward()
        found = mix_gradients(elmo)
        bilm = elmo._elmo_lstm.elmo.bilm
        ours = {name: weight.grad for name, weight in bilm.named_parameters()}
        found |= {f"_elmo_lstm.{name}": values for name, values in to_theirs(table_of(bilm.config), ours)}
        compare_gradients(whole, "gradients", found)

    def test_gradients_of_mixes_with_layer_norm(self, case):
        elmo = trained(case.make(2, do_layer_norm=True))
        weighed(elmo, case.ids).backward()
        assert all(weight.grad is None for weight in elmo._elmo_lstm.parameters())
        compare_gradients(case, "gradients_normed", mix_gradients(elmo))

    def test_weights_by_their_names(self, whole):
        expected = {name.removeprefix("state/"): whole.expected[name] for name in whole.expected if "state/" in name}
        state = trained(whole.make(2)).state_dict()
        assert list(state.keys() ^ expected.keys()) == []
        for name, weight in state.items():
            np.testing.assert_allclose(weight, expected[name], rtol=0, atol=1e-7, err_msg=name)

    def test_weights_of_a_trained_model(self, whole):
        """A model of other weights becomes the one that AllenNLP saved, as a part of a task model's state dict."""
        state = {
            f"elmo.{name[6:]}": torch.from_numpy(whole.expected[name]) for name in whole.expected if "state/" in name
        }
        task = torch.nn.ModuleDict({"elmo": whole.make(2)})
        with torch.no_grad():
            for weight in task.parameters():
                weight.mul_(1.5).add_(0.1)
        task["elmo"](whole.ids)
        task.load_state_dict(state)
        whole.check("mixed", task["elmo"](whole.ids))

    def test_embedder(self, case):
        embedder = ElmoEmbedder(*case.files)
        for vectors, expected in zip(embedder.embed_batch(GOLDEN_SENTENCES), case.expected["layers"], strict=True):
            assert vectors.dtype == np.float32
            np.testing.assert_allclose(vectors, expected[:, : vectors.shape[1]], **CLOSE)
            assert not expected[:, vectors.shape[1] :].any()
        layers, mask = embedder.batch_to_embeddings(GOLDEN_SENTENCES)
        np.testing.assert_allclose(layers, case.expected["layers"], **CLOSE)
        assert mask.sum(dim=1).tolist() == list(map(len, GOLDEN_SENTENCES))


def weighed(elmo, ids):
    vectors = torch.stack(elmo(ids)["elmo_representations"])
    factors = torch.arange(vectors.numel(), dtype=torch.float64).sin().to(vectors.dtype).view_as(vectors)
    return (vectors * factors).sum()


def mix_gradients(elmo):
    return {name: weight.grad for name, weight in elmo.named_parameters() if name.startswith("scalar_mix")}


def compare_gradients(case, kind, found):
    expected = {name.removeprefix(f"{kind}/"): case.expected[name] for name in case.expected if f"{kind}/" in name}
    assert found.keys() == expected.keys()
    for name, values in found.items():
        scale = np.abs(expected[name]).max()  # sums of hundreds of terms, some of them large
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, atol=1e-5 * max(1.0, scale), err_msg=name)


def test_signatures():
    """As in AllenNLP 0.9, and what is added can be given by name alone."""
    old = [parameter for parameter in inspect.signature(Elmo).parameters.values() if parameter.kind != 3]
    assert [(parameter.name, parameter.default) for parameter in old] == [
        *((name, inspect.Parameter.empty) for name in ("options_file", "weight_file", "num_output_representations")),
        *(("requires_grad", False), ("do_layer_norm", False), ("dropout", 0.5), ("vocab_to_cache", None)),
        *(("keep_sentence_boundaries", False), ("scalar_mix_parameters", None), ("module", None)),
    ]
    names = [name for name, parameter in inspect.signature(ElmoEmbedder).parameters.items() if parameter.kind != 3]
    assert names == ["options_file", "weight_file", "cuda_device"]
    assert list(inspect.signature(ElmoEmbedder.embed_file).parameters)[1:] == [
        *("input_file", "output_file_path", "output_format", "batch_size", "forget_sentences", "use_sentence_keys")
    ]


def test_stateless_unless_asked(base):
    elmo = Elmo(*base, 1, dropout=0.0)
    ids = batch_to_ids(GOLDEN_SENTENCES[:2])
    first, second = (elmo(ids)["elmo_representations"][0] for _ in range(2))
    assert torch.equal(first, second)
    average = elmokit.load(GOLDEN / "base").embed(GOLDEN_SENTENCES[:2])
    for row, vectors in enumerate(average):
        np.testing.assert_allclose(first[row, : len(vectors)].detach(), vectors, **CLOSE)


def test_dropout_falls_while_training(base):
    elmo, ids = Elmo(*base, 1), batch_to_ids(GOLDEN_SENTENCES)
    vectors = elmo(ids)["elmo_representations"][0]
    real = vectors[batch_to_ids(GOLDEN_SENTENCES).any(dim=-1)]
    assert 0.3 < (real == 0).float().mean() < 0.7
    assert elmo.eval()(ids)["elmo_representations"][0].count_nonzero() > vectors.count_nonzero()


def test_empty_sentences(base):
    elmo = Elmo(*base, 1, dropout=0.0)
    output = elmo(batch_to_ids([[], ["one"]]))
    assert output["elmo_representations"][0].shape == (2, 1, 16)
    assert output["mask"].tolist() == [[0], [1]]
    alone = elmo(batch_to_ids([[]]))
    assert alone["elmo_representations"][0].shape == (1, 0, 16)
    embedder = ElmoEmbedder(*base)
    assert [vectors.shape for vectors in embedder.embed_batch([[], ["one"]])] == [(3, 0, 16), (3, 1, 16)]
    assert embedder.embed_sentence([]).shape == (3, 0, 16)
    assert list(embedder.embed_sentences([])) == []
    assert embedder.embed_batch([]) == []
    assert elmo(batch_to_ids([]))["elmo_representations"][0].shape == (0, 0, 16)


def test_a_frozen_model_learns_when_told_so_later(base):
    elmo = Elmo(*base, 1, dropout=0.0)
    ids = batch_to_ids(GOLDEN_SENTENCES)
    elmo(ids)["elmo_representations"][0].sum().backward()
    assert all(weight.grad is None for weight in elmo._elmo_lstm.parameters())
    for weight in elmo.parameters():
        weight.requires_grad_(True)
    elmo(ids)["elmo_representations"][0].sum().backward()
    assert all(weight.grad is not None for weight in elmo._elmo_lstm.parameters())


def test_what_was_learned_is_used_without_gradients_too(base):
    elmo = Elmo(*base, 1, requires_grad=True, dropout=0.0)
    ids = batch_to_ids(GOLDEN_SENTENCES)
    optimizer = torch.optim.SGD(elmo.parameters(), lr=0.05)
    with torch.no_grad():
        before = elmo(ids)["elmo_representations"][0]
    elmo(ids)["elmo_representations"][0].square().mean().backward()
    optimizer.step()
    learned = elmo(ids)["elmo_representations"][0]
    with torch.no_grad():
        after = elmo(ids)["elmo_representations"][0]
    torch.testing.assert_close(after, learned, atol=1e-5, rtol=1e-5)
    assert (after - before).abs().max() > 1e-4


def test_the_mode_of_an_earlier_call_does_not_matter(base):
    elmo = Elmo(*base, 1, dropout=0.0, stateful=True)
    for sentences in (GOLDEN_SENTENCES[:2], GOLDEN_SENTENCES[2:4]):
        with torch.inference_mode():
            elmo(batch_to_ids(sentences))
        elmo(batch_to_ids([["never", "seen", *sentences[0]]]))["elmo_representations"][0].sum().backward()


def test_a_copy_has_its_own_weights(base):
    elmo = Elmo(*base, 1, dropout=0.0)
    ids = batch_to_ids(GOLDEN_SENTENCES)
    before = elmo(ids)["elmo_representations"][0]
    other = copy.deepcopy(elmo)
    with torch.no_grad():
        for weight in other.parameters():
            weight.zero_()
    assert not other(ids)["elmo_representations"][0].any()
    torch.testing.assert_close(elmo(ids)["elmo_representations"][0], before)
    other.load_state_dict(elmo.state_dict())
    torch.testing.assert_close(other(ids)["elmo_representations"][0], before)


def test_a_module_of_ones_own(base):
    bilm = Elmo(*base, 1)._elmo_lstm
    elmo = Elmo(None, None, 2, dropout=0.0, module=bilm)
    assert elmo.get_output_dim() == 16
    assert len(elmo(batch_to_ids(GOLDEN_SENTENCES))["elmo_representations"]) == 2
    with pytest.raises(ConfigError, match="either"):
        Elmo(*base, 1, module=bilm)
    with pytest.raises(ConfigError, match="either"):
        Elmo(base[0], None, 1)


def test_models_that_allennlp_refused(tmp_path):
    for name in ("no_skip", "filters_equal_projection"):
        elmo = Elmo(GOLDEN / name / "options.json", GOLDEN / name / "weights.hdf5", 1, dropout=0.0)
        vectors = elmo(batch_to_ids(GOLDEN_SENTENCES))["elmo_representations"][0]
        expected = elmokit.load(GOLDEN / name).embed(GOLDEN_SENTENCES)
        np.testing.assert_allclose(vectors[0, : len(expected[0])].detach(), expected[0], **CLOSE)
        Elmo(GOLDEN / name / "options.json", GOLDEN / name / "weights.hdf5", 1).load_state_dict(elmo.state_dict())


def test_a_model_with_fewer_characters_a_word():
    files = GOLDEN / "ten_characters" / "options.json", GOLDEN / "ten_characters" / "weights.hdf5"
    elmo = Elmo(*files, 1, dropout=0.0)
    vectors = elmo(batch_to_ids(GOLDEN_SENTENCES, max_characters=10))["elmo_representations"][0]
    expected = elmokit.load(files[1]).embed(GOLDEN_SENTENCES)
    np.testing.assert_allclose(vectors[5, : len(expected[5])].detach(), expected[5], **CLOSE)
    assert ElmoEmbedder(*files).embed_batch(GOLDEN_SENTENCES)[5].shape == (3, *expected[5].shape)
    with pytest.raises(DataError, match="50 characters a token, the model 10"):
        elmo(batch_to_ids(GOLDEN_SENTENCES))


def test_files_of_any_name_in_any_place(tmp_path, base):
    options, weights = tmp_path / "a" / "settings.txt", tmp_path / "b" / "weights_of_something.hdf5"
    for source, target in zip(base, (options, weights), strict=True):
        target.parent.mkdir()
        shutil.copy(source, target)
    (tmp_path / "b" / "options.json").write_text("{}")  # another model's
    expected = ElmoEmbedder(*base).embed_sentence(["one", "two"])
    np.testing.assert_array_equal(ElmoEmbedder(str(options), str(weights)).embed_sentence(["one", "two"]), expected)


@pytest.mark.parametrize("missing", [0, 1])
def test_missing_files(tmp_path, base, missing):
    files = list(base)
    files[missing] = tmp_path / "nowhere.bin"
    with pytest.raises(CheckpointError, match="nowhere.bin"):
        Elmo(*files, 1)


def test_bad_input(base):
    elmo = Elmo(*base, 1)
    with pytest.raises(DataError, match="'flat' came as a sentence"):
        batch_to_ids(["flat", "list"])
    with pytest.raises(DataError, match="token 1 of sentence 0 is 3"):
        batch_to_ids([["a", 3]])
    with pytest.raises(DataError, match="after padding"):
        elmo(torch.cat([torch.zeros(1, 1, 50, dtype=torch.long), batch_to_ids([["late"]])], dim=1))
    with pytest.raises(DataError, match="from 0 to 261"):
        elmo(batch_to_ids([["high"]]) + 1)
    with pytest.warns(UserWarning, match="vocab_to_cache"):
        elmo(batch_to_ids([["word"]]), torch.ones(1, 1, dtype=torch.long))
    with pytest.raises(ConfigError, match="at least one"):
        Elmo(*base, 0)
    with pytest.raises(ConfigError, match="3 layers"):
        Elmo(*base, 1, scalar_mix_parameters=[1.0])
    with pytest.raises(ConfigError, match="mask"):
        ScalarMix(1, do_layer_norm=True)([torch.ones(1, 1, 1)])


@pytest.mark.parametrize("name", ["one_layer", "three_layers_no_residual", "no_projection_no_clip", "few_characters"])
def test_models_of_other_shapes(tmp_path, name):
    write_checkpoint(random_checkpoint(CONFIGS[name]), tmp_path / "model", to="allenai")
    embedder = ElmoEmbedder(tmp_path / "model" / "options.json", tmp_path / "model" / "weights.hdf5")
    (expected,) = elmokit.load(tmp_path / "model").embed([["A", "测试"]], layers="all")
    np.testing.assert_allclose(embedder.embed_sentence(["A", "测试"]), expected, **CLOSE)


def test_a_model_that_reads_words(tmp_path):
    words = replace(CONFIGS["words"], words=replace(WORDS, dim=10))
    write_checkpoint(random_checkpoint(words), tmp_path / "model", to="allenai")
    with pytest.raises(ConfigError, match=f"{tmp_path}.*reads bytes as characters; this model does not"):
        ElmoEmbedder(tmp_path / "model" / "options.json", tmp_path / "model" / "weights.hdf5")


class TestEmbedFile:
    LINES = "Rivers never hurry .\n今天 去 公园\nRivers never hurry .\nslash / inside\n"

    def embed(self, base, path, **settings):
        ElmoEmbedder(*base).embed_file(io.StringIO(self.LINES), path, **settings)

    @pytest.mark.parametrize(("output_format", "layers"), [("all", "all"), ("top", "top"), ("average", "average")])
    def test_layout(self, tmp_path, base, output_format, layers):
        path = tmp_path / "vectors"  # any name, as in AllenNLP
        self.embed(base, path, output_format=output_format, batch_size=2)
        expected = elmokit.load(GOLDEN / "base").embed(
            [line.split() for line in self.LINES.splitlines()], layers=layers
        )
        with h5py.File(path) as file:
            assert set(file) == {"0", "1", "2", "3", "sentence_to_index"}
            for number, vectors in enumerate(expected):
                assert file[str(number)].dtype == np.float32
                np.testing.assert_allclose(file[str(number)][()], vectors, **CLOSE)
            index = json.loads(file["sentence_to_index"][0])
        assert index == {"Rivers never hurry .": "2", "今天 去 公园": "1", "slash / inside": "3"}
        assert list(tmp_path.iterdir()) == [path]

    def test_without_sentences(self, tmp_path, base):
        self.embed(base, tmp_path / "v.h5", forget_sentences=True)
        with h5py.File(tmp_path / "v.h5") as file:
            assert set(file) == {"0", "1", "2", "3"}

    def test_sentences_as_keys(self, tmp_path, base):
        with pytest.raises(DataError, match="twice"):
            self.embed(base, tmp_path / "v.h5", use_sentence_keys=True)
        lines = io.StringIO("one two\nthree\n")
        ElmoEmbedder(*base).embed_file(lines, tmp_path / "v.h5", use_sentence_keys=True)
        assert lines.closed
        with h5py.File(tmp_path / "v.h5") as file:
            assert {name: file[name].shape for name in file} == {"one two": (3, 2, 16), "three": (3, 1, 16)}

    def test_bad_requests_leave_nothing_behind(self, tmp_path, base):
        embedder = ElmoEmbedder(*base)
        with pytest.raises(DataError, match="line 2 of the input is blank"):
            embedder.embed_file(io.StringIO("one\n \ntwo\n"), tmp_path / "v.h5")
        with pytest.raises(ConfigError, match="output_format"):
            embedder.embed_file(io.StringIO("one\n"), tmp_path / "v.h5", output_format="best")
        with pytest.raises(OutputError, match="nowhere"):
            embedder.embed_file(io.StringIO("one\n"), tmp_path / "nowhere" / "v.h5")
        assert list(tmp_path.iterdir()) == []


def test_no_gpu_is_said(base):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ConfigError, match="cuda"):
        ElmoEmbedder(*base, cuda_device=0)


def test_source_is_the_weights_file(base):
    assert str(base[1]) in ElmoEmbedder(*base).elmo_bilm.elmo.source
    assert read_checkpoint(base[1]).weights.keys() == ElmoEmbedder(*base).elmo_bilm.elmo.bilm.state_dict().keys()
