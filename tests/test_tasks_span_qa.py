"""Answers in contexts: attention flow and the best span against plain loops, tokens and characters, empty texts."""

import json
import math
import random
from dataclasses import replace

import pytest
import torch
from conftest import random_elmo
from test_tasks_fit import Told
from test_tasks_pairs import random_inputs

from elmokit.errors import ConfigError, DataError
from elmokit.tasks import FitOptions, FitSettings, InputSettings, fit, read
from elmokit.tasks.examples import Answer, Place, Question
from elmokit.tasks.inputs import InputLayer
from elmokit.tasks.span_qa import TASK, AttentionFlow, Model, Settings, best_spans, covered, prepare, score
from elmokit.text.sentences import Span
from elmokit.text.tokenizers import Token, get_tokenizer

CUT = get_tokenizer("words")
CONTEXT = "Mr. Darcy isn't from London; he's from Derbyshire (near the Peak)."


def asked(question, context, *answers):
    found = tuple(Answer(answer, context.index(answer)) for answer in answers)
    return Question("q", question, context, found, Place("some.json", 3, "question 'q'"))


def item(question="Who?", context=CONTEXT, *answers):
    return prepare(asked(question, context, *answers), CUT)


@pytest.fixture(scope="module", params=[False, True], ids=["one-mix", "two-mixes"])
def network(request):
    """An input layer and a model on top of it."""
    layer = InputLayer([random_elmo()], InputSettings(output_mix=request.param)).eval()
    torch.manual_seed(0)
    return layer, Model(Settings(hidden=8), (), layer.widths).eval()


def inputs_of(layer, items):
    return layer([sentence for item in items for sentence in item.sentences])


class TestAttentionFlow:
    def test_equal_to_a_plain_loop(self):
        contexts, questions = [5, 2, 1], [3, 4, 0]
        torch.manual_seed(0)
        flow = AttentionFlow(4)
        (h, mask), (u, asked_mask) = random_inputs(contexts, seed=1), random_inputs(questions, seed=2)
        found = flow(h, mask, u, asked_mask)
        for row, (tokens, words) in enumerate(zip(contexts, questions, strict=True)):
            v, w, z = flow.context.weight[0], flow.question.weight[0], flow.both
            likeness = [
                [(v @ h[row, t] + w @ u[row, j] + z @ (h[row, t] * u[row, j])).item() for j in range(words)]
                for t in range(tokens)
            ]
            best = [math.exp(max(scores)) for scores in likeness if scores]
            to_context = sum((weight / sum(best) * h[row, t] for t, weight in enumerate(best)), torch.zeros(4))
            for t, scores in enumerate(likeness):
                total = sum(map(math.exp, scores))
                to_question = sum((math.exp(s) / total * u[row, j] for j, s in enumerate(scores)), torch.zeros(4))
                expected = torch.cat([h[row, t], to_question, h[row, t] * to_question, h[row, t] * to_context])
                torch.testing.assert_close(found[row, t], expected)


class TestSpans:
    @pytest.mark.parametrize("longest", [1, 2, 5, 9, 1000])
    def test_the_best_is_that_of_all(self, longest):
        generator = torch.Generator().manual_seed(longest)
        start, end = (torch.randn(50, 9, generator=generator) for _ in range(2))
        for row, span in enumerate(best_spans(start, end, longest=longest)):
            spans = [
                Span(first, after) for first in range(9) for after in range(first + 1, min(9, first + longest) + 1)
            ]
            assert span == max(spans, key=lambda one, row=row: start[row, one.start] + end[row, one.end - 1])

    def test_never_in_the_padding(self, network):
        layer, model = network
        items = [item("Who?", "Short ."), item("Who?", "long " * 60)]
        start, end = model.pointers(inputs_of(layer, items))
        torch.testing.assert_close(start.exp().sum(dim=1), torch.ones(2))
        assert not start[0, 2:].exp().any()
        assert not end[0, 2:].exp().any()
        assert best_spans(start, end, longest=20)[0].end <= 2

    def test_tokens_of_characters(self):
        shuffle = random.Random(0)
        tokens = CUT(CONTEXT)
        for _ in range(300):
            start, end = sorted(shuffle.sample(range(len(CONTEXT) + 1), 2))
            wanted = [place for place, token in enumerate(tokens) if token.start < end and token.end > start]
            found = covered(tokens, start, end)
            assert list(range(*found)) == wanted

    def test_nothing_but_blanks(self):
        assert covered([Token("a", 0, 1), Token("b", 4, 5)], 1, 3) == (1, 1)
        assert covered([], 0, 3) == (0, 0)


class TestModel:
    def test_loss_counts_every_answer(self, network):
        layer, model = network
        items = [
            item("Where?", CONTEXT, "Derbyshire", "Derbyshire (near the Peak)", "Derbyshire"),
            item("Who?", "It", "It"),
        ]
        inputs = inputs_of(layer, items)
        start, end = (scores.detach() for scores in model.pointers(inputs))
        tokens = [token.text for token in CUT(CONTEXT)]
        first, last, later = (tokens.index(word) for word in ("Derbyshire", "Derbyshire", ")"))
        likelihood = sum(math.exp(start[0, first] + end[0, place]) for place in (last, later))
        assert model.loss(inputs, items).item() == pytest.approx(-math.log(likelihood) / 2, rel=1e-5)

    def test_batch_mates_change_nothing(self, network):
        layer, model = network
        items = [item("Who is it?"), item("why " * 30, "Nobody knows."), item("", "No question"), item("x", "y " * 99)]
        together = model.pointers(inputs_of(layer, items))
        for row, one in enumerate(items):
            alone = model.pointers(inputs_of(layer, [one]))
            for ours, theirs in zip(alone, together, strict=True):
                width = len(one.sentences[0])
                torch.testing.assert_close(ours[0, :width], theirs[row, :width], atol=1e-5, rtol=0)

    def test_answers_are_pieces_of_the_context(self, network):
        layer, model = network
        items = [
            item("Who?"),
            item("", "🎉  今天天气 很好 "),
            item("Who?", ""),
            item("", ""),
            item("Who?", " \n"),
            item("a", "b"),
        ]
        for question in model.predict(inputs_of(layer, items), items):
            for answer in question.answers:
                assert answer.text.strip() == answer.text != ""
                assert question.context[answer.start : answer.end] == answer.text
            assert len(question.answers) == bool(question.context.strip())

    def test_learning_from_an_empty_question(self, network):
        layer, model = network
        items = [item("", "It is so .", "so")]
        model.loss(inputs_of(layer, items), items).backward()
        assert all(weight.grad.isfinite().all() for weight in model.parameters())

    @pytest.mark.parametrize("settings", [{"hidden": 0}, {"longest": 0}, {"dropout": -0.1}])
    def test_settings_out_of_range(self, settings):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            Settings(**settings)


class TestData:
    def test_a_context_is_embedded_once(self, tmp_path):
        told = Told()
        questions = [asked(f"Question {number} ?", CONTEXT, "London") for number in range(5)]
        options = FitOptions(training=FitSettings(epochs=2, patience=2))
        fit("span_qa", questions, questions[:1], {"elmo": random_elmo()}, tmp_path / "task", options, progress=told)
        tokens = len(CUT(CONTEXT)) + 5 * 3
        assert ("computing layers", tokens, tokens) in told.updates

    @pytest.mark.parametrize("name", ["squadshifts/dev.json", "xquad/zh.json"])
    def test_gold_answers_are_found_again(self, shared_data, name):
        """In Chinese an answer may end within a token of the words tokenizer, but not in its characters."""
        questions = read("span_qa", shared_data / "qa" / name)
        cut = get_tokenizer("characters" if "zh" in name else "words")
        found = []
        for question in questions:
            tokens, spans = prepare(question, cut).extra
            start, end = tokens[spans[0].start].start, tokens[spans[0].end - 1].end
            assert question.answers[0].text in question.context[start:end]
            found.append(replace(question, answers=(Answer(question.context[start:end], start),)))
        assert score(questions, found)["f1"] > 0.98

    def test_an_answer_without_tokens(self):
        question = Question("q", "Where?", "a  b", (Answer(" ", 1),), Place("some.json", 3, "question 'q'"))
        with pytest.raises(DataError, match="some.json, line 3, question 'q': none of its answers has a token"):
            prepare(question, CUT)

    def test_scores(self):
        gold = [asked("Where?", CONTEXT, "Derbyshire", "the Peak"), asked("Who?", CONTEXT, "Mr. Darcy")]
        right = [asked("Where?", CONTEXT, "Peak"), asked("Who?", CONTEXT, "Darcy")]
        assert score(gold, right) == {"f1": pytest.approx((1 + 2 / 3) / 2), "exact": 0.5}
        assert score(gold, [asked("Where?", "")] * 2) == {"f1": 0, "exact": 0}

    def test_ways_to_ask(self):
        for values in ({"id": 7, "question": "Who?", "context": "He."}, {"text": "Who?\tHe."}):
            question = TASK.parse(values, CUT)
            assert (question.question, question.context, question.answers) == ("Who?", "He.", ())
        with pytest.raises(DataError, match='expected a JSON object with "question" and "context"'):
            TASK.parse({"text": "Who?"}, CUT)

    def test_an_answer_elsewhere_is_refused(self, tmp_path):
        answers = [{"text": "b", "answer_start": 0}]
        paragraph = {"context": "a b", "qas": [{"id": "q", "question": "?", "answers": answers}]}
        (tmp_path / "dev.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
        with pytest.raises(DataError, match=r"dev.json, line 1, question 'q': answer_start is 0"):
            read("span_qa", tmp_path / "dev.json")
