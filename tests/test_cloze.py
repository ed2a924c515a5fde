"""Words in gaps: the layer that reads both sides at once, what it predicts, how it is learned, saved and used."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_lexicon_substitutes import TEXT, TOKENIZER, plain, random_predictor
from test_pretrain_run import Watcher, recipe
from test_pretrain_run import text as text  # a fixture

import elmokit
from elmokit.checkpoints import write_checkpoint
from elmokit.elmo import Elmo
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon import substitutes
from elmokit.lexicon.predictions import position_probabilities
from elmokit.lexicon.ranks import rank_words
from elmokit.model.cloze import Cloze
from elmokit.pretrain import pretrain
from elmokit.pretrain.cloze import cloze_scores, iter_gaps, train_cloze
from elmokit.pretrain.evaluation import mean_prediction
from elmokit.text.brackets import read_brackets

SENTENCES = [["The", "bank", "of", "it"], ["a", "river", "was", "steep"], ["He", "sat"]]


def with_cloze(elmo, hidden=12, seed=3):
    """The same model with a random layer that joins both sides, all of whose weights matter."""
    generator = torch.Generator().manual_seed(seed)
    cloze = Cloze(elmo.config.projection, hidden)
    weights = {
        name: torch.randn(w.shape, generator=generator) * 0.3 for name, w in cloze.state_dict(prefix="cloze.").items()
    }
    checkpoint = elmo.checkpoint()
    config = replace(checkpoint.config, cloze=hidden)
    return Elmo(replace(checkpoint, config=config, weights=checkpoint.weights | weights))


def by_hand(elmo, words, position):
    """log p(w | before, after), (V,), from the formula."""
    top = elmo.run([["<S>", *words, "</S>"]], gradients=True)[-1]
    width, weights = elmo.config.projection, elmo.language_model.weights()
    f, g = top[position, :width], top[position + 2, width:]
    inner = torch.relu(weights["cloze.hidden.weight"] @ torch.cat([f, g]) + weights["cloze.hidden.bias"])
    h = f + g + weights["cloze.output.weight"] @ inner + weights["cloze.output.bias"]
    return elmo.language_model.softmax.log_probabilities(h[None])[0].double().numpy()


@pytest.fixture(scope="module", params=["full", "adaptive"])
def elmo(request):
    return with_cloze(random_predictor(request.param))


def test_both_sides_are_read_as_the_formula_says(elmo):
    query = read_brackets(TEXT, TOKENIZER)
    found = position_probabilities(elmo, query.context.words, query.position)
    odds = np.exp(by_hand(elmo, query.context.words, query.position))
    odds[:3] = 0  # <S>, </S>, <UNK>
    np.testing.assert_allclose(found, odds / odds.sum(), rtol=1e-4)


def test_one_direction_alone_is_as_before(elmo):
    query = read_brackets(TEXT, TOKENIZER)
    odds = np.exp(plain(elmo, query.context.words, query.position)[1])
    odds[:3] = 0
    found = position_probabilities(elmo, query.context.words, query.position, direction="backward")
    np.testing.assert_allclose(found, odds / odds.sum(), rtol=1e-4)


def test_the_mean_prediction_is_taken_off_once_less(elmo):
    """By the layer a word's frequency counts once already; what means the same has a share of it taken off."""
    query = read_brackets(TEXT, TOKENIZER)
    known = Elmo(replace(elmo.checkpoint(), prior=mean_prediction(elmo, SENTENCES)))
    one, other = (substitutes(model, query, k=50, view="fits") for model in (elmo, known))
    assert one == other
    one, other = (substitutes(model, query, k=50).candidates for model in (elmo, known))
    assert one != other


def test_ranks_agree_with_the_probabilities(elmo):
    words = read_brackets(TEXT, TOKENIZER).context.words
    found = rank_words(elmo, words).words[1]
    everything = position_probabilities(elmo, words, 1)
    own = everything[elmo.vocabulary.encode([words[1]])[0]]
    assert found.both == pytest.approx(-np.log2(own), rel=1e-4)
    assert found.ranks.both == (everything > own).sum() + 1


def test_it_is_saved_and_vectors_do_not_depend_on_it(elmo, tmp_path):
    elmo.save(tmp_path / "model")
    copy = elmokit.load(tmp_path / "model")
    assert copy.config.cloze == 12
    assert (position_probabilities(copy, SENTENCES[0], 1) == position_probabilities(elmo, SENTENCES[0], 1)).all()
    without = {name: one for name, one in elmo.checkpoint().weights.items() if not name.startswith("cloze.")}
    bare = Elmo(replace(elmo.checkpoint(), config=replace(elmo.config, cloze=None), weights=without))
    assert bare.digest == copy.digest
    assert (bare.embed(SENTENCES)[0] == copy.embed(SENTENCES)[0]).all()


def test_formats_without_a_softmax_leave_it_out(elmo, tmp_path):
    write_checkpoint(elmo.checkpoint(), tmp_path / "allenai", to="allenai")
    assert elmokit.load(tmp_path / "allenai").config.cloze is None


def test_gaps_are_the_words_and_their_sides(elmo):
    [gaps] = iter_gaps(elmo, [[], *SENTENCES])
    words = [elmo.vocabulary.words[index] for index in gaps.words]
    assert sorted(words) == sorted(w if w in elmo.vocabulary else "<UNK>" for one in SENTENCES for w in one)
    place = words.index("bank")
    scores = elmo.language_model.gap_scores(gaps.before, gaps.after, None)[place]
    np.testing.assert_allclose(scores, by_hand(elmo, SENTENCES[0], 1), rtol=1e-4, atol=1e-4)


def test_scores_by_hand(elmo):
    known = [[word for word in one if word in elmo.vocabulary] for one in SENTENCES]
    losses, ranks = [], []
    for words in known:
        for position, word in enumerate(words):
            row = by_hand(elmo, words, position)
            own = row[elmo.vocabulary.encode([word])[0]]
            losses.append(-own)
            ranks.append((row > own).sum() + 1)
    found = cloze_scores(elmo, known)
    assert found.perplexity == pytest.approx(np.exp(np.mean(losses)), rel=1e-3)
    assert found.first == pytest.approx(np.mean(np.array(ranks) == 1))
    assert found.reciprocal_rank == pytest.approx(np.mean(1 / np.array(ranks)))
    assert found.words == len(ranks)
    with pytest.raises(DataError, match="no text"):
        cloze_scores(elmo, [[]])


@pytest.mark.parametrize("autocast", [False, True])
def test_it_learns_and_the_model_stays_as_it_is(autocast):
    """Untrained it is the sum of both sides; trained, it predicts what it has read better than both by themselves."""
    elmo = random_predictor("adaptive")
    elmo.prior = mean_prediction(elmo, SENTENCES)
    before, apart = elmo.digest, cloze_scores(elmo, SENTENCES).perplexity
    cloze = train_cloze(elmo, SENTENCES * 3000, tokens=30_000, autocast=autocast)
    assert elmo.digest == before
    assert not any(weight.requires_grad for weight in cloze.parameters())
    elmo.language_model.cloze = cloze
    assert cloze_scores(elmo, SENTENCES).perplexity < 0.7 * apart


@pytest.mark.parametrize(("share", "kept"), [(1e-9, False), (20.0, True)])
def test_pretraining_keeps_it_if_it_is_better(text, tmp_path, share, kept):
    watcher, chosen = Watcher(), recipe(training__cloze_share=share)
    pretrain([text], tmp_path / "run", chosen, progress=watcher)
    [said] = [one for one in watcher.messages if one.startswith("words in gaps")]
    assert said.endswith("which is kept" if kept else "which is not kept")
    elmo = elmokit.load(tmp_path / "run")
    assert (elmo.config.cloze is not None) == kept
    tuned = replace(chosen, model=elmo.config)  # whose layer is not that of the weights to come
    pretrain([text], tmp_path / "tuned", tuned, start=elmo.checkpoint(), vocabulary=elmo.vocabulary, progress=watcher)
    assert sum(one.startswith("words in gaps") for one in watcher.messages) == 2


def test_a_width_below_one_is_refused(elmo):
    with pytest.raises(ConfigError, match="cloze is 0"):
        replace(elmo.config, cloze=0)
