"""How weights move: Adam and its kin for all of them, or Muon for the recurrent matrices and Adam for the rest."""

from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.model.language_model import LanguageModel
from elmokit.pretrain.recipe import TrainSettings

QUINTIC, ROUNDS = (3.4445, -4.7750, 2.0315), 5  # Keller Jordan's: singular values come near 1
MOMENTUM = 0.95
ADAM_RMS = 0.2  # how far Adam moves a weight, as a share of the rate: Muon's steps are made as long (Moonlight)


def make_optimizer(model: LanguageModel, settings: TrainSettings) -> torch.optim.Optimizer:
    """The optimiser; weights without a gradient, frozen for a while, stay as they are."""
    weights = list(model.parameters())
    common: dict[str, Any] = {"lr": settings.learning_rate, "fused": weights[0].device.type == "cpu"}
    if settings.optimizer == "adagrad":
        return torch.optim.Adagrad(weights, initial_accumulator_value=1.0, **common)
    if settings.optimizer == "adamw":
        return torch.optim.AdamW(weights, weight_decay=settings.weight_decay, **common)
    return MuonAdam(model, **common) if settings.optimizer == "muon" else torch.optim.Adam(weights, **common)


class MuonAdam(torch.optim.Adam):
    """Adam, except that the recurrent matrices move by their momentum made orthogonal: each direction as far.

    A layer's weight, (gates * D, 2P), is two blocks (D, P) for each gate, and its projection, (P, D), is one more.
    """

    def __init__(self, model: LanguageModel, **common: Any) -> None:
        layers = [layer for stack in model.bilm.stacks for layer in stack]
        self.gates, self.width = len(layers[0].cell.gates), layers[0].output_size
        matrices = [part for layer in layers for part in (layer.weight, layer.projection) if part is not None]
        chosen = {id(weight) for weight in matrices}
        rest = [weight for weight in model.parameters() if id(weight) not in chosen]
        super().__init__([{"params": rest}, {"params": matrices}], **common)

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move every weight that has a gradient."""
        matrices = [weight for weight in self.param_groups[1]["params"] if weight.grad is not None]
        if matrices:
            self._move(matrices, self.param_groups[1]["lr"])
        for weight in matrices:
            weight.grad = None  # so that Adam passes them over
        super().step(closure)

    @torch.no_grad()
    def _move(self, weights: list[nn.Parameter], rate: float) -> None:
        for weight in weights:
            assert weight.grad is not None
            state = self.state[weight]  # named as Adam names its own, which looks at them when a run is resumed
            if not state:
                state |= {"step": torch.zeros(()), "exp_avg": torch.zeros_like(weight)}
            momentum = state["exp_avg"].lerp_(weight.grad, 1 - MOMENTUM)
            ahead = torch.lerp(weight.grad, momentum, MOMENTUM)  # Nesterov's
            for block, gradient in zip(self._blocks(weight), self._blocks(ahead), strict=True):
                block.sub_(orthogonal(gradient), alpha=rate * ADAM_RMS * len(block) ** 0.5)

    def _blocks(self, matrix: Tensor) -> list[Tensor]:
        """Views (D, P) of a layer's matrix."""
        if len(matrix) == self.width:
            return [matrix.t()]
        return [block for gate in matrix.chunk(self.gates) for block in gate.split(self.width, dim=1)]


def orthogonal(matrix: Tensor) -> Tensor:
    """Roughly U V' of a matrix U S V', (D, P) with D >= P, by five rounds of Newton and Schulz: X ← X (a + bG + cG²).

    G is X'X, (P, P), of which alone all rounds are computed: their polynomials commute.
    """
    a, b, c = QUINTIC
    norm = torch.linalg.vector_norm(matrix).clamp(min=1e-20)
    scaled: Tensor = matrix / norm
    gram, polynomials = scaled.t() @ scaled, []
    for left in reversed(range(ROUNDS)):
        polynomial = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        polynomial.diagonal().add_(a)
        polynomials.append(polynomial)
        if left:
            gram = gram @ (polynomial @ polynomial)
    return scaled @ reduce(torch.mm, polynomials)
