"""The conditional random field against all sequences, one by one."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.tasks.crf import Crf, allowed_transitions, mark_spans
from elmokit.tasks.scores import chunks

BIO = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
BIOES = ("B-PER", "E-PER", "I-PER", "O", "S-PER")
SCHEMES = {"bio": BIO, "bioes": BIOES}


def weight(crf: Crf, scores: torch.Tensor, path: tuple[int, ...]) -> float:
    """The score of one sequence, by its definition."""
    stops = [crf.size, *path, crf.size]
    moves = sum(crf.transitions[before, after].item() for before, after in pairwise(stops))
    return moves + sum(scores[step, tag].item() for step, tag in enumerate(path))


def paths(size: int, length: int) -> list[tuple[int, ...]]:
    return list(product(range(size), repeat=length))


def is_allowed(crf: Crf, path: tuple[int, ...]) -> bool:
    stops = [crf.size, *path, crf.size]
    return all(crf.allowed[before, after] for before, after in pairwise(stops))


def random_case(seed: int, size: int, lengths: list[int], allowed: torch.Tensor | None = None, scale: float = 2.0):
    torch.manual_seed(seed)
    crf = Crf(size, allowed).double()
    crf.transitions.data = torch.randn_like(crf.transitions) * scale
    scores = torch.randn(len(lengths), max(1, *lengths), size, dtype=torch.float64) * scale
    mask = torch.arange(scores.shape[1]) < torch.tensor(lengths)[:, None]
    return crf, scores, mask


@given(st.integers(0, 1000), st.integers(1, 4), st.lists(st.integers(0, 4), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_likelihood_is_that_of_all_sequences(seed, size, lengths):
    crf, scores, mask = random_case(seed, size, lengths)
    tags = torch.randint(size, mask.shape)
    expected = []
    for row, length in enumerate(lengths):
        weights = torch.tensor([weight(crf, scores[row], path) for path in paths(size, length)], dtype=torch.float64)
        expected.append(
            torch.logsumexp(weights, 0).item() - weight(crf, scores[row], tuple(tags[row, :length].tolist()))
        )
    assert crf.loss(scores, tags, mask).item() == pytest.approx(sum(expected) / len(expected), abs=1e-9)


@given(st.integers(0, 1000), st.sampled_from(sorted(SCHEMES)), st.lists(st.integers(0, 4), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_the_best_sequence_is_the_best_of_those_allowed(seed, scheme, lengths):
    labels = SCHEMES[scheme]
    crf, scores, mask = random_case(seed, len(labels), lengths, allowed_transitions(labels))
    for row, (length, found) in enumerate(zip(lengths, crf.decode(scores, mask), strict=True)):
        allowed = [path for path in paths(len(labels), length) if is_allowed(crf, path)]
        assert tuple(found) == max(allowed, key=lambda path: weight(crf, scores[row], path))


def test_without_rules_the_best_of_all():
    crf, scores, mask = random_case(1, 3, [5, 2])
    for row, (length, found) in enumerate(zip([5, 2], crf.decode(scores, mask), strict=True)):
        assert tuple(found) == max(paths(3, length), key=lambda path: weight(crf, scores[row], path))


@given(st.integers(0, 1000), st.sampled_from(sorted(SCHEMES)), st.floats(0.1, 1e6))
@settings(max_examples=40, deadline=None)
def test_rules_are_never_broken(seed, scheme, scale):
    """However much the scores speak for it: read strictly, the tags mark the same spans as read loosely."""
    labels = SCHEMES[scheme]
    crf, scores, mask = random_case(seed, len(labels), [1, 7, 30], allowed_transitions(labels), scale)
    for row in crf.decode(scores, mask):
        tags = [labels[number] for number in row]
        assert chunks(tags, scheme=scheme) == chunks(tags)


def test_rules():
    allowed = allowed_transitions(BIO)
    may = {(before, after) for before in range(6) for after in range(6) if allowed[before, after]}
    names = [*BIO, "bound"]
    followed = {names[after] for before, after in may if names[before] == "B-PER"}
    assert followed == {"B-LOC", "B-PER", "I-PER", "O", "bound"}
    first = {names[after] for before, after in may if names[before] == "bound"}
    assert first == {"B-LOC", "B-PER", "O", "bound"}
    ends = allowed_transitions(BIOES)
    assert {BIOES[after] for after in range(5) if ends[BIOES.index("B-PER"), after]} == {"I-PER", "E-PER"}
    assert not ends[BIOES.index("I-PER"), 5]
    assert allowed_transitions(("NOUN", "VERB")).all()
    assert mark_spans(BIO)
    assert not mark_spans(("NOUN", "O"))


def test_what_batch_mates_have_changes_nothing():
    crf, scores, mask = random_case(3, 4, [6, 2, 3])
    tags = torch.randint(4, mask.shape)
    alone = [
        crf.loss(scores[row : row + 1, :length], tags[row : row + 1, :length], mask[row : row + 1, :length])
        for row, length in enumerate([6, 2, 3])
    ]
    torch.testing.assert_close(crf.loss(scores, tags, mask), torch.stack(alone).mean())


def test_gradients():
    crf, scores, mask = random_case(4, 3, [4, 1, 0])
    tags = torch.randint(3, mask.shape)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda given: crf.loss(given, tags, mask), scores)
    crf.loss(scores, tags, mask).backward()
    assert not scores.grad[~mask].any()
