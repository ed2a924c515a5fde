"""Coreference: spans, scores, likelihood and clusters against their definitions, taken one by one."""

import math
from dataclasses import replace
from itertools import combinations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.errors import ConfigError, DataError
from elmokit.tasks import coref, read
from elmokit.tasks.coref import PairScorer, SpanScorer, gold_links, linked, marginal_loss, prune, spans_within
from elmokit.tasks.examples import CoreferenceDocument, Place
from elmokit.tasks.task import Inputs, Item, Widths
from elmokit.text.sentences import Span
from elmokit.text.tokenizers import get_tokenizer

WIDTH = 6
CUT = get_tokenizer("words")
LENGTHS = st.lists(st.integers(0, 5), min_size=1, max_size=4)


def document(lengths: list[int], *clusters: list[tuple[int, int]]) -> CoreferenceDocument:
    sentences = tuple(tuple("abcdefgh"[number % 8] for number in range(length)) for length in lengths)
    mentions = tuple(tuple(Span(*mention) for mention in cluster) for cluster in clusters)
    return CoreferenceDocument("some", sentences, mentions, Place("some.conll", 1))


def new_model(*, output: int = 0, **values) -> coref.Model:
    small = {"hidden": 4, "scorer": 5, "dropout": 0.0, "longest": 3, "antecedents": 4, "spans_per_token": 0.6}
    model = coref.Model(coref.Settings(**(small | values)), (), Widths(WIDTH, output)).double().eval()
    for weight in model.parameters():
        weight.data = torch.randn_like(weight)
    return model


def batch(examples: list[CoreferenceDocument], *, longer: int = 0, output: int = 0) -> tuple[Inputs, list[Item]]:
    """Vectors that depend on a token's number in its document and its sentence's alone."""
    items = [coref.TASK.prepare(example, CUT) for example in examples]
    lengths = [len(tokens) for item in items for tokens in item.sentences]
    mask = torch.arange(max(1, *lengths, 0) + longer) < torch.tensor(lengths)[:, None]
    rows = [number for item in items for number in range(len(item.sentences))]
    generator = torch.Generator().manual_seed(1)
    vectors = torch.randn(10, 40, WIDTH + output, dtype=torch.float64, generator=generator)[rows, : mask.shape[1]]
    vectors = vectors * mask[..., None]
    return Inputs(vectors[..., :WIDTH], mask, vectors[..., WIDTH:] if output else None), items


def cross(one: Span, other: Span) -> bool:
    return one.start < other.start < one.end < other.end or other.start < one.start < other.end < one.end


@given(LENGTHS, st.integers(1, 6))
@settings(deadline=None)
def test_spans_stay_within_sentences(lengths, longest):
    expected, first = set(), 0
    for length in lengths:
        ends = range(first, first + length + 1)
        expected |= {(start, end) for start, end in combinations(ends, 2) if end - start <= longest}
        first += length
    found = spans_within(torch.tensor(lengths), longest).nonzero().tolist()
    assert {(start, start + size + 1) for start, size in found} == expected
    assert len(found) == len(expected)


def test_mention_scores_are_those_of_whole_representations():
    torch.manual_seed(0)
    scorer = SpanScorer(4, 6, longest=3, feature=2, hidden=5, dropout=0.0).double()
    encoded, vectors = torch.randn(7, 4, dtype=torch.float64), torch.randn(7, 6, dtype=torch.float64)
    scores = scorer(encoded, vectors)  # (7, 3)
    parts = [scorer.start.weight, scorer.end.weight, scorer.head.weight, scorer.size.weight]
    for start, size in product(range(7), range(3)):
        inside = slice(start, start + size + 1)
        if inside.stop > 7:
            continue
        shares = scorer.attention(encoded[inside])[:, 0].softmax(dim=0)
        head = sum(share * vector for share, vector in zip(shares, vectors[inside], strict=True))
        span = torch.cat([encoded[start], encoded[start + size], head, scorer.widths.weight[size]])
        found = scorer.represent(encoded, vectors, torch.tensor([start]), torch.tensor([size]))[0]
        assert torch.allclose(found, span, atol=1e-12)
        assert len(span) == scorer.width
        expected = scorer.score((torch.cat(parts, dim=1) @ span + scorer.start.bias).relu())
        assert scores[start, size].item() == pytest.approx(expected.item(), abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5)), max_size=20, unique=True), st.integers(0, 8))
@settings(deadline=None)
def test_pruning_keeps_the_best_that_do_not_cross(drawn, most):
    spans = [Span(start, start + size) for start, size in drawn]
    expected: list[int] = []
    for number, span in enumerate(spans):
        if len(expected) < most and not any(cross(span, spans[other]) for other in expected):
            expected.append(number)
    assert prune([span.start for span in spans], [span.end for span in spans], most) == expected


@pytest.mark.parametrize("count", [1, 2, 7, 140])
def test_pair_scores_are_those_of_pairs_one_by_one(count):
    torch.manual_seed(0)
    scorer = PairScorer(3, most=130, hidden=4, dropout=0.0).double()
    spans, mentions = torch.randn(count, 3, dtype=torch.float64), torch.randn(count, dtype=torch.float64)
    scores = scorer(spans, mentions)
    assert scores.shape == (count, 1 + min(130, count - 1))
    assert scores[:, 0].tolist() == [0.0] * count
    kinds = {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 7: 4, 8: 5, 15: 5, 16: 6, 31: 6, 32: 7, 63: 7, 64: 8, 130: 8}
    for later, distance in product(range(count), kinds):
        if distance >= scores.shape[1]:
            continue
        earlier = later - distance
        if earlier < 0:
            assert scores[later, distance] == -math.inf
            continue
        product_ = scorer.product(scorer.project(spans[later]) * scorer.project(spans[earlier]))
        hidden = scorer.later(spans[later]) + scorer.earlier(spans[earlier]) + product_
        expected = scorer.score(hidden + scorer.distance.weight[kinds[distance]]) + mentions[later] + mentions[earlier]
        assert scores[later, distance].item() == pytest.approx(expected.item(), abs=1e-12)


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=5), st.integers(0, 4), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_the_likelihood_is_that_of_all_choices_of_antecedents(clusters, most, seed):
    torch.manual_seed(seed)
    count = len(clusters)
    most = min(most, count - 1)
    scores = torch.randn(count, 1 + most, dtype=torch.float64) * 2
    for row in range(count):
        scores[row, row + 1 :] = -torch.inf
    choices = list(product(*(range(1 + min(row, most)) for row in range(count))))
    weights = torch.stack([scores[range(count), choice].sum() for choice in choices])
    right = torch.tensor([all(is_right(clusters, *pair, most) for pair in enumerate(choice)) for choice in choices])
    expected = weights.logsumexp(dim=0) - weights[right].logsumexp(dim=0)
    gold = gold_links(torch.tensor(clusters), most)
    assert marginal_loss(scores, gold).item() == pytest.approx(expected.item() / count, abs=1e-9)


def is_right(clusters: list[int], row: int, distance: int, most: int) -> bool:
    """Whether an antecedent is in the span's cluster, or is none because none of those before it is."""
    near = [back for back in range(1, min(row, most) + 1) if clusters[row] == clusters[row - back] != -1]
    return distance in near if near else distance == 0


@given(st.lists(st.integers(0, 8), max_size=9))
@settings(deadline=None)
def test_clusters_are_what_links_connect(drawn):
    best = [min(distance, number) for number, distance in enumerate(drawn)]
    expected = [{number} for number in range(len(best))]
    for number, distance in enumerate(best):  # merge until each link is within a cluster
        ends = [cluster for cluster in expected if {number, number - distance} & cluster]
        expected = [cluster for cluster in expected if cluster not in ends] + [set().union(*ends)]
    assert linked(best) == sorted(sorted(cluster) for cluster in expected)


@pytest.mark.parametrize("output", [0, 4])
def test_padding_and_batch_mates_change_nothing(output):
    torch.manual_seed(0)
    model = new_model(output=output)
    examples = [document([4, 0, 3], [(0, 1), (5, 6)]), document([1]), document([]), document([5, 2], [(0, 2)])]
    inputs, items = batch(examples, longer=3, output=output)
    together, losses = model.predict(inputs, items), []
    for number, example in enumerate(examples):
        alone, item = batch([example], output=output)
        assert model.predict(alone, item) == [together[number]]
        losses += [model.loss(alone, item)] if any(example.sentences) else []
    assert model.loss(inputs, items).item() == pytest.approx(torch.stack(losses).mean().item(), abs=1e-12)


@given(st.integers(0, 200), LENGTHS, st.booleans())
@settings(max_examples=40, deadline=None)
def test_answers_are_clusters_of_spans_that_do_not_cross(seed, lengths, singletons):
    torch.manual_seed(seed)
    model = new_model(singletons=singletons)
    (answer,) = model.predict(*batch([document(lengths)]))
    mentions = [mention for cluster in answer.clusters for mention in cluster]
    assert len(mentions) == len(set(mentions)) <= math.ceil(0.6 * sum(lengths))
    assert not any(cross(one, other) for one, other in combinations(mentions, 2))
    assert all(list(cluster) == sorted(cluster) for cluster in answer.clusters)
    assert all(0 <= start < end <= min(start + 3, sum(lengths)) for start, end in mentions)
    assert singletons or all(len(cluster) > 1 for cluster in answer.clusters)


def test_singletons_are_spans_that_score_as_mentions():
    torch.manual_seed(0)
    model = new_model()
    for weight in model.pairs.score.parameters():
        weight.data.zero_()
    model.pairs.score[-1].bias.data.fill_(-1e6)  # no link is worth it
    inputs, items = batch([document([5, 4])])
    (ranking,) = model.rankings(inputs, items)
    positive = [(span,) for span, score in zip(ranking.spans, ranking.kept.tolist(), strict=True) if score > 0]
    (answer,) = model.predict(inputs, items)
    assert list(answer.clusters) == positive != []


def test_the_loss_knows_mentions_of_one_only_with_singletons():
    torch.manual_seed(0)
    for singletons in (True, False):
        model = new_model(singletons=singletons, spans_per_token=9.0)
        gold, more = document([6], [(0, 1), (2, 3)]), document([6], [(0, 1), (2, 3)], [(4, 5)])
        losses = [model.loss(*batch([example])).item() for example in (gold, more)]
        assert (losses[0] != losses[1]) == singletons


def test_the_mention_loss_by_hand():
    torch.manual_seed(0)
    model = new_model()
    example = document([3, 2], [(0, 2), (3, 4)])
    inputs, items = batch([example])
    (ranking,) = model.rankings(inputs, items)
    lost = 0.0
    for start, size in ranking.within.nonzero().tolist():
        sign = 1 if (start, start + size + 1) in example.clusters[0] else -1
        lost -= math.log(1 / (1 + math.exp(-sign * ranking.mentions[start, size].item())))
    ids = torch.tensor([0 if span in example.clusters[0] else -1 for span in ranking.spans])
    linking = marginal_loss(ranking.links, gold_links(ids, ranking.links.shape[1] - 1)).item()
    assert model.loss(inputs, items).item() == pytest.approx(linking + lost / len(ranking.spans), abs=1e-9)


def test_mentions_that_are_too_long_or_cross_sentences_are_no_obstacle():
    model = new_model()
    example = document([5, 5], [(0, 5), (4, 6)], [(1, 2)])
    assert model.loss(*batch([example])).isfinite()


def test_nothing_can_be_learned_from_an_empty_document():
    model = new_model()
    inputs, items = batch([document([])])
    loss = model.loss(inputs, items)
    loss.backward()
    assert loss.item() == 0
    assert model.predict(inputs, items) == [document([])]


def test_parse():
    text = "Emma came. She sat down."
    sentences = (("Emma", "came", "."), ("She", "sat", "down", "."))
    assert coref.parse({"text": text}, CUT).sentences == sentences
    given_ = {"name": "emma", "sentences": [list(tokens) for tokens in sentences]}
    assert coref.parse(given_, CUT) == CoreferenceDocument("emma", sentences, (), Place("", 0))
    assert coref.parse({"tokens": ["Emma", "came"]}, CUT).sentences == (("Emma", "came"),)
    assert coref.parse({"text": ""}, CUT).sentences == ()
    for wrong in ({}, {"text": 3}, {"sentences": "Emma"}, {"sentences": [["a", 1]]}, {"text": "a", "name": 1}):
        with pytest.raises(DataError, match="expected"):
            coref.parse(wrong, CUT)


@pytest.mark.parametrize("setting", ["scorer", "longest", "antecedents", "spans_per_token", "hidden"])
def test_settings_are_checked(setting):
    with pytest.raises(ConfigError, match=f"{setting} is 0"):
        coref.Settings(**{setting: 0})


def test_scores():
    gold = [document([9], [(0, 1), (2, 3), (4, 5)], [(6, 7)])]
    assert set(coref.score(gold, gold).values()) == {1.0}
    without = [replace(gold[0], clusters=gold[0].clusters[:1])]
    scores = coref.score(gold, without)
    assert list(scores) == ["average", "muc", "b_cubed", "ceaf_e"]
    assert scores["muc"] == 1.0
    assert scores["b_cubed"] == pytest.approx(2 * 0.75 / 1.75)


def test_documents_of_litbank_fit(shared_data):
    chosen = coref.Settings(hidden=8, scorer=8)
    examples = read("coref", shared_data / "coref" / "litbank" / "dev")
    example = max(examples, key=lambda one: sum(map(len, one.sentences)))
    model = coref.Model(chosen, (), Widths(WIDTH))
    item = coref.TASK.prepare(example, CUT)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(tokens)) for tokens in item.sentences], True) > 0
    inputs = Inputs(torch.randn(*mask.shape, WIDTH) * mask[..., None], mask)
    model.loss(inputs, [item]).backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())
    (ranking,) = model.rankings(inputs, [item])
    assert ranking.links.shape == (math.ceil(0.25 * mask.sum()), 101)
