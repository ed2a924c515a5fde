import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from elmokit.config import ModelConfig, WordConfig
from elmokit.model.fused import kernels_for
from elmokit.model.recurrent import RecurrentLayer, lstm_stream, plain_stream

WORDS = WordConfig(size=1, dim=1)
SETTINGS = {
    "projected": {"hidden": 5, "projection": 3},
    "clips_bite": {"hidden": 5, "projection": 3, "cell_clip": 0.4, "projection_clip": 0.1, "forget_bias": 1.0},
    "no_clips": {"hidden": 5, "projection": 3, "cell_clip": None, "projection_clip": None, "forget_bias": 1.0},
    "infinite_clips": {"hidden": 5, "projection": 3, "cell_clip": float("inf"), "projection_clip": float("inf")},
    "no_projection": {"hidden": 4, "projection": 4, "cell_clip": 0.4},
    "no_projection_no_clip": {"hidden": 4, "projection": 4, "cell_clip": None, "projection_clip": None},
}
T, B, INPUT = 5, 3, 2
KEEP = torch.tensor([[1, 0, 1], [1, 1, 1], [0, 1, 1], [0, 1, 0], [1, 1, 0]])


def make_layer(name: str, *, cell: str = "lstm", dtype: torch.dtype = torch.float64) -> RecurrentLayer:
    generator = torch.Generator().manual_seed(1)
    layer = RecurrentLayer(INPUT, ModelConfig(words=WORDS, cell=cell, **SETTINGS[name])).to(dtype)
    for weight in layer.parameters():
        weight.data.normal_(generator=generator)
    return layer


def make_inputs(layer: RecurrentLayer) -> list[Tensor]:
    """x, h and c, as if in the middle of a text: with gradients, to see that those of the state are right too."""
    generator = torch.Generator().manual_seed(2)
    shapes = (T, B, INPUT), (B, layer.output_size), (B, layer.hidden)
    return [torch.randn(shape, generator=generator).to(layer.weight).requires_grad_() for shape in shapes]


def plain_loop(layer: RecurrentLayer, x: Tensor, h: Tensor, c: Tensor, keep: Tensor | None):
    outputs = []
    for t in range(len(x)):
        if keep is not None:
            h, c = h * keep[t, :, None], c * keep[t, :, None]
        gates = F.linear(x[t], layer.weight[:, : layer.input_size], layer.gate_bias())
        h, c = layer.step(gates, layer.weight[:, layer.input_size :], h, c)
        outputs.append(h)
    return torch.stack(outputs), h, c


def results_and_gradients(run, layer: RecurrentLayer, keep: Tensor | None) -> list[Tensor]:
    inputs = make_inputs(layer)
    results = run(layer, *inputs, keep)
    loss = sum((result * torch.linspace(-1, 2, result.numel()).view_as(result)).sum() for result in results)
    return [*results, *torch.autograd.grad(loss, [*inputs, *layer.parameters()])]


@pytest.mark.parametrize("keep", [None, KEEP, KEEP.bool(), KEEP.double()], ids=["none", "int", "bool", "float"])
@pytest.mark.parametrize("name", SETTINGS)
def test_outputs_states_and_gradients_are_those_of_the_plain_loop(name, keep):
    layer = make_layer(name)
    found, expected = (results_and_gradients(run, layer, keep) for run in (lstm_stream, plain_loop))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", SETTINGS)
def test_in_single_precision_too(name):
    layer = make_layer(name, dtype=torch.float32)
    found, expected = (results_and_gradients(run, layer, KEEP) for run in (lstm_stream, plain_loop))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)  # sums of tens of terms rounded at 6e-8


@pytest.mark.parametrize(
    ("name", "keep"),
    [("clips_bite", KEEP), ("clips_bite", None), ("no_clips", KEEP), ("no_projection", KEEP)],
    ids=["clips_bite", "never_reset", "no_clips", "no_projection"],
)
def test_gradcheck(name, keep):
    layer = make_layer(name)
    inputs = make_inputs(layer)

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:  # the weights are changed in place, where the layer sees it
        return lstm_stream(layer, *tensors[:3], keep)

    assert torch.autograd.gradcheck(run, [*inputs, *layer.parameters()])


def test_the_clips_of_these_tests_bite_and_not_everywhere():
    layer = make_layer("clips_bite")
    outputs, _, c = lstm_stream(layer, *make_inputs(layer), KEEP)
    for clipped in (outputs.abs() == 0.1, c.abs() == 0.4):
        assert clipped.any()
        assert not clipped.all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_at_the_bound_itself_the_gradient_passes_as_with_clamp(dtype):
    layer = make_layer("no_projection", dtype=dtype)  # all gates saturated: f = i = 1 and g = 0, so that c' = c
    layer.weight.data.zero_()
    layer.bias.data.copy_(torch.tensor([50.0, 50.0, 50.0, 0.0]).repeat_interleave(layer.hidden))
    x, h, _ = make_inputs(layer)
    c = torch.tensor([[0.4, -0.4, 0.41, 0.2]] * B, dtype=dtype, requires_grad=True)
    found, expected = (
        torch.autograd.grad(run(layer, x, h, c, None)[2].sum(), c)[0] for run in (lstm_stream, plain_loop)
    )
    assert torch.equal(found, expected)
    assert found[0].tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("name", ["clips_bite", "no_projection"])
def test_a_reset_is_a_run_of_its_own_from_a_zero_state(name, cell):
    layer = make_layer(name, cell=cell)
    x, h, c = make_inputs(layer)
    keep = torch.ones(T, B)
    keep[2] = 0
    outputs, last_h, last_c = layer.cell.stream(layer, x, h, c, keep)
    before, _, _ = layer.cell.stream(layer, x[:2], h, c)
    after, own_h, own_c = layer.cell.stream(layer, x[2:], torch.zeros_like(h), torch.zeros_like(c))
    torch.testing.assert_close((outputs, last_h, last_c), (torch.cat([before, after]), own_h, own_c))
    d_x, d_h, d_c = torch.autograd.grad(outputs[2:].sum(), [x, h, c])
    assert not d_x[:2].any()
    assert not d_h.any()
    assert not d_c.any()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_stream_cut_in_two_with_its_state_carried_is_the_whole_stream(cell):
    layer = make_layer("projected", cell=cell)
    x, h, c = make_inputs(layer)
    whole = layer.cell.stream(layer, x, h, c, KEEP)
    first, middle_h, middle_c = layer.cell.stream(layer, x[:3], h, c, KEEP[:3])
    second, last_h, last_c = layer.cell.stream(layer, x[3:], middle_h.detach(), middle_c.detach(), KEEP[3:])
    torch.testing.assert_close(whole, (torch.cat([first, second]), last_h, last_c))


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_plain_stream_is_the_plain_loop(name, cell):
    layer = make_layer(name, cell=cell)
    found, expected = (results_and_gradients(run, layer, KEEP) for run in (plain_stream, plain_loop))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_stream_is_what_the_layer_computes_for_inference(cell):
    layer = make_layer("clips_bite", cell=cell)
    x, h, c = make_inputs(layer)
    outputs, last_h, last_c = layer.cell.stream(layer, x, h, c)
    flat, flat_h, flat_c = layer(x.flatten(0, 1), [B] * T, h, c)
    torch.testing.assert_close((outputs.flatten(0, 1), last_h, last_c), (flat, flat_h, flat_c))


def test_a_transposed_input_and_gradients_that_are_views():
    layer = make_layer("projected")
    x, h, c = make_inputs(layer)
    batch_first = x.detach().transpose(0, 1).contiguous().requires_grad_()
    outputs = lstm_stream(layer, batch_first.transpose(0, 1), h, c)[0].transpose(0, 1)
    (found,) = torch.autograd.grad(outputs.flatten(1).sum(), batch_first)
    (expected,) = torch.autograd.grad(plain_loop(layer, x, h, c, None)[0].sum(), x)
    torch.testing.assert_close(found.transpose(0, 1), expected)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_under_autocast_the_layer_computes_in_sixteen_bits_and_its_gradients_are_in_32(cell):
    layer = make_layer("projected", cell=cell, dtype=torch.float32)
    x, h, c = make_inputs(layer)
    expected = layer.cell.stream(layer, x, h, c, KEEP)[0]
    expected_gradient = torch.autograd.grad(expected.sum(), layer.weight)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer.cell.stream(layer, x, h, c, KEEP)[0]
        gradient = torch.autograd.grad(found.sum(), layer.weight)[0]
    assert found.dtype == (torch.float32 if kernels_for(layer.weight) and cell == "lstm" else torch.bfloat16)
    assert gradient.dtype == torch.float32
    for rough, exact in ((found.float(), expected), (gradient, expected_gradient)):
        assert not torch.equal(rough, exact)
        assert F.cosine_similarity(rough.flatten(), exact.flatten(), dim=0) > 0.999
