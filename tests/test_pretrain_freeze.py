"""What stays as it is while the rest learns, and tables of words that start from given vectors."""

import random

import numpy as np
import pytest
import torch

import elmokit
from elmokit.checkpoints import read_checkpoint
from elmokit.cli import main
from elmokit.errors import ConfigError, DataError
from elmokit.pretrain.corpus import read_corpus
from elmokit.pretrain.recipe import make_recipe, read_recipe
from elmokit.pretrain.run import CORPUS, pretrain
from elmokit.pretrain.trainer import Trainer, new_model
from elmokit.progress import Silence
from elmokit.static.embedders import StaticVectors

TOKENS = ("tokens.",)
FIRST = ("tokens.", "forward_layers.0.", "backward_layers.0.")
FROZEN = {"words": ("tokens.words.",), "tokens": TOKENS, 0: TOKENS, 1: FIRST}
QUICK = ["-s", "training.epochs=0.5", "-s", "training.batch=8", "-s", "training.unroll=10", "--workers", "1"]
KNOWN = ("cat", "dog", "sees", "moon")


def recipe(*, words=6, **training):
    values = read_recipe("tiny")
    values["model"] |= {"hidden": 16, "projection": 8, "words": {"dim": words}}
    values["model"]["characters"] |= {"filters": [[1, 4], [2, 8]]}
    values["training"] |= {"epochs": 0.2, "batch": 8, "save_minutes": 60} | training
    return values


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    choose = random.Random(0).choice
    subjects, verbs, objects = ("The cat", "the dog", "a bird"), ("sees", "likes"), ("the moon", "a tree", "月亮")
    path = tmp_path_factory.mktemp("text") / "little.txt"
    lines = [f"{choose(subjects)} {choose(verbs)} {choose(objects)} ." for _ in range(600)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(text, tmp_path_factory):
    """The folder of a model with words beside characters."""
    folder = tmp_path_factory.mktemp("model") / "run"
    pretrain([text], folder, recipe(), workers=1)
    return folder


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Static vectors of a few words, 6 wide."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    StaticVectors(KNOWN, np.random.default_rng(0).normal(2, 0.5, (len(KNOWN), 6)).astype(np.float32)).save(path)
    return path


def moved(before, after):
    return {name for name, weight in before.items() if not torch.equal(weight, after[name])}


@pytest.mark.parametrize("freeze", FROZEN)
def test_what_is_frozen_stays_to_the_bit_and_all_else_learns(freeze, model, text, tmp_path):
    """Adam's weight decay moves nothing that is frozen either."""
    settings = [*QUICK, "-s", "training.optimizer=adamw", "-s", "training.weight_decay=0.1"]
    main(["finetune", str(model), str(text), "-o", str(tmp_path / "tuned"), "--freeze", str(freeze), *settings])
    before, after = read_checkpoint(model).weights, read_checkpoint(tmp_path / "tuned").weights
    assert moved(before, after) == {name for name in before if not name.startswith(FROZEN[freeze])}


@pytest.mark.parametrize("freeze", FROZEN)
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_gradients_of_the_rest_are_those_of_the_whole(freeze, cell, model):
    """And nothing goes back into what is frozen: it costs no backward pass."""
    corpus = read_corpus(model / CORPUS, vocab_size=None, min_count=1)

    def gradients(freeze):
        values = recipe(freeze=freeze, dropout=0.3)
        values["model"]["cell"] = cell
        chosen = make_recipe(values)
        trainer = Trainer(new_model(chosen, corpus, None), chosen, corpus)
        trainer.accumulate_gradients()
        modules = {"": trainer.model.bilm, "softmax.": trainer.model.softmax}
        return {
            prefix + name: weight.grad for prefix, one in modules.items() for name, weight in one.named_parameters()
        }

    whole, part = gradients("none"), gradients(freeze)
    assert {name for name, gradient in part.items() if gradient is None} == {
        name for name in part if name.startswith(FROZEN[freeze])
    }
    for name, gradient in part.items():
        if gradient is not None:
            torch.testing.assert_close(gradient, whole[name], rtol=0, atol=0)


class Stops(Silence):
    """A user who loses patience in the fifth step."""

    def update(self, stage, done, *_, **__):
        if stage == "training" and done == 5:
            raise KeyboardInterrupt


def test_a_frozen_run_stopped_and_resumed_stays_frozen(model, text, tmp_path):
    values, start = recipe(freeze=1), read_checkpoint(model)
    options = {"start": start, "vocabulary": start.vocabulary, "workers": 1}
    with pytest.raises(KeyboardInterrupt):
        pretrain([text], tmp_path / "run", values, progress=Stops(), **options)
    pretrain([text], tmp_path / "run", values, resume=True, **options)
    after = read_checkpoint(tmp_path / "run").weights
    assert moved(start.weights, after) == {name for name in after if not name.startswith(FIRST)}
    values["training"]["freeze"] = "none"
    with pytest.raises(ConfigError, match='training.freeze was 1 and is "none"'):
        pretrain([text], tmp_path / "run", values, resume=True, **options)


@pytest.mark.parametrize(
    ("freeze", "message"),
    [
        (3, "training.freeze is 3: the model has 2 layers"),
        (-1, "is -1"),
        ("layer", "mistake.*freeze"),
        (True, "mistake"),
    ],
)
def test_what_cannot_be_frozen(freeze, message):
    with pytest.raises(ConfigError, match=message):
        make_recipe(recipe(freeze=freeze))


def test_a_table_of_words_that_is_not_there_cannot_be_frozen():
    values = recipe(freeze="words")
    del values["model"]["words"]
    with pytest.raises(ConfigError, match="no table of words"):
        make_recipe(values)


def test_new_words_need_a_table_that_learns(model, text, tmp_path):
    options = {"start": read_checkpoint(model), "new_words": 2}
    with pytest.raises(ConfigError, match="new words need a row"):
        pretrain([text], tmp_path / "run", recipe(freeze="tokens"), **options)


class TestWordVectors:
    def table(self, folder, vectors, text, *options):
        """The table of words after training, by word."""
        output = ["-o", str(folder), "--word-vectors", str(vectors), "--recipe", "tiny", "--min-count", "1"]
        main(["pretrain", str(text), *output, "-s", "training.evaluate_steps=1000", *QUICK, *options])
        elmo = elmokit.load(folder)
        rows = elmo.bilm.tokens.words.weight.detach().numpy()
        return dict(zip(elmo.vocabulary.words, rows, strict=True))

    def test_fixed(self, vectors, text, tmp_path, capsys):
        found, given = self.table(tmp_path / "run", vectors, text, "--freeze", "words"), StaticVectors.load(vectors)
        for word in KNOWN:
            np.testing.assert_array_equal(found[word], given.vectors_of([word])[0])
        assert f"word vectors: 4 of the {len(found)} words of the vocabulary have one" in capsys.readouterr().err

    def test_learning(self, vectors, text, tmp_path):
        found, given = self.table(tmp_path / "run", vectors, text), StaticVectors.load(vectors)
        for word in KNOWN:
            assert 0 < np.abs(found[word] - given.vectors_of([word])[0]).max() < 1

    def test_other_words_are_random_and_like_them(self, vectors, text, tmp_path):
        found = self.table(tmp_path / "run", vectors, text, "--freeze", "words")
        others = np.stack([vector for word, vector in found.items() if word not in KNOWN])
        assert len({row.tobytes() for row in others}) == len(others)
        assert 1.5 < others.mean() < 2.5
        assert 0.3 < others.std() < 0.9

    def test_a_word_has_the_vector_of_its_lower_case_form(self, text, tmp_path):
        StaticVectors(["the"], np.full((1, 6), 3, dtype=np.float32)).save(tmp_path / "the.txt")
        found = self.table(tmp_path / "run", tmp_path / "the.txt", text, "--freeze", "words")
        np.testing.assert_array_equal(found["The"], found["the"])

    def test_frequent_words_alone_have_vectors(self, vectors, text, tmp_path):
        values = recipe(freeze="words")
        values["model"]["words"]["frequent"] = 9
        pretrain([text], tmp_path / "run", values, word_vectors=(given := StaticVectors.load(vectors)), workers=1)
        elmo = elmokit.load(tmp_path / "run")
        rows = elmo.bilm.tokens.words.weight.detach().numpy()
        assert len(rows) == 9 < len(elmo.vocabulary)
        for word, row in zip(elmo.vocabulary.words, rows, strict=False):
            if word in KNOWN:
                np.testing.assert_array_equal(row, given.vectors_of([word])[0])

    def test_of_another_width(self, vectors, text, tmp_path):
        with pytest.raises(ConfigError, match=r"they are 6 wide, and model.words.dim is 7"):
            pretrain([text], tmp_path / "run", recipe(words=7), word_vectors=StaticVectors.load(vectors))

    def test_without_a_table(self, vectors, text, tmp_path):
        with pytest.raises(ConfigError, match=r"no table of words: set model.words.dim to 6"):
            pretrain([text], tmp_path / "run", "tiny", word_vectors=StaticVectors.load(vectors))

    def test_of_another_language(self, text, tmp_path):
        other = StaticVectors(["chat", "lune"], np.ones((2, 6), dtype=np.float32))
        with pytest.raises(DataError, match="no word of the vocabulary has one"):
            pretrain([text], tmp_path / "run", recipe(), word_vectors=other, workers=1)
