import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.config import SoftmaxConfig
from elmokit.errors import ConfigError, DataError
from elmokit.model import softmax as softmax_module
from elmokit.model.softmax import (
    AdaptiveSoftmax,
    FullSoftmax,
    SampledSoftmax,
    draw_sample,
    log_expected_count,
    make_softmax,
)

V, P, N = 23, 8, 11
CUTOFFS = (5, 12)
KINDS = ("full", "sampled", "adaptive")
CONFIGS = {kind: SoftmaxConfig(kind=kind, size=V, samples=7, cutoffs=CUTOFFS) for kind in KINDS}


def make(kind: str, dtype: torch.dtype = torch.float64) -> FullSoftmax | SampledSoftmax | AdaptiveSoftmax:
    """Biases included, every weight is random."""
    softmax = make_softmax(CONFIGS[kind], P).to(dtype)
    generator = torch.Generator().manual_seed(1)
    for weight in softmax.parameters():
        weight.data.normal_(generator=generator)
    return softmax


def rows(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Outputs and targets, some of them the first and last word of a cluster."""
    generator = torch.Generator().manual_seed(2)
    h = torch.randn(N, P, generator=generator).to(dtype).requires_grad_()
    return h, torch.tensor([0, 4, 5, 11, 12, V - 1, 3, 3, 17, 8, 0])


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def plain_full(softmax: FullSoftmax, h: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(h @ softmax.weight.t() + softmax.bias, targets, reduction="sum")


def plain_sampled(softmax: SampledSoftmax, h: Tensor, targets: Tensor) -> Tensor:
    """Row by row, as TensorFlow's sampled_softmax_loss is defined."""
    words, tries = draw_sample(V, softmax.samples, seeded())
    p = [(math.log(k + 2) - math.log(k + 1)) / math.log(V + 1) for k in range(V)]
    correction = torch.tensor([math.log(1 - (1 - q) ** tries) for q in p], dtype=h.dtype)
    logits = h @ softmax.weight.t() + softmax.bias - correction
    candidates = [[t, *(k for k in words.tolist() if k != t)] for t in targets.tolist()]
    losses = [row[own].logsumexp(0) - row[own[0]] for row, own in zip(logits, candidates, strict=True)]
    return torch.stack(losses).sum()


def plain_adaptive(softmax: AdaptiveSoftmax, h: Tensor, targets: Tensor) -> Tensor:
    head = (h @ softmax.head.weight.t() + softmax.head.bias).log_softmax(-1)
    loss = h.new_zeros(())
    for row, (output, target) in enumerate(zip(h, targets.tolist(), strict=True)):
        cluster = sum(target >= cutoff for cutoff in CUTOFFS) - 1
        if cluster < 0:
            loss = loss - head[row, target]
            continue
        tail = softmax.tails[cluster]
        logits = tail.weight @ (softmax.projections[cluster].weight @ output) + tail.bias
        loss = loss - head[row, CUTOFFS[0] + cluster] - logits.log_softmax(-1)[target - CUTOFFS[cluster]]
    return loss


PLAIN = {"full": plain_full, "sampled": plain_sampled, "adaptive": plain_adaptive}


def with_gradients(loss: Tensor, softmax: nn.Module, h: Tensor) -> list[Tensor]:
    return [loss, *torch.autograd.grad(loss * 0.7, [h, *softmax.parameters()])]


@pytest.fixture(params=[1, 3, N, 10 * N], ids="{} rows a chunk".format)
def any_chunks(request, monkeypatch):
    monkeypatch.setattr(softmax_module, "CHUNK", 1)
    monkeypatch.setattr(softmax_module, "LEAST_ROWS", request.param)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradients_are_those_of_the_plain_formula(kind, any_chunks):
    softmax, (h, targets) = make(kind), rows()
    found = with_gradients(softmax.loss(h, targets, seeded()), softmax, h)
    expected = with_gradients(PLAIN[kind](softmax, h, targets), softmax, h)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_packages_own_plain_form_is_that_formula(kind):
    softmax, (h, targets) = make(kind), rows()
    found = with_gradients(softmax.loss(h, targets, seeded(), plain=True), softmax, h)
    expected = with_gradients(PLAIN[kind](softmax, h, targets), softmax, h)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_in_single_precision_too(kind):
    softmax, (h, targets) = make(kind, torch.float32), rows(torch.float32)
    found = with_gradients(softmax.loss(h, targets, seeded()), softmax, h)
    expected = with_gradients(PLAIN[kind](softmax, h, targets), softmax, h)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)  # sums of tens of terms rounded at 6e-8


@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck(kind):
    softmax, (h, targets) = make(kind), rows()

    def loss(h: Tensor, *weights: Tensor) -> Tensor:  # the weights are changed in place, where the softmax sees it
        return softmax.loss(h, targets, seeded())

    assert torch.autograd.gradcheck(loss, [h, *softmax.parameters()])


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_likelihood_is_exact_and_sums_to_one(kind, any_chunks):
    softmax, (h, targets) = make(kind), rows()
    every = torch.stack([softmax.log_likelihood(h, torch.full((N,), word)) for word in range(V)], dim=1)  # (N, V)
    torch.testing.assert_close(every.exp().sum(dim=1), torch.ones(N, dtype=torch.float64))
    torch.testing.assert_close(every, softmax.log_probabilities(h))
    found = softmax.log_likelihood(h, targets)
    assert not found.requires_grad
    plain = plain_adaptive if kind == "adaptive" else plain_full
    torch.testing.assert_close(-found.sum(), plain(softmax, h, targets))


@pytest.mark.parametrize("kind", KINDS)
def test_logits_beyond_what_exp_can_hold(kind):
    softmax, (h, targets) = make(kind, torch.float32), rows(torch.float32)
    h = (300 * h).detach().requires_grad_()
    loss = softmax.loss(h, targets, seeded())
    torch.testing.assert_close(loss, PLAIN[kind](softmax, h, targets))
    assert all(gradient.isfinite().all() for gradient in with_gradients(loss, softmax, h))
    assert softmax.log_likelihood(h, targets).isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows(kind):
    softmax, (h, targets) = make(kind), rows()
    loss = softmax.loss(h[:0], targets[:0])
    assert loss == 0
    assert not any(gradient.any() for gradient in torch.autograd.grad(loss, list(softmax.parameters())))
    assert softmax.log_likelihood(h[:0], targets[:0]).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [-1, V])
def test_a_target_outside_the_vocabulary_is_named(kind, wrong):
    softmax, (h, targets) = make(kind), rows()
    targets[4] = wrong
    for call in (softmax.loss, softmax.log_likelihood):
        with pytest.raises(DataError, match=f"target {wrong} .* from 0 to {V - 1}"):
            call(h, targets)


@pytest.mark.parametrize("kind", KINDS)
def test_under_autocast_the_loss_keeps_its_precision(kind):
    softmax, (h, targets) = make(kind, torch.float32), rows(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = softmax.loss(h.bfloat16(), targets, seeded())
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, softmax.loss(h, targets, seeded()), rtol=0.02, atol=0)  # bfloat16 has 8 bits
    loss.backward()
    assert h.grad is not None


def test_the_adaptive_softmax_is_torchs_where_clusters_have_no_bias():
    ours, (h, targets) = make("adaptive"), rows()
    theirs = nn.AdaptiveLogSoftmaxWithLoss(P, V, list(CUTOFFS), div_value=2, head_bias=True).double()
    with torch.no_grad():
        theirs.head.weight.copy_(ours.head.weight)
        theirs.head.bias.copy_(ours.head.bias)
        for (narrow, words), project, tail in zip(theirs.tail, ours.projections, ours.tails, strict=True):
            narrow.weight.copy_(project.weight)
            words.weight.copy_(tail.weight)
            tail.bias.zero_()
    torch.testing.assert_close(ours.log_likelihood(h, targets), theirs(h, targets).output)
    torch.testing.assert_close(ours.log_probabilities(h), theirs.log_prob(h))


@pytest.mark.parametrize("kind", KINDS)
def test_training_makes_the_targets_likely(kind):
    torch.manual_seed(0)
    softmax, (h, targets) = make_softmax(CONFIGS[kind], P), rows(torch.float32)
    optimizer, generator = torch.optim.Adam(softmax.parameters(), lr=0.1), seeded()
    for _ in range(100):
        optimizer.zero_grad()
        softmax.loss(h.detach(), targets, generator).backward()
        optimizer.step()
    assert softmax.log_likelihood(h, targets).exp().min() > 0.5


def test_a_sample_is_distinct_reproducible_and_within_the_vocabulary():
    words, tries = draw_sample(1000, 400, seeded())
    again, tries_again = draw_sample(1000, 400, seeded())
    assert torch.equal(words, again)
    assert tries == tries_again >= 400
    assert len(words.unique()) == len(words) == 400
    assert words.min() >= 0
    assert words.max() < 1000
    assert torch.equal(draw_sample(10, 9, seeded()).words.unique(), draw_sample(10, 9, seeded()).words)


def test_words_are_drawn_as_often_as_the_distribution_says():
    generator, draws = seeded(), 5000
    single = torch.cat([draw_sample(50, 1, generator).words for _ in range(draws)])
    p = torch.log1p(1 / (torch.arange(50.0) + 1)) / math.log(51)
    assert p.sum().item() == pytest.approx(1)
    deviation = (single.bincount(minlength=50) - draws * p) / (draws * p * (1 - p)).sqrt()
    assert deviation.abs().max() < 4  # of 50 normal deviates, one above 4 comes up once in 300 seeds


def test_expected_counts_are_the_frequencies_seen():
    generator, runs = seeded(), 2000
    samples = [draw_sample(50, 20, generator) for _ in range(runs)]
    seen = torch.cat([sample.words for sample in samples]).bincount(minlength=50) / runs
    words = torch.arange(50)
    expected = torch.stack([log_expected_count(words, sample.tries, 50).exp() for sample in samples]).mean(dim=0)
    # the formula treats the number of tries as given, which it is only nearly: TensorFlow's approximation
    assert (seen - expected).abs().max() < 0.03
    assert expected.sum().item() == pytest.approx(20, rel=0.02)


def test_the_last_word_drawn_is_the_one_that_completes_the_sample():
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)
        words, tries = draw_sample(30, 6, generator)
        uniform = torch.rand(1000, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        draws = (torch.exp(uniform * math.log(31)).long() - 1).tolist()
        assert set(draws[:tries]) == set(words.tolist())
        assert draws[tries - 1] not in draws[: tries - 1]


def test_weights_start_as_bilm_tf_starts_them():
    softmax = FullSoftmax(2000, 64)
    assert softmax.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert not softmax.bias.any()


@pytest.mark.parametrize(
    ("kind", "setting", "says"),
    [
        (SampledSoftmax, 0, "samples is 0"),
        (SampledSoftmax, V, f"samples is {V}: .* below the vocabulary's size, {V}"),
        (AdaptiveSoftmax, (), r"cutoffs are \[\]"),
        (AdaptiveSoftmax, (0, 5), r"cutoffs are \[0, 5\]"),
        (AdaptiveSoftmax, (5, 5), r"cutoffs are \[5, 5\]"),
        (AdaptiveSoftmax, (5, V), rf"below the vocabulary's size, {V}"),
    ],
)
def test_bad_settings_are_named(kind, setting, says):
    with pytest.raises(ConfigError, match=says):
        kind(V, P, setting)
    with pytest.raises(ConfigError, match="at least one word"):
        FullSoftmax(0, P)


def test_an_unknown_kind():
    with pytest.raises(ConfigError, match="unknown softmax 'hierarchical'"):
        SoftmaxConfig(kind="hierarchical")


def test_a_small_vocabulary_needs_no_clusters_and_few_samples():
    small = {kind: make_softmax(replace(config, size=5), P) for kind, config in CONFIGS.items()}
    assert {kind: type(softmax) for kind, softmax in small.items()} == {
        "full": FullSoftmax,
        "sampled": SampledSoftmax,
        "adaptive": FullSoftmax,
    }
    assert small["sampled"].samples == 4
    assert make_softmax(replace(CONFIGS["adaptive"], size=12), P).edges == (5, 12)
