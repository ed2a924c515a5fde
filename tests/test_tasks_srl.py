"""Semantic roles: the rules of tags, one run a predicate, and what stands beside a sentence does not matter."""

from dataclasses import replace
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from elmokit.errors import ConfigError, DataError
from elmokit.tasks import read, srl
from elmokit.tasks.examples import Frame, LabelledSpan, Place, RoleSentence
from elmokit.tasks.scores import chunks, to_bio
from elmokit.tasks.task import Inputs, Item, Widths
from elmokit.text.tokenizers import get_tokenizer

WIDTH = 6
CUT = get_tokenizer("whitespace")


def sentence(length: int, *predicates: int) -> RoleSentence:
    """Each predicate with what stands to its left and to its right."""
    frames = []
    for predicate in predicates:
        spans = [LabelledSpan(predicate, predicate + 1, "V")]
        spans += [LabelledSpan(0, predicate, "A0")] if predicate else []
        spans += [LabelledSpan(predicate + 1, length, "A1")] if predicate + 1 < length else []
        frames.append(Frame(predicate, tuple(sorted(spans))))
    return RoleSentence(tuple("abcdefgh"[number % 8] for number in range(length)), tuple(frames), Place("some", 3))


def new_model(*, labels=("A0", "A1", "V"), output: int = 0, scale: float = 1.0, **values) -> srl.Model:
    chosen = srl.Settings(**({"hidden": 5, "dropout": 0.0, "mark": 3} | values))
    model = srl.Model(chosen, labels, Widths(WIDTH, output)).double().eval()
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data = torch.randn_like(weight) * scale
    return model


def batch(examples: list[RoleSentence], *, longer: int = 0, output: int = 0) -> tuple[Inputs, list[Item]]:
    """Vectors that depend on a token and its place alone, with as many steps more as asked for."""
    items = [srl.TASK.prepare(example, CUT) for example in examples]
    lengths = [len(example.tokens) for example in examples]
    mask = torch.arange(max(1, *lengths) + longer) < torch.tensor(lengths)[:, None]
    generator = torch.Generator().manual_seed(1)
    vectors = torch.randn(1, 600, WIDTH + output, dtype=torch.float64, generator=generator)[:, : mask.shape[1]]
    vectors = vectors * mask[..., None]
    return Inputs(vectors[..., :WIDTH], mask, vectors[..., WIDTH:] if output else None), items


@given(st.integers(0, 1000), st.integers(1, 3), st.data())
@settings(max_examples=30, deadline=None)
def test_the_best_tags_are_the_best_of_those_allowed(seed, length, data):
    torch.manual_seed(seed)
    model, predicate = new_model(labels=("A0",), scale=2.0), data.draw(st.integers(0, length - 1))
    inputs, _ = batch([sentence(length, predicate)])
    scores = model.scores(inputs, [(0, predicate)])[0].log_softmax(dim=-1)
    allowed = [path for path in product(model.tags, repeat=length) if keeps_the_rules(path, predicate)]
    chosen = scores.tolist()
    expected = max(allowed, key=lambda path: sum(row[model.ids[tag]] for row, tag in zip(chosen, path, strict=True)))
    assert model.decode(inputs, [(0, predicate)]) == [list(expected)]


def keeps_the_rules(path: tuple[str, ...], predicate: int) -> bool:
    """An I- continues what stands before it, and the predicate alone begins a V."""
    continues = all(after[0] != "I" or before[1:] == after[1:] for before, after in pairwise(("O", *path)))
    return continues and [step for step, tag in enumerate(path) if tag == "B-V"] == [predicate]


@given(st.integers(0, 1000), st.lists(st.integers(1, 9), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_rules_are_never_broken(seed, lengths):
    torch.manual_seed(seed)
    model = new_model(scale=3.0)
    examples = [sentence(length, *range(length)) for length in lengths]
    inputs, items = batch(examples)
    runs = [(row, token) for row, length in enumerate(lengths) for token in range(length)]
    for (_, predicate), tags in zip(runs, model.decode(inputs, runs), strict=True):
        assert keeps_the_rules(tuple(tags), predicate)
        assert chunks(tags) == chunks(tags, scheme="bio")
    for answer in model.predict(inputs, items):
        assert [frame.predicate for frame in answer.frames] == list(range(len(answer.tokens)))
        for frame in answer.frames:
            assert all(before.end <= after.start for before, after in pairwise(frame.spans))
            assert to_bio(frame.spans, len(answer.tokens))[frame.predicate] == "B-V"


def test_the_loss_is_the_mean_over_all_tokens_of_all_runs():
    torch.manual_seed(0)
    model = new_model()
    examples = [sentence(4, 1, 3), sentence(2), sentence(3, 0)]
    inputs, items = batch(examples)
    tags, found = [], []
    for row, example in enumerate(examples):
        for step in range(len(example.tokens)):
            is_predicate = step in [frame.predicate for frame in example.frames]
            found.append(F.logsigmoid(model.finder(inputs.vectors[row, step]) * (1 if is_predicate else -1)))
        for frame in example.frames:
            chosen = model.scores(inputs, [(row, frame.predicate)])[0].log_softmax(dim=-1)
            gold = to_bio(frame.spans, len(example.tokens))
            tags += [chosen[step, model.ids[tag]] for step, tag in enumerate(gold)]
    expected = -torch.stack(tags).mean() - torch.stack(found).mean()
    assert len(tags) == 4 + 4 + 3
    assert model.loss(inputs, items).item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("output", [0, 4])
def test_padding_and_batch_mates_change_nothing(output):
    torch.manual_seed(0)
    model = new_model(output=output)
    examples = [sentence(5, 0, 3), sentence(8, 7), sentence(1, 0), sentence(0)]
    inputs, items = batch(examples, longer=4, output=output)
    together = model.predict(inputs, items)
    for row, example in enumerate(examples):
        alone, item = batch([example], output=output)
        assert model.predict(alone, item) == [together[row]]
        if example.frames:
            run = example.frames[0].predicate
            length = len(example.tokens)
            scores = model.scores(inputs, [(row, run)])[0, :length]
            assert torch.allclose(scores, model.scores(alone, [(0, run)])[0], atol=1e-12)


def test_the_mark_tells_predicates_apart():
    torch.manual_seed(0)
    inputs, _ = batch([sentence(5)])
    one, other = new_model().scores(inputs, [(0, 1), (0, 2)])
    assert not torch.allclose(one, other, atol=1e-3)


def test_many_predicates_are_answered_as_one_by_one():
    torch.manual_seed(0)
    model, example = new_model(), sentence(300, *range(0, 300, 4))
    assert len(example.tokens) * len(example.frames) > srl.TOKENS_AT_A_TIME
    (answer,) = model.predict(*batch([example]))
    for frame in answer.frames[::20]:
        (alone,) = model.predict(*batch([sentence(300, frame.predicate)]))
        assert alone.frames == (frame,)


def test_a_batch_without_predicates_can_be_learned_from():
    model = new_model().train()
    inputs, items = batch([sentence(3), sentence(0)])
    model.loss(inputs, items).backward()
    assert model.finder.weight.grad.abs().sum() > 0
    nothing, items = batch([sentence(0)])
    assert model.loss(nothing, items).item() == 0


def test_predicates_are_found_where_none_are_given():
    model = new_model()
    model.finder.weight.data.zero_()
    model.finder.weight.data[0, 0] = 1.0
    model.finder.bias.data.zero_()
    inputs, items = batch([sentence(8), sentence(8, 2)])
    found, given_ = model.predict(inputs, items)
    expected = [step for step in range(8) if inputs.vectors[0, step, 0] > 0]
    assert [frame.predicate for frame in found.frames] == expected != []
    assert [frame.predicate for frame in given_.frames] == [2]


def test_roles_that_continue_or_refer_need_not_be_known():
    spans = (LabelledSpan(0, 1, "C-A0"), LabelledSpan(1, 2, "V"), LabelledSpan(2, 3, "R-A1"), LabelledSpan(3, 4, "A0"))
    example = replace(sentence(4), frames=(Frame(1, spans),))
    assert [label for label, _ in srl.labels(example)] == ["A0", "V", "A1", "A0"]
    assert {place for _, place in srl.labels(example)} == {Place("some", 3)}
    assert new_model().loss(*batch([example])).isfinite()


def test_a_role_that_has_two_prefixes_makes_no_tag_twice():
    """C-R-A1 is what continues R-A1, and R-A1 is a tag of A1 already."""
    tags = new_model(labels=("A1", "R-A1", "V")).tags
    assert "B-C-R-A1" in tags
    assert len(set(tags)) == len(tags)


def test_the_score_counts_arguments_of_gold_predicates():
    gold = [sentence(4, 1), sentence(3)]
    wrong = Frame(1, (LabelledSpan(0, 1, "A0"), LabelledSpan(1, 2, "V")))
    predicted = [replace(gold[0], frames=(wrong,)), sentence(3, 0)]  # found in the second, where there is none
    assert srl.score(gold, predicted) == {"f1": pytest.approx(2 / 3), "precision": 1.0, "recall": 0.5}


def test_parse():
    example = srl.parse({"tokens": ["Dogs", "bark"], "predicates": [1]}, CUT)
    assert example == RoleSentence(("Dogs", "bark"), (Frame(1, ()),), Place("", 0))
    assert srl.parse({"text": "Dogs bark"}, CUT) == RoleSentence(("Dogs", "bark"), (), Place("", 0))
    for predicates in ([2], [-1], ["1"], 1, [True], [0.0], {"0": 1}):
        with pytest.raises(DataError, match='"predicates" is .*: expected a list of positions from 0, of 2 tokens'):
            srl.parse({"text": "Dogs bark", "predicates": predicates}, CUT)
    with pytest.raises(DataError, match="expected a JSON object"):
        srl.parse({"predicates": []}, CUT)


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="mark is 0"):
        srl.Settings(mark=0)
    with pytest.raises(ConfigError, match="hidden is 0"):
        srl.Settings(hidden=0)


def test_propbank_fits_the_model(shared_data):
    folder = shared_data / "srl" / "ewt"
    known = {label for example in read("srl", folder / "train.conll") for label, _ in srl.labels(example)}
    for name in ("dev", "test"):
        examples = read("srl", folder / f"{name}.conll")
        assert {label for example in examples for label, _ in srl.labels(example)} <= known
        assert srl.score(examples, examples)["f1"] == 1.0
        ids = srl.Model(srl.Settings(), sorted(known), Widths(WIDTH)).ids
        for example in examples:
            for frame in example.frames:
                assert set(to_bio(frame.spans, len(example.tokens))) <= set(ids)
