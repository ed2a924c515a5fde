"""The task-specific mix of the layers."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.errors import ConfigError

MixKind = Literal["learned", "last", "static"]


class ScalarMix(nn.Module):
    """gamma * sum_j softmax(w)_j * layer_j, with w starting at 0 and gamma at 1.

    `kind="last"` is gamma * layer_L; `kind="static"` is gamma * (layer_0 + sum_{j>=1} softmax(w)_j * layer_j); `fixed`
    gives the layers' weights themselves, which then are not learned. `layer_norm` first brings every layer of every
    token to mean 0 and variance 1, each token on its own, so that no vector depends on its batch mates.
    """

    def __init__(
        self, layers: int, *, kind: MixKind = "learned", fixed: Sequence[float] | None = None, layer_norm: bool = False
    ) -> None:
        super().__init__()
        if kind not in ("learned", "last", "static"):
            raise ConfigError(f"unknown mix {kind!r}: it is 'learned', 'last' or 'static'")
        if layers < (2 if kind == "static" else 1):
            raise ConfigError(f"a {kind!r} mix cannot be made of {layers} layers")
        if fixed is not None and (kind != "learned" or len(fixed) != layers):
            raise ConfigError(f"fixed weights: {layers} are needed, without a kind; {len(fixed)} were given")
        self.kind, self.layers, self.layer_norm = kind, layers, layer_norm
        self.gamma = nn.Parameter(torch.ones(()))
        self.weights: nn.Parameter | None = None
        self.fixed: Tensor | None
        self.register_buffer("fixed", None if fixed is None else torch.tensor(fixed, dtype=torch.float32))
        if fixed is None and kind != "last":
            self.weights = nn.Parameter(torch.zeros(layers - 1 if kind == "static" else layers))

    def layer_weights(self) -> Tensor:
        """What each layer counts for, before gamma, (L,)."""
        if self.kind == "last":
            return F.one_hot(torch.tensor(self.layers - 1), self.layers).to(self.gamma)
        if self.fixed is not None:
            return self.fixed
        assert self.weights is not None
        shares = self.weights.softmax(dim=0)
        return torch.cat([shares.new_ones(1), shares]) if self.kind == "static" else shares

    def forward(self, layers: Tensor) -> Tensor:
        """One vector a token, (..., D), from its layers, (L, ..., D)."""
        if len(layers) != self.layers:
            raise ConfigError(f"this mix is made for {self.layers} layers, not {len(layers)}")
        if self.kind == "last":
            layers = layers[-1:]
        if self.layer_norm:
            layers = F.layer_norm(layers, layers.shape[-1:], eps=1e-12)
        mixed: Tensor = layers[0] if self.kind == "last" else torch.tensordot(self.layer_weights(), layers, dims=1)
        return self.gamma * mixed
