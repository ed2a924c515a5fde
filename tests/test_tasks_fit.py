"""The training loop and the input layer: mixes, caches, fine-tuning, folders, and what is refused."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import SENTENCES, random_elmo
from safetensors.torch import load_file, save_file
from test_tasks_contract import CLASSES, ENTITIES, PARTS, QUESTIONS, StopsAfter, tagged
from torch import nn

import elmokit
from elmokit.errors import CheckpointError, ConfigError, DataError, ElmoError, OutputError
from elmokit.files import locked
from elmokit.progress import SILENCE, Silence
from elmokit.static.embedders import OneHot, StaticVectors
from elmokit.tasks import FitOptions, FitSettings, InputSettings, fit, load
from elmokit.tasks.classify import Settings as ClassifySettings
from elmokit.tasks.encoder import Encoder, masked_softmax, max_mean
from elmokit.tasks.examples import Answer
from elmokit.tasks.inputs import InputLayer, open_cache
from elmokit.tasks.loop import write_plots
from elmokit.tasks.tagging import Settings

TOKENS = [tuple(sentence) for sentence in SENTENCES]
WORDS = sorted({word for sentence in ENTITIES for word in sentence.tokens})
PLAIN = {"input_dropout": 0.0}
QUICK = {"epochs": 3, "patience": 3, "batch": 4, "learning_rate": 0.02, "anneal": 1.0}


class Told(Silence):
    """Keeps what it is told."""

    def __init__(self):
        self.messages, self.updates = [], []

    def message(self, text):
        self.messages.append(text)

    def update(self, stage, done, total=None, *, unit="", note=""):
        self.updates.append((stage, done, total))

    @property
    def epochs(self):
        """How many have been measured."""
        return sum(message.startswith("epoch ") for message in self.messages)

    @property
    def stages(self):
        return {stage for stage, _, _ in self.updates}


def static_vectors(words=WORDS, *, seed=0, width=6):
    return StaticVectors(words, np.random.default_rng(seed).normal(size=(len(words), width)).astype(np.float32))


def train(
    folder, embedders=None, *, examples=ENTITIES, dev=None, name="tagging", inputs=None, progress=SILENCE, **options
):
    training = FitSettings(**(QUICK | options.pop("training", {})))
    settings = options.pop("settings", Settings(hidden=8) if name == "tagging" else None)
    embedders = embedders or {"elmo": random_elmo()}
    inputs = InputSettings(**(inputs or {}))
    return fit(
        name,
        examples,
        dev or examples,
        embedders,
        folder,
        FitOptions(settings=settings, inputs=inputs, training=training, **options),
        progress=progress,
    )


def tuned_weights(predictor):
    return predictor.model.inputs.sources[0].layer.bilm.state_dict()


def report(folder):
    return json.loads((folder / "report.json").read_text())


class TestInputs:
    def test_embedders_stand_side_by_side(self):
        elmo, static = random_elmo(), static_vectors(["bank", "the", "好"])
        layer = InputLayer([static, elmo], InputSettings()).eval()
        vectors, mask, output = layer(TOKENS)
        assert output is None
        assert layer.widths == (26, 0, ((1, 6), (1, 20)))
        assert vectors.shape == (6, 10, 26)
        assert mask.sum(dim=1).tolist() == [len(tokens) for tokens in TOKENS]
        assert not vectors[~mask].any()
        averages, looked_up = elmo.embed(TOKENS), static.embed(TOKENS)
        for row, tokens in enumerate(TOKENS):
            expected = np.concatenate([looked_up[row], averages[row]], axis=1)
            np.testing.assert_allclose(vectors[row, : len(tokens)].detach(), expected, atol=1e-5)

    @pytest.mark.parametrize(("mix", "layers"), [("last", "top"), ("average", "average")])
    def test_other_mixes(self, mix, layers):
        elmo = random_elmo()
        layer = InputLayer([elmo], InputSettings(mix=mix)).eval()
        expected = elmo.embed([TOKENS[0]], layers=layers)[0]
        np.testing.assert_allclose(layer([TOKENS[0]]).vectors[0].detach(), expected, atol=1e-5)
        assert layer.penalty() == 0

    def test_static_vectors_plus_layers(self):
        """E(x) + Σ s·h in ELMo's width, whatever the order of the embedders; frozen or tuned."""
        elmo, static = random_elmo(), static_vectors()
        settings = InputSettings(mix="static", mix_weights=(0.5, 1.5), output_mix=True)
        for embedders in ([static, elmo], [elmo, static]):
            layer = InputLayer(embedders, settings).eval()
            assert layer.widths == (20, 20, ((1, 20),))
            vectors, mask, output = layer(TOKENS)
            (source,) = layer.sources
            projection = source.mixes[0].projection.weight.detach().numpy()
            layers, given = elmo.embed([TOKENS[0]], layers="all")[0], static.embed([TOKENS[0]])[0]
            expected = given @ projection.T + 0.5 * layers[1] + 1.5 * layers[2]
            np.testing.assert_allclose(vectors[0, : len(given)].detach(), expected, atol=1e-5)
            assert not output[~mask].any()
            assert [one.embedder for one in layer.mix_reports()] == [embedders.index(elmo)] * 2
            assert layer.mix_reports()[0].weights == [1.0, 0.5, 1.5]
            tuned = InputLayer(embedders, replace(settings, trainable="all")).eval()
            tuned.sources[0].mixes.load_state_dict(source.mixes.state_dict())
            torch.testing.assert_close(tuned(TOKENS).vectors, vectors, atol=1e-5, rtol=0)

    def test_layer_0_plus_layers(self):
        elmo = random_elmo()
        layers = elmo.embed([TOKENS[0]], layers="all")[0]
        found = InputLayer([elmo], InputSettings(mix="static")).eval()([TOKENS[0]]).vectors[0].detach()
        np.testing.assert_allclose(found, layers[0] + (layers[1] + layers[2]) / 2, atol=1e-5)

    @pytest.mark.parametrize(
        ("embedders", "settings", "message"),
        [
            ([static_vectors()], {}, "a model of several layers is needed"),
            ([static_vectors(), static_vectors(), random_elmo()], {}, "one set of static vectors: 2"),
            ([random_elmo()], {"mix_weights": (1.0, 1.0, 1.0)}, "a 'static' mix of 3 layers has 2; 3 were given"),
        ],
    )
    def test_what_cannot_be_added(self, embedders, settings, message):
        with pytest.raises(ConfigError, match=message):
            InputLayer(embedders, InputSettings(mix="static", **settings))

    def test_fixed_weights_are_for_a_mix_of_weights(self):
        with pytest.raises(ConfigError, match="mix_weights"):
            InputSettings(mix="average", mix_weights=(1.0, 1.0))

    def test_layers_apart(self):
        elmo = random_elmo()
        layer = InputLayer([elmo], InputSettings(mix="apart", input_dropout=0.0))
        assert layer.widths == (60, 0, ((3, 20),))
        layers = elmo.embed([TOKENS[0]], layers="all")[0]  # (L, T, D)
        np.testing.assert_allclose(layer([TOKENS[0]]).vectors[0], np.concatenate(layers, axis=1), atol=1e-6)

    def test_a_second_mix_learns_apart(self):
        layer = InputLayer([static_vectors(), random_elmo()], InputSettings(output_mix=True, input_dropout=0.0))
        assert (layer.widths.input, layer.widths.output) == (26, 20)
        inputs = layer(TOKENS)
        inputs.output.sum().backward()
        first, second = layer.sources[1].mixes
        assert first.weights.grad is None
        assert second.weights.grad.any()
        encoder = Encoder(26, 5, output_width=20)
        encoded = encoder(*inputs)
        assert encoded.shape == (6, 10, encoder.width)
        torch.testing.assert_close(encoded[..., 10:], inputs.output)

    def test_dropout_only_in_training(self):
        layer = InputLayer([random_elmo()], InputSettings(input_dropout=0.5))
        torch.manual_seed(0)
        dropped = (layer([TOKENS[0]]).vectors == 0).float().mean()
        assert 0.4 < dropped < 0.6
        assert layer.eval()([TOKENS[0]]).vectors.all()

    def test_penalty(self):
        layer = InputLayer([random_elmo()], InputSettings(mix_penalty=0.5, output_mix=True))
        for number, mix in enumerate(layer.sources[0].mixes, 1):
            mix.weights.data = torch.tensor([1.0, 2.0, 3.0]) * number
        assert layer.penalty().item() == pytest.approx(0.5 * (14 + 4 * 14))

    @pytest.mark.parametrize("trainable", ["top", "all"])
    def test_a_tuned_model_gives_the_same_vectors(self, trainable):
        elmo = random_elmo()
        frozen = InputLayer([elmo], InputSettings()).eval()
        tuned = InputLayer([elmo], InputSettings(trainable=trainable)).eval()
        torch.testing.assert_close(tuned(TOKENS).vectors, frozen(TOKENS).vectors, atol=1e-5, rtol=0)
        assert tuned.widths == frozen.widths
        assert len(tuned.stages()) == (1 if trainable == "top" else 3)

    def test_unfreezing_from_the_top(self):
        settings = InputSettings(trainable="all", unfreeze_epochs=2)
        layer = InputLayer([random_elmo()], settings)
        open_stages = []
        for epoch in range(8):
            layer.unfreeze(epoch)
            open_stages.append([stage[0].requires_grad for stage in layer.stages()])
        t, f = True, False
        assert open_stages == [[f, f, f]] * 2 + [[t, f, f]] * 2 + [[t, t, f]] * 2 + [[t, t, t]] * 2

    @pytest.mark.parametrize("settings", [{"trainable": "top"}, {"trainable": "all", "mix": "apart"}])
    def test_what_cannot_be_tuned(self, settings):
        embedder = static_vectors() if "mix" not in settings else random_elmo()
        with pytest.raises(ConfigError, match="trainable"):
            InputLayer([embedder], InputSettings(**settings))

    def test_empty_sentences(self):
        layer = InputLayer([random_elmo(), static_vectors()], InputSettings())
        vectors, mask, _ = layer([(), ()])
        assert vectors.shape == (2, 1, 26)
        assert not mask.any()
        encoded = Encoder(26, 3)(vectors, mask)
        assert not encoded.any()
        assert not max_mean(encoded, mask).any()

    @pytest.mark.parametrize("layers", [1, 2])
    def test_the_encoder_is_a_packed_lstm(self, layers):
        torch.manual_seed(0)
        encoder, plain = Encoder(4, 3, layers=layers), nn.LSTM(4, 3, layers, batch_first=True, bidirectional=True)
        for level in range(layers):
            for part, ending in ((encoder.ahead[level], ""), (encoder.back[level], "_reverse")):
                part.load_state_dict(
                    {name: getattr(plain, name.replace("l0", f"l{level}{ending}")) for name in part.state_dict()}
                )
        lengths = torch.tensor([2, 5, 1])
        vectors, mask = torch.randn(3, 5, 4), torch.arange(5) < lengths[:, None]
        packed = nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        expected, _ = nn.utils.rnn.pad_packed_sequence(plain(packed)[0], batch_first=True)
        torch.testing.assert_close(encoder(vectors, mask), expected, atol=1e-6, rtol=0)

    def test_shares_among_real_tokens(self):
        mask = torch.tensor([[True, True, False], [False, False, False]])
        shares = masked_softmax(torch.tensor([[1.0, 1.0, 9.0], [1.0, 2.0, 3.0]]), mask)
        assert shares.tolist() == [[0.5, 0.5, 0], [0, 0, 0]]

    def test_none_at_all(self):
        with pytest.raises(ConfigError, match="at least one embedder"):
            InputLayer([], InputSettings())


class TestCache:
    @pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 0), ("float16", 2e-3)])
    def test_gives_what_was_embedded(self, dtype, tolerance, tmp_path):
        """float16 keeps 11 bits: layers of a size up to 3 differ by 1.5e-3 at most."""
        elmo = random_elmo()
        asked = [*TOKENS, (), *TOKENS]
        cache = open_cache(tmp_path, elmo, asked, identity="a", dtype=dtype)
        expected = np.concatenate(elmo.embed(TOKENS, layers="all"), axis=1)
        assert cache.layers.shape == (expected.shape[1], 3, 20)  # each sentence once
        np.testing.assert_allclose(cache.read(TOKENS), expected, atol=tolerance, rtol=0)
        np.testing.assert_array_equal(cache.read(TOKENS[::-1])[:, : len(TOKENS[-1])], cache.read(TOKENS[-1:]))

    def test_is_made_once(self, tmp_path):
        told = Told()
        for identity in ("a", "a", "b"):
            open_cache(tmp_path, random_elmo(), TOKENS, identity=identity, dtype="float32", progress=told)
        assert len(told.updates) == len(told.messages) == 2
        assert len(list(tmp_path.iterdir())) == 2

    def test_half_a_cache_is_none(self, tmp_path):
        class Broken:
            width, layer_count = 20, 3

            def embed(self, sentences, *, layers):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            open_cache(tmp_path, Broken(), TOKENS, identity="a", dtype="float32")
        assert list(tmp_path.iterdir()) == []

    def test_training_is_the_same_with_and_without(self, tmp_path):
        for choice in ("float32", "none"):
            told = Told()
            train(tmp_path / choice, training={"cache": choice}, progress=told)
            assert any("computed once" in message for message in told.messages) == (choice == "float32")
            assert ("computing layers" in told.stages) == (choice == "float32")
            assert not (tmp_path / choice / "cache").exists()
        one, other = (load(tmp_path / name, embedders=[random_elmo()]) for name in ("float32", "none"))
        for ours, theirs in zip(one.model.parameters(), other.model.parameters(), strict=True):
            # layers computed in batches of another make differ by rounding, 1e-7, which Adam's first steps make 1e-5
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)

    def test_a_cache_of_another_size_is_made_anew(self, tmp_path):
        options = {"identity": "elmo", "dtype": "float32"}
        elmo = random_elmo()
        expected = open_cache(tmp_path, elmo, TOKENS, **options).read(TOKENS)
        [path] = tmp_path.iterdir()
        path.write_bytes(path.read_bytes()[:-4])
        np.testing.assert_array_equal(open_cache(tmp_path, elmo, TOKENS, **options).read(TOKENS), expected)

    def test_a_folder_of_its_own_serves_other_runs(self, tmp_path):
        for seed in (0, 1):
            told = Told()
            train(tmp_path / str(seed), training={"seed": seed}, cache_folder=tmp_path / "layers", progress=told)
            assert ("computing layers" in told.stages) == (seed == 0)
        assert len(list((tmp_path / "layers").iterdir())) == 1


class TestLoop:
    def test_the_mix_moves_and_the_penalty_holds_it(self, tmp_path):
        spread = {}
        for penalty in (0.0, 10.0):
            folder = tmp_path / str(penalty)
            train(folder, inputs={"mix_penalty": penalty}, training={"epochs": 20, "patience": 20})
            mix = report(folder)["epochs"][-1]["mixes"][0]
            assert sum(mix["weights"]) == pytest.approx(1, abs=1e-6)
            spread[penalty] = max(mix["weights"]) - min(mix["weights"])
        assert spread[0.0] > 0.02
        assert spread[10.0] < spread[0.0] / 4

    def test_report(self, tmp_path):
        told = Told()
        train(tmp_path / "task", {"glove.txt": static_vectors(), "en": random_elmo()}, progress=told)
        written = report(tmp_path / "task")
        assert [epoch["number"] for epoch in written["epochs"]] == [1, 2, 3]
        assert written["embedders"] == ["glove.txt", "en"]
        assert written["training"]["batch"] == 4
        assert written["train_examples"] == written["dev_examples"] == 8
        scores = [epoch["scores"]["f1"] for epoch in written["epochs"]]
        assert written["best"] == scores.index(max(scores)) + 1
        assert told.epochs == 3
        assert told.updates[-1] == ("training", 24, 24)
        write_plots(tmp_path / "task")
        for name in ("learning-curve.png", "layer-weights.png"):
            assert (tmp_path / "task" / name).read_bytes().startswith(b"\x89PNG")

    def test_the_best_epoch_is_kept(self, tmp_path):
        """A rate so large that what was learned is forgotten: what is kept scores as its epoch did."""
        predictor = train(tmp_path / "task", training={"learning_rate": 0.5, "epochs": 8, "patience": 8})
        written = report(tmp_path / "task")
        scores = [epoch["scores"]["f1"] for epoch in written["epochs"]]
        assert max(scores) > min(scores)
        assert predictor.evaluate(ENTITIES)["f1"] == max(scores)

    def test_stops_when_the_score_does_not_rise(self, tmp_path):
        told = Told()
        train(tmp_path / "task", training={"learning_rate": 1e-9, "epochs": 50, "patience": 3}, progress=told)
        assert told.epochs == 4

    def test_waits_for_a_first_score(self, tmp_path):
        """Coreference scores 0 until its first links are found: patience begins with the first score above 0."""
        dev = [tagged("nothing/O here/O")]  # without an entity F1 is 0 whatever is learned
        train(tmp_path / "task", dev=dev, training={"epochs": 6, "patience": 2})
        assert [epoch["scores"]["f1"] for epoch in report(tmp_path / "task")["epochs"]] == [0.0] * 6

    def test_seeds(self, tmp_path):
        for name, seed in (("a", 0), ("b", 0), ("c", 1)):
            train(tmp_path / name, training={"seed": seed, "epochs": 2})
        a, b, c = ((tmp_path / name / "task.safetensors").read_bytes() for name in "abc")
        assert a == b != c

    def test_training_leaves_the_random_numbers_of_others_alone(self, tmp_path):
        elmo = random_elmo()
        torch.manual_seed(5)
        expected = torch.rand(3)
        torch.manual_seed(5)
        train(tmp_path / "task", {"elmo": elmo}, training={"epochs": 1})
        torch.testing.assert_close(torch.rand(3), expected)

    def test_a_sample(self, tmp_path):
        told = Told()
        train(tmp_path / "task", sample=0.25, progress=told)
        assert report(tmp_path / "task")["train_examples"] == 2
        assert report(tmp_path / "task")["dev_examples"] == 8
        with pytest.raises(ConfigError, match="sample is 25"):
            train(tmp_path / "other", sample=25)

    @pytest.mark.parametrize("trainable", ["top", "all"])
    def test_fine_tuning(self, trainable, tmp_path):
        before = random_elmo().bilm.state_dict()
        inputs = {"trainable": trainable, "unfreeze_epochs": 1, "tuned_rate": 0.01}
        options = {"inputs": inputs | PLAIN, "settings": Settings(hidden=8, dropout=0.0)}
        training = {"epochs": 12, "patience": 12}
        predictor = train(tmp_path / "task", examples=PARTS, training=training, **options)
        best = report(tmp_path / "task")["best"]
        after = tuned_weights(predictor)
        moved = {name.rsplit(".", 1)[0] for name, weight in after.items() if not weight.equal(before[name])}
        layers = [{f"{direction}_layers.{level}" for direction in ("forward", "backward")} for level in (1, 0)]
        expected = layers[0] if best > 1 else set()
        if trainable == "all":
            expected = expected | (layers[1] if best > 2 else set())
            assert {name for name in moved if "layers" in name} == expected
            assert any(name.startswith("tokens") for name in moved) == (best > 3)
        else:
            assert moved == expected
        assert best > 1
        again = load(tmp_path / "task", embedders=[random_elmo()])
        assert again.predict(PARTS) == predictor.predict(PARTS)
        torch.testing.assert_close(again.model.state_dict(), predictor.model.state_dict())

    def test_fine_tuning_leaves_the_model_itself_alone(self, tmp_path):
        """It may serve other tasks, and is known again by its weights."""
        elmo, inputs = random_elmo(), {"trainable": "all", "unfreeze_epochs": 0, "tuned_rate": 0.01}
        predictor = train(tmp_path / "task", {"elmo": elmo}, inputs=inputs)
        again, once_more = (load(tmp_path / "task", embedders=[elmo]) for _ in range(2))
        assert predictor.predict(ENTITIES) == again.predict(ENTITIES) == once_more.predict(ENTITIES)
        torch.testing.assert_close(elmo.bilm.state_dict(), random_elmo().bilm.state_dict(), rtol=0, atol=0)
        assert not any(weight.requires_grad for weight in elmo.bilm.parameters())

    def test_fine_tuning_resumed_ends_the_same(self, tmp_path):
        options = {"inputs": {"trainable": "all"}, "training": {"epochs": 4, "patience": 4}}
        train(tmp_path / "whole", **options)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "parts", progress=StopsAfter(2), **options)
        train(tmp_path / "parts", resume=True, **options)
        whole, parts = ((tmp_path / name / "task.safetensors").read_bytes() for name in ("whole", "parts"))
        assert whole == parts

    def test_lower_layers_learn_slower(self, tmp_path):
        before = random_elmo().bilm.state_dict()
        inputs = {"trainable": "all", "unfreeze_epochs": 0, "tuned_rate": 0.01, "lower_rate": 0.01}
        after = tuned_weights(train(tmp_path / "task", inputs=inputs, training={"epochs": 1}))
        top, low = (
            (after[f"forward_layers.{level}.weight"] - before[f"forward_layers.{level}.weight"]).abs().max()
            for level in (1, 0)
        )
        assert 50 < top / low < 200

    @pytest.mark.parametrize("embedder", [static_vectors(), OneHot(WORDS)], ids=["static", "one-hot"])
    def test_static_vectors_alone(self, embedder, tmp_path):
        predictor = train(tmp_path / "task", {"words": embedder}, inputs=PLAIN, training={"epochs": 40, "patience": 40})
        assert predictor.evaluate(ENTITIES)["f1"] > 0.9
        assert report(tmp_path / "task")["epochs"][0]["mixes"] == []

    def test_a_biattentive_classifier(self, tmp_path):
        settings = ClassifySettings(hidden=8, dropout=0.0, attention=True)
        training = {"epochs": 60, "patience": 60}
        predictor = train(
            tmp_path / "task", examples=CLASSES, name="classify", settings=settings, training=training, inputs=PLAIN
        )
        assert predictor.evaluate(CLASSES)["accuracy"] == 1
        asked = ["", "good", "dull " * 30]
        together = predictor.predict(asked)
        assert [predictor.predict([text])[0] for text in asked] == together

    def test_an_empty_text(self, tmp_path):
        predictor = train(tmp_path / "a")
        assert predictor.predict([""])[0].tags == ()
        predictor = train(tmp_path / "b", examples=CLASSES, name="classify")
        assert [text.label in ("good", "bad", "neither") for text in predictor.predict(["", "good"])] == [True, True]


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    """A task whose folder holds all it needs."""
    folder = tmp_path_factory.mktemp("bundled") / "task"
    embedders = {"gone.txt": static_vectors(), "gone too": random_elmo()}
    return train(folder, embedders, bundle=True), folder


class TestFolders:
    def test_a_bundle_needs_nothing_else(self, bundled, tmp_path):
        predictor, folder = bundled
        shutil.copytree(folder, tmp_path / "moved")
        assert load(tmp_path / "moved").predict(ENTITIES) == predictor.predict(ENTITIES)

    def test_embedders_are_found_by_name(self, tmp_path, model_folder):
        static_vectors().save(tmp_path / "vectors.txt")
        static = StaticVectors.load(tmp_path / "vectors.txt", lower_case=True)
        embedders = {str(tmp_path / "vectors.txt"): static, str(model_folder): elmokit.load(model_folder)}
        predictor = train(tmp_path / "task", embedders)
        assert load(tmp_path / "task").predict(["MARY saw London"]) == predictor.predict(["MARY saw London"])
        static_vectors(seed=9).save(tmp_path / "vectors.txt")
        with pytest.raises(CheckpointError, match=r"another static embedder than .*vectors.txt is now"):
            load(tmp_path / "task")
        (tmp_path / "vectors.txt").unlink()
        with pytest.raises(CheckpointError, match=r"needs the static vectors it was trained with: .*vectors.txt"):
            load(tmp_path / "task")

    def test_vectors_looked_up_in_another_way_are_refused(self, tmp_path):
        known, cased = static_vectors(), static_vectors()
        cased.lower_case = True
        train(tmp_path / "task", {"glove.txt": known})
        with pytest.raises(CheckpointError, match="lower_case was False, not True"):
            load(tmp_path / "task", embedders=[cased])

    def test_other_embedders_are_refused(self, bundled):
        _, folder = bundled
        with pytest.raises(CheckpointError, match="another elmo embedder"):
            load(folder, embedders=[static_vectors(), random_elmo(seed=3)])
        with pytest.raises(ConfigError, match="2 embedders, not 1"):
            load(folder, embedders=[random_elmo()])

    def test_an_embedder_made_in_python(self, tmp_path):
        class Lengths:
            width, layer_count = 1, 1

            def embed(self, sentences, *, layers="average"):
                return [
                    np.array([[[len(token)] for token in tokens]], np.float32).reshape(1, -1, 1) for tokens in sentences
                ]

        train(tmp_path / "task", {"lengths": Lengths()})
        with pytest.raises(CheckpointError, match="made in Python"):
            load(tmp_path / "task")
        assert load(tmp_path / "task", embedders=[Lengths()]).predict(["a bb"])[0].tokens == ("a", "bb")

    def test_layers_of_embedders_made_in_python_are_kept_apart(self, tmp_path):
        class Marks:
            width, layer_count = 2, 2

            def __init__(self, mark):
                self.mark, self.calls = mark, 0

            def embed(self, sentences, *, layers="average"):
                self.calls += 1
                return [np.full((2, len(tokens), 2), self.mark, np.float32) for tokens in sentences]

        first, second, third = Marks(1), Marks(2), Marks(1)
        for number, embedder in enumerate((first, second, third)):
            train(tmp_path / str(number), {"marks": embedder}, cache_folder=tmp_path / "layers")
        assert first.calls == second.calls > third.calls

    def test_a_bundle_that_was_interrupted_leaves_nothing(self, tmp_path):
        class Stops(StaticVectors):
            def save(self, path, **options):
                raise KeyboardInterrupt

        static = static_vectors()
        stops = Stops(static.words, static.vectors)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "task", {"good": static, "bad": stops}, bundle=True)
        assert not (tmp_path / "task").exists()
        (tmp_path / "task" / ".partial" / "embedders").mkdir(parents=True)  # as a run that was killed leaves it
        train(tmp_path / "task", {"good": static}, bundle=True)
        assert not (tmp_path / "task" / ".partial").exists()
        assert load(tmp_path / "task").predict(["London"])

    @pytest.mark.parametrize(
        "left",
        [
            [],
            [".lock"],
            [".lock", ".99999999.partial.task.json"],
            [".lock", ".partial/embedders/0.safetensors"],  # of an earlier version
            [".lock", ".embedders.99999999.partial/0.safetensors"],
            [".lock", "embedders/0.safetensors"],
        ],
    )
    @pytest.mark.parametrize("resume", [False, True])
    def test_what_a_killed_run_left_before_it_began_is_in_nobodys_way(self, left, resume, tmp_path):
        folder = tmp_path / "task"
        folder.mkdir()
        for name in left:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("half")
        train(folder, {"good": static_vectors()}, bundle=True, training={"epochs": 1}, resume=resume)
        written = ["embedders", "report.json", "task.json", "task.safetensors", "training.pt"]
        assert sorted(path.name for path in folder.iterdir()) == written
        assert load(folder).predict(["London"])

    def test_copies_take_no_place_of_others(self, tmp_path):
        (tmp_path / "task" / "embedders").mkdir(parents=True)
        (tmp_path / "task" / "embedders" / "thesis.txt").touch()
        with pytest.raises(OutputError, match=r"holds other files too \('thesis.txt'\)"):
            train(tmp_path / "task", {"good": static_vectors()}, bundle=True)
        with pytest.raises(OutputError, match="not an empty folder"):
            train(tmp_path / "task", {"good": static_vectors()})

    def test_a_run_killed_before_its_first_epoch_goes_on(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "task", progress=StopsAfter(0))
        (tmp_path / "task" / ".lock").write_text("process 99999999 on a machine that is gone")
        (tmp_path / "task" / ".99999999.partial.training.pt").write_text("half")
        train(tmp_path / "task", resume=True)
        train(tmp_path / "whole")
        assert not list((tmp_path / "task").glob(".*"))
        ours, theirs = ((tmp_path / name / "task.safetensors").read_bytes() for name in ("task", "whole"))
        assert ours == theirs

    @pytest.mark.parametrize("damage", ["network", "optimizer", "epochs", "shape", "nan", "cut"])
    def test_a_damaged_state_is_refused(self, damage, tmp_path):
        train(tmp_path / "task", training={"epochs": 1})
        path = tmp_path / "task" / "training.pt"
        state = torch.load(path, weights_only=True)
        name = next(name for name, weight in state["network"].items() if weight.ndim)
        if damage in state:
            del state[damage]
        elif damage == "shape":
            state["network"][name] = torch.zeros(1)
        elif damage == "nan":
            state["network"][name].view(-1)[0] = float("nan")
        torch.save(state, path)
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(CheckpointError, match=r"training.pt: (cannot be read as the state of|.* holds 1 numbers)"):
            train(tmp_path / "task", training={"epochs": 2}, resume=True)

    def test_a_folder_is_one_run_at_a_time(self, tmp_path):
        with locked(tmp_path / "task"), pytest.raises(OutputError, match=r"task is in use by process \d+ on "):
            train(tmp_path / "task")
        train(tmp_path / "task", training={"epochs": 1})

    def test_a_copy_is_within_its_folder(self, bundled, tmp_path):
        shutil.copytree(bundled[1], tmp_path / "copy")
        values = json.loads((tmp_path / "copy" / "task.json").read_text())
        values["embedders"][0]["bundled"] = "../elsewhere.safetensors"
        (tmp_path / "copy" / "task.json").write_text(json.dumps(values))
        with pytest.raises(CheckpointError, match="'../elsewhere.safetensors' of an embedder is said to be outside"):
            load(tmp_path / "copy")

    def test_weights_that_are_no_numbers(self, bundled, tmp_path):
        folder = shutil.copytree(bundled[1], tmp_path / "copy")
        weights = load_file(folder / "task.safetensors")
        name = next(iter(weights))
        weights[name].view(-1)[0] = float("nan")
        save_file(weights, folder / "task.safetensors")
        with pytest.raises(CheckpointError, match=f"task.safetensors: '{name}' holds 1 numbers of .* NaN or infinite"):
            load(folder)

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("task.json", b"{", "damaged, or of another version"),
            ("task.json", b'{"format": "elmokit task", "version": 2}', "version"),
            ("task.json", None, "no trained task"),
            ("task.safetensors", b"garbage", "cannot be read as safetensors"),
            ("task.safetensors", None, "has no task.safetensors: no epoch of its training was finished"),
        ],
    )
    def test_damaged_folders(self, name, content, message, bundled, tmp_path):
        folder = tmp_path / "copy"
        shutil.copytree(bundled[1], folder)
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
        with pytest.raises(CheckpointError, match=message):
            load(folder)

    def test_weights_of_another_task(self, bundled, tmp_path):
        shutil.copytree(bundled[1], tmp_path / "copy")
        values = json.loads((tmp_path / "copy" / "task.json").read_text())
        values["settings"]["hidden"] = 9
        (tmp_path / "copy" / "task.json").write_text(json.dumps(values))
        with pytest.raises(CheckpointError, match="does not match task.json: size mismatch"):
            load(tmp_path / "copy")

    def test_nothing_is_overwritten(self, tmp_path):
        (tmp_path / "thesis.tex").touch()
        with pytest.raises(OutputError, match="not an empty folder"):
            train(tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]

    def test_a_finished_run_resumed_is_what_it_was(self, tmp_path):
        predictor = train(tmp_path / "task")
        told = Told()
        again = train(tmp_path / "task", resume=True, progress=told)
        assert told.updates == []
        assert again.predict(ENTITIES) == predictor.predict(ENTITIES)

    def test_half_a_state(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "task", progress=StopsAfter(1))
        state = tmp_path / "task" / "training.pt"
        state.write_bytes(state.read_bytes()[:1000])
        with pytest.raises(CheckpointError, match=r"training.pt: cannot be read"):
            train(tmp_path / "task", resume=True)


class TestMistakes:
    def test_an_example_that_cannot_be_prepared_leaves_no_folder(self, tmp_path):
        """What was mended can then be tried again by the same command."""
        blank = replace(QUESTIONS[0], context="a   b", answers=(Answer(" ", 2),))
        with pytest.raises(DataError, match="none of its answers has a token"):
            train(tmp_path / "task", examples=[*QUESTIONS, blank], name="span_qa")
        assert not (tmp_path / "task").exists()

    def test_no_examples(self, tmp_path):
        with pytest.raises(DataError, match="the training data holds no examples"):
            fit("tagging", [], ENTITIES, {"elmo": random_elmo()}, tmp_path / "task")

    def test_an_unknown_task(self, tmp_path):
        with pytest.raises(ConfigError, match="unknown task 'nap': known are tagging"):
            fit("nap", ENTITIES, ENTITIES, {"elmo": random_elmo()}, tmp_path / "task")

    def test_a_loss_that_is_not_finite(self, tmp_path):
        with pytest.raises(ElmoError, match="the loss is .*: lower the learning rate"):
            train(tmp_path / "task", training={"learning_rate": 1e30})

    @pytest.mark.parametrize(
        "settings",
        [{"epochs": 0}, {"learning_rate": float("nan")}, {"clip": 0}, {"patience": 0}, {"batch_tokens": -1}],
    )
    def test_settings_out_of_range(self, settings):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            FitSettings(**settings)

    @pytest.mark.parametrize("settings", [{"input_dropout": 1.0}, {"mix_penalty": -1}, {"lower_rate": 0}])
    def test_input_settings_out_of_range(self, settings):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            InputSettings(**settings)

    def test_examples_that_cannot_be_read(self, tmp_path):
        predictor = train(str(tmp_path / "task"))
        assert predictor.predict([["Anna", "left"]]) == predictor.predict([{"tokens": ["Anna", "left"]}])
        with pytest.raises(DataError, match=r"example 1: expected a JSON object with .text."):
            predictor.predict([["fine", 2]])
        with pytest.raises(DataError, match=r"example 2: expected a JSON object with .text."):
            predictor.predict(["fine", {"texts": "not fine"}])
        with pytest.raises(DataError, match="put it in a list"):
            predictor.predict("one text")
