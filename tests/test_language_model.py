"""The joint objective: what it is of a text, and that the training step's fast form is the same."""

from dataclasses import replace

import pytest
import torch
from conftest import CONFIGS, SENTENCES, VOCABULARY

from elmokit.config import SoftmaxConfig
from elmokit.model.bilm import State
from elmokit.model.language_model import LanguageModel, Step
from elmokit.model.tokens import as_tensors
from elmokit.text.words import WordEncoder

KINDS = ("full", "sampled", "adaptive")
CELLS = ("lstm", "gru")
SIZE = len(VOCABULARY)
T, B, U = 6, 4, 9  # steps, streams, distinct words
EXACT = {"rtol": 1e-10, "atol": 1e-10}  # double precision, sums in another order
CLOSE = {"rtol": 1e-4, "atol": 1e-4}  # single precision, as the compiled kernels have it: gradients go up to 30
CONFIG = replace(CONFIGS["frequent_words_and_characters"], cell_clip=0.5, projection_clip=0.4)  # where both bite


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(1)


def make_model(kind: str = "full", cell: str = "lstm", **changes) -> LanguageModel:
    softmax = SoftmaxConfig(kind=kind, size=SIZE, samples=8, cutoffs=(5, 20))
    model = LanguageModel(replace(CONFIG, cell=cell, softmax=softmax, **changes)).double()
    generator = torch.Generator().manual_seed(1)
    for weight in model.parameters():
        weight.data.normal_(std=0.5, generator=generator)
    return model


def token_vectors(model: LanguageModel, words, *, plain: bool):
    return model.bilm.tokens(*as_tensors(WordEncoder(model.config, VOCABULARY).encode(words)), plain=plain)


def make_steps(*, reset: bool) -> tuple[Step, Step]:
    """Anew at each call, for their generators move on."""
    generator = torch.Generator().manual_seed(2)

    def draw(low: int, high: int) -> torch.Tensor:
        return torch.randint(low, high, (T, B), generator=generator)

    seeded = [torch.Generator().manual_seed(seed) for seed in range(4)]
    forward, backward = (
        Step(draw(0, U), draw(-1, SIZE), draw(0, 3) if reset else None, *seeded[2 * direction : 2 * direction + 2])
        for direction in range(2)
    )
    return forward, backward


def make_state(model: LanguageModel):
    generator = torch.Generator().manual_seed(3)
    zero = model.bilm.zero_state(B)
    return type(zero)(*(torch.randn(part.shape, generator=generator, dtype=torch.float64) * 0.3 for part in zero))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["64 bits", "32 bits"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_training_step_is_the_joint_objective(kind, cell, dropout, dtype, threads):
    """In 64 bits by torch's own operations, in 32 by compiled kernels where there are any; the objective is exact."""
    plain, fast = make_model(kind, cell), make_model(kind, cell).to(dtype)
    for reset in (True, False):
        vectors = token_vectors(plain, VOCABULARY.words[:U], plain=True)
        loss = plain.loss(vectors, make_steps(reset=reset), make_state(plain), dropout=dropout)
        (0.7 * loss).backward()
        vectors = token_vectors(fast, VOCABULARY.words[:U], plain=False)
        state = State(*(part.to(dtype) for part in make_state(fast)))
        results, _ = fast.backpropagate(vectors, make_steps(reset=reset), state, dropout=dropout, scale=0.7)
        accuracy = 1e-12 if dtype == torch.float64 else 1e-6
        assert sum(result.loss for result in results) == pytest.approx(loss.item(), rel=accuracy)
    for (name, weight), other in zip(plain.named_parameters(), fast.parameters(), strict=True):
        assert weight.grad.any(), name
        assert other.grad.dtype == dtype
        close = EXACT if dtype == torch.float64 else CLOSE
        torch.testing.assert_close(other.grad.double(), weight.grad, **close, msg=name)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_the_objective_of_sentences_is_minus_their_log_likelihood(kind, cell, residual):
    """Read as a stream of text whose state starts anew, and as sentences by the model that gives vectors."""
    model = make_model(kind, cell, residual=residual)
    lengths = [len(sentence) + 2 for sentence in SENTENCES[:2]]
    order = sorted(range(2), key=lambda row: -lengths[row])
    words = [word for row in order for word in ("<S>", *SENTENCES[row], "</S>")]
    x, ids = token_vectors(model, words, plain=True), torch.from_numpy(VOCABULARY.encode(words))
    layers, _ = model.bilm(x, [lengths[row] for row in order])
    expected = model.log_likelihoods(layers[-1], ids, [lengths[row] for row in order])
    assert [len(part) for part in expected] == [len(words) - 2] * 2
    steps = []
    for forward in (True, False):
        reading = torch.arange(len(words)) if forward else torch.arange(len(words)).flip(0)
        begins = ids[reading] == (0 if forward else 1)
        last = begins.roll(-1)  # the end of a sentence predicts nothing
        targets = torch.where(last, -1, ids[reading].roll(-1))
        steps.append(Step(reading[:, None], targets[:, None], ~begins[:, None], torch.Generator(), torch.Generator()))
    loss = model.loss(x, tuple(steps), model.bilm.zero_state(1))
    torch.testing.assert_close(loss, -sum(part.sum() for part in expected), **EXACT)


def test_frozen_weights_get_no_gradient():
    model = make_model()
    model.bilm.requires_grad_(False)
    vectors = token_vectors(model, VOCABULARY.words[:U], plain=False)
    model.backpropagate(vectors, make_steps(reset=True), make_state(model), dropout=0.0, scale=1.0)
    assert {name.partition(".")[0] for name, weight in model.named_parameters() if weight.grad is not None} == {
        "softmax"
    }


@pytest.mark.parametrize("cell", CELLS)
def test_under_autocast_the_loss_is_close_and_gradients_are_in_32_bits(cell):
    exact, rough = make_model(cell=cell).float(), make_model(cell=cell).float()
    found = []
    for model in (exact, rough):
        vectors = token_vectors(model, VOCABULARY.words[:U], plain=False)
        state = type(make_state(model))(*(part.float() for part in make_state(model)))
        results, last = model.backpropagate(
            vectors, make_steps(reset=True), state, dropout=0.0, scale=1.0, autocast=model is rough
        )
        assert last.h.dtype == last.c.dtype == torch.float32
        assert {weight.grad.dtype for weight in model.parameters()} == {torch.float32}
        found.append(sum(result.loss for result in results))
    assert found[1] == pytest.approx(found[0], rel=0.02)  # bfloat16 has 8 bits
    assert found[0] != found[1]
