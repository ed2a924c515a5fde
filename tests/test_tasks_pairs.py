"""Pairs of texts: ESIM's attention against a plain loop, padding and empty texts, and what is read and refused."""

import json
import math

import pytest
import torch
from conftest import random_elmo

from elmokit.errors import ConfigError, DataError
from elmokit.tasks import InputSettings, fit, read
from elmokit.tasks.inputs import InputLayer
from elmokit.tasks.pairs import TASK, Model, Settings, align, parse
from elmokit.tasks.task import Inputs, Widths
from elmokit.text.tokenizers import get_tokenizer

CUT = get_tokenizer("words")
LABELS = ("contradiction", "entailment", "neutral")


def pairs(*texts):
    return [TASK.prepare(parse({"first": first, "second": second}, CUT), CUT) for first, second in texts]


def random_inputs(lengths, width=4, seed=0):
    """Vectors of rows of these lengths, with zeros after them."""
    lengths = torch.tensor(lengths)
    mask = torch.arange(max(1, int(lengths.max()))) < lengths[:, None]
    vectors = torch.randn(*mask.shape, width, generator=torch.Generator().manual_seed(seed))
    return vectors * mask[..., None], mask


@pytest.fixture(scope="module", params=[False, True], ids=["one-mix", "two-mixes"])
def network(request):
    """An input layer and a model on top of it."""
    layer = InputLayer([random_elmo()], InputSettings(output_mix=request.param)).eval()
    torch.manual_seed(0)
    return layer, Model(Settings(hidden=8), LABELS, layer.widths).eval()


def scores(network, items):
    layer, model = network
    return model.scores(layer([sentence for item in items for sentence in item.sentences]))


class TestAttention:
    def test_equal_to_a_plain_loop(self):
        lengths = [3, 5, 4, 1, 2, 0]
        vectors, mask = random_inputs(lengths)
        aligned = align(vectors, mask)
        for row, partner in [(0, 1), (1, 0), (2, 3), (3, 2), (4, 5)]:
            for place in range(lengths[row]):
                weights = [math.exp(vectors[row, place] @ vectors[partner, other]) for other in range(lengths[partner])]
                expected = torch.zeros(4)
                for other, weight in enumerate(weights):
                    expected += weight / sum(weights) * vectors[partner, other]
                torch.testing.assert_close(aligned[row, place], expected)


class TestModel:
    def test_batch_mates_change_nothing(self, network):
        items = pairs(
            ("A man sleeps.", "He is awake."), ("One", "two " * 40), ("很 好", ""), ("", "x"), ("a b c", "a b c")
        )
        together = scores(network, items)
        for row, item in enumerate(items):
            torch.testing.assert_close(together[row], scores(network, [item])[0], atol=1e-5, rtol=0)
        assert together.isfinite().all()

    def test_both_texts_and_their_order_count(self, network):
        found = scores(network, pairs(("A man", "a dog"), ("a dog", "A man"), ("A man", "a cat"), ("Two men", "a dog")))
        assert len({tuple(row) for row in found.tolist()}) == 4

    def test_empty_texts_can_be_learned_from(self):
        model = Model(Settings(hidden=8), LABELS, Widths(4))
        inputs = Inputs(*random_inputs([0, 0, 3, 0]))
        inputs.vectors.requires_grad_()
        model.scores(inputs).sum().backward()
        assert inputs.vectors.grad.isfinite().all()
        assert all(weight.grad.isfinite().all() for weight in model.parameters())

    @pytest.mark.parametrize("settings", [{"hidden": 0}, {"layers": 0}, {"dropout": 1.0}])
    def test_settings_out_of_range(self, settings):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            Settings(**settings)


class TestData:
    def test_snli_and_sick(self, shared_data):
        snli = read("pairs", shared_data / "pairs" / "snli" / "dev.jsonl")
        sick = read("pairs", shared_data / "pairs" / "sick" / "dev.txt")
        assert sorted(TASK.count_labels(snli)) == sorted(LABELS)
        assert sorted(TASK.count_labels(sick)) == ["CONTRADICTION", "ENTAILMENT", "NEUTRAL"]
        assert all(
            item.sentences[0] and item.sentences[1] for item in (TASK.prepare(pair, CUT) for pair in (*snli, *sick))
        )

    def test_an_unknown_label_names_its_file_and_line(self, tmp_path):
        rows = [{"gold_label": label, "sentence1": "A man .", "sentence2": "Men ."} for label in ("neutral", "-", "so")]
        (tmp_path / "dev.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        dev = read("pairs", tmp_path / "dev.jsonl")
        with pytest.raises(DataError, match=r"dev.jsonl, line 3: the label 'so' does not occur"):
            fit("pairs", dev[:1], dev, {"elmo": random_elmo()}, tmp_path / "task")

    @pytest.mark.parametrize(
        "values",
        [
            {"first": "A man.", "second": "Men."},
            {"sentence1": "A man.", "sentence2": "Men.", "gold_label": "neutral"},
            {"text": "A man.\tMen."},
        ],
    )
    def test_ways_to_give_a_pair(self, values):
        pair = parse(values, CUT)
        assert (pair.first, pair.second, pair.label) == ("A man.", "Men.", "")

    @pytest.mark.parametrize(
        "values",
        [{}, {"text": "one text"}, {"text": "a\tb\tc"}, {"first": "a"}, {"sentence1": "a"}, {"first": 1, "second": 2}],
    )
    def test_what_is_no_pair(self, values):
        with pytest.raises(DataError, match=r"expected a JSON object with .*, or a line with a tab"):
            parse(values, CUT)
