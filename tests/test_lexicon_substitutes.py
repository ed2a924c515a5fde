"""What a language model expects: substitutes and surprisal, against the softmax itself and the perplexity."""

import json
import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import BYTES, VOCABULARY, random_elmo
from test_pretrain_run import recipe

import elmokit
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.tables import weight_shapes
from elmokit.config import SoftmaxConfig
from elmokit.elmo import Elmo
from elmokit.errors import CheckpointError, ConfigError
from elmokit.lexicon import predictions
from elmokit.lexicon.inflections import is_form_of
from elmokit.lexicon.predictions import position_probabilities, surprisal
from elmokit.lexicon.substitution import SHARE, WEIGHT, substitutes
from elmokit.pretrain import perplexity, pretrain
from elmokit.pretrain.evaluation import mean_prediction
from elmokit.static.embedders import StaticVectors
from elmokit.text.brackets import read_brackets
from elmokit.text.tokenizers import get_tokenizer

TOKENIZER = get_tokenizer("words")
TEXT = "The [bank] of the river was zigzag ."
KINDS = {"full": (), "sampled": (), "adaptive": (5, 20)}


def random_predictor(kind):
    """A random model with a softmax."""
    softmax = SoftmaxConfig(kind=kind, size=len(VOCABULARY), samples=8, cutoffs=KINDS[kind])
    config = replace(BYTES, softmax=softmax)
    generator = torch.Generator().manual_seed(1)
    shapes = weight_shapes(config)
    weights = {name: torch.randn(shape, generator=generator) * 0.4 for name, shape in shapes.items()}
    return Elmo(Checkpoint(config, weights, VOCABULARY, "made in a test"))


@pytest.fixture(scope="module", params=KINDS)
def elmo(request):
    return random_predictor(request.param)


def plain(elmo, words, position):
    """Log probabilities of every word at a position, forward and backward, (2, V)."""
    top = elmo.run([["<S>", *words, "</S>"]], gradients=True)[-1]
    width = elmo.config.projection
    rows = torch.stack([top[position, :width], top[position + 2, width:]])
    return elmo.language_model.softmax.log_probabilities(rows).double().numpy()


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_probabilities_are_those_of_the_softmax(elmo, direction):
    query = read_brackets(TEXT, TOKENIZER)
    found = position_probabilities(elmo, query.context.words, query.position, direction=direction)
    assert found.sum() == pytest.approx(1)
    both = plain(elmo, query.context.words, 1)
    scores = np.exp({"forward": both[0], "backward": both[1], "both": both.sum(axis=0)}[direction])
    scores[:3] = 0  # <S>, </S>, <UNK>
    np.testing.assert_allclose(found, scores / scores.sum(), rtol=1e-4)  # the engine's single precision


def test_the_mean_prediction_is_divided_out(elmo):
    sentences = [["The", "bank", "of", "it"], ["a", "river"]]
    expected = np.mean(
        [np.exp(row) for words in sentences for position in range(len(words)) for row in plain(elmo, words, position)],
        axis=0,
    )  # (V,)
    prior = mean_prediction(elmo, sentences)
    np.testing.assert_allclose(prior.exp(), expected, rtol=1e-4)
    with_prior = Elmo(replace(elmo.checkpoint(), prior=prior))
    query = read_brackets(TEXT, TOKENIZER)
    found = position_probabilities(with_prior, query.context.words, query.position)
    scores = np.exp(plain(elmo, query.context.words, 1).sum(axis=0)) / expected
    scores[:3] = 0
    np.testing.assert_allclose(found, scores / scores.sum(), rtol=1e-3)
    one, other = (
        position_probabilities(model, query.context.words, query.position, direction="forward")
        for model in (elmo, with_prior)
    )
    assert (one == other).all()  # one direction alone counts a word's frequency once


def test_a_model_without_a_mean_prediction_says_so(elmo, caplog):
    predictions._report_no_prior.cache_clear()
    with caplog.at_level("INFO", logger="elmokit"):
        substitutes(elmo, TEXT)
        substitutes(elmo, TEXT)
    assert caplog.text.count("no mean prediction is kept") == 1


def test_the_best_and_the_word_itself(elmo):
    query = read_brackets(TEXT, TOKENIZER)
    found = substitutes(elmo, query, k=7, view="fits")
    probabilities = position_probabilities(elmo, query.context.words, query.position)
    order = np.argsort(-probabilities)
    assert [word for word, _ in found.candidates] == [VOCABULARY.words[index] for index in order[:7]]
    assert [value for _, value in found.candidates] == pytest.approx(probabilities[order[:7]].tolist())
    assert VOCABULARY.words[order[found.rank - 1]] == found.word == "bank"
    assert found.probability == pytest.approx(probabilities[order[found.rank - 1]])
    everything = substitutes(elmo, query, k=10_000, view="fits").candidates
    assert len(everything) == len(VOCABULARY) - 3
    assert sum(value for _, value in everything) == pytest.approx(1)


def test_sentences_as_strings(elmo):
    assert substitutes(elmo, TEXT) == substitutes(elmo, read_brackets(TEXT, elmo.tokenizer))
    text = "The bank of the river"
    assert surprisal(elmo, text) == surprisal(elmo, text.split())


def test_the_word_itself_is_not_seen(elmo):
    queries = (read_brackets(f"The [{word}] of it", TOKENIZER) for word in ("bank", "zigzag"))
    one, other = (substitutes(elmo, query, view="fits") for query in queries)
    assert one.candidates == other.candidates
    assert (other.word, other.rank, other.probability) == ("zigzag", None, None)


def test_what_means_the_same_has_read_the_word(elmo):
    """log p(w | before) + log p(w | after) - SHARE log p̄(w) + WEIGHT cos, by hand."""
    prior = mean_prediction(elmo, [["The", "bank", "of", "it"], ["a", "river"]])
    elmo = Elmo(replace(elmo.checkpoint(), prior=prior))
    query = read_brackets(TEXT, TOKENIZER)
    vectors = [elmo.embed([[word]], layers=0)[0][0].astype(np.float64) for word in VOCABULARY.words]
    own = vectors[VOCABULARY.encode(["bank"])[0]]
    cosines = np.array([one @ own / np.linalg.norm(one) / np.linalg.norm(own) for one in vectors])
    scores = plain(elmo, query.context.words, 1).sum(axis=0) - SHARE * prior.numpy() + WEIGHT * cosines
    odds = np.exp(scores)
    odds[:3] = 0
    found = substitutes(elmo, query, k=10_000, keep=["same-form", "inflections", "function-words"])
    assert dict(found.candidates) == pytest.approx(
        dict(zip(VOCABULARY.words[3:], (odds / odds.sum())[3:].tolist(), strict=True)), rel=1e-3
    )
    assert found.probability == pytest.approx((odds / odds.sum())[VOCABULARY.encode(["bank"])[0]], rel=1e-3)


def test_filters(elmo):
    """The word itself, its inflections, function words and punctuation; none of them changes a probability."""
    query = read_brackets("She [deposited] her wages", TOKENIZER)
    everything = dict(substitutes(elmo, query, k=99, keep=["same-form", "inflections", "function-words"]).candidates)
    found = dict(substitutes(elmo, query, k=99).candidates)
    left_out = set(everything) - set(found)
    function_words = set("the of was and at her She The too One 很 我们 去".split())
    assert left_out == {"deposited", *function_words, *".，。", "🎉", "🤷‍♀️"} & set(everything)
    assert {"river", "bank", "green", "公园"} <= set(found)
    assert found.items() <= everything.items()
    with_function_words = set(dict(substitutes(elmo, query, k=99, keep=["function-words"]).candidates))
    assert with_function_words == set(everything) - {"deposited"}
    of = set(dict(substitutes(elmo, read_brackets("the bank [of] it", TOKENIZER), k=99).candidates))
    assert {"the", "river"} <= of  # a function word may stand for another
    assert "of" not in of


def test_among(elmo):
    query = read_brackets(TEXT, TOKENIZER)
    for view in ("fits", "means-the-same"):
        whole = dict(substitutes(elmo, query, k=99, view=view, keep=["inflections", "function-words"]).candidates)
        found = substitutes(elmo, query, view=view, among=["river", "zigzag", "green"]).candidates
        assert {word for word, _ in found} == {"river", "zigzag", "green"}
        assert found[-1] == ("zigzag", 0)  # not in the vocabulary
        assert found[0].probability / found[1].probability == pytest.approx(whole[found[0][0]] / whole[found[1][0]])


def test_static_vectors_say_what_is_like_the_word(elmo):
    query = read_brackets(TEXT, TOKENIZER)
    close = StaticVectors(["bank", "green"], np.array([[1, 0], [1, 0]], np.float32))
    far = StaticVectors(["bank", "green"], np.array([[1, 0], [-1, 0]], np.float32))
    one, other = (dict(substitutes(elmo, query, k=99, similar=vectors).candidates) for vectors in (close, far))
    assert one["green"] / one["river"] == pytest.approx(other["green"] / other["river"] * math.exp(2 * WEIGHT))


@pytest.mark.parametrize(
    "pair",
    "bank banks, banked banking, went going, hop hopping, hope hoping, carry carried, happy happily, gentle gently, "
    "church churches, box boxes, lie lying, big bigger, kisses kiss, men man, wives wife, Quiet quietly, be were, "
    "leaves leaf, leaves leave, bus buses, dog dog's".split(", "),
)
def test_inflections(pair):
    assert is_form_of(*pair.split())


@pytest.mark.parametrize("pair", "bank shore,bring king,bed be,princess prince,hopped hope,thing th,好 好的".split(","))
def test_other_words(pair):
    assert not is_form_of(*pair.split())


@pytest.mark.parametrize("words", [[], ["bank"], "The bank of the zigzag was steep".split()])
def test_surprisal_is_the_perplexity(elmo, words):
    found, whole = surprisal(elmo, words), perplexity(elmo, [words])
    forward = [word.forward for word in found.words] + [found.end]
    backward = [word.backward for word in found.words] + [found.begin]
    assert 2 ** np.mean(forward) == pytest.approx(whole.forward, rel=1e-5)
    assert 2 ** np.mean(backward) == pytest.approx(whole.backward, rel=1e-5)
    assert [word.word for word in found.words] == words
    assert sum(not word.known for word in found.words) == whole.unknown


def test_surprisal_of_each_word(elmo):
    words = "The bank of the zigzag".split()
    for position, found in enumerate(surprisal(elmo, words).words):
        both = plain(elmo, words, position)[:, VOCABULARY.encode([found.word])[0]]
        assert (found.forward, found.backward) == pytest.approx(tuple(-both / math.log(2)), rel=1e-4)


def test_mistakes(elmo):
    query = read_brackets(TEXT, TOKENIZER)
    with pytest.raises(ConfigError, match="unknown direction 'up'"):
        substitutes(elmo, query, direction="up")
    with pytest.raises(ConfigError, match="k is 0"):
        substitutes(elmo, query, k=0)
    with pytest.raises(ConfigError, match="unknown view 'suits': known are means-the-same, fits"):
        substitutes(elmo, query, view="suits")


def test_a_model_without_softmax():
    for ask in (lambda elmo: substitutes(elmo, read_brackets(TEXT, TOKENIZER)), lambda elmo: surprisal(elmo, ["bank"])):
        with pytest.raises(CheckpointError, match="the model has no softmax, so it cannot predict words"):
            ask(random_elmo())


def test_a_trained_model_knows_what_fits(tmp_path):
    """In a little language of subjects, verbs and objects, verbs stand for verbs and nouns for nouns."""
    parts = ["cat dog bird king".split(), "sees likes follows remembers".split(), "river tree house moon".split()]
    choose = random.Random(0).choice
    lines = ["the {} {} the {} .".format(*map(choose, parts)) for _ in range(400)]
    (tmp_path / "little.txt").write_text("\n".join(lines), encoding="utf-8")
    settings = recipe(training__epochs=3.0, training__learning_rate=0.02, training__evaluate_steps=1000)
    pretrain([tmp_path / "little.txt"], tmp_path / "run", settings, workers=1)
    elmo = elmokit.load(tmp_path / "run")
    for text, fitting in zip(
        ("the [cat] sees the river .", "the cat [sees] the river .", "the cat sees the [river] ."), parts, strict=True
    ):
        found = substitutes(elmo, read_brackets(text, TOKENIZER), k=4, view="fits")
        assert {word for word, _ in found.candidates} == set(fitting), text
    odd = surprisal(elmo, "the cat the sees river .".split())
    plain_order = surprisal(elmo, "the cat sees the river .".split())
    assert odd.words[2].forward > plain_order.words[2].forward
    assert json.dumps(odd.words)
