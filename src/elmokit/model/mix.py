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

    `kind="last"` is gamma * layer_L; `kind="static"` is gamma * (E + sum_{j>=1} softmax(w)_j * layer_j), where E is
    layer_0, or W e with the static vectors e of other make that the mix is then called with. `widths`, (that of e, that
    of the layers), makes the projection W, which is learned, where the two differ. `fixed` gives the weights of the
    layers themselves, of those from 1 on for "static", which then are not learned. `layer_norm` first brings every
    layer of every token to mean 0 and variance 1, each token on its own, so that no vector depends on its batch mates.
    """

    def __init__(
        self,
        layers: int,
        *,
        kind: MixKind = "learned",
        fixed: Sequence[float] | None = None,
        layer_norm: bool = False,
        widths: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        if kind not in ("learned", "last", "static"):
            raise ConfigError(f"unknown mix {kind!r}: it is 'learned', 'last' or 'static'")
        if layers < (2 if kind == "static" else 1):
            raise ConfigError(f"a {kind!r} mix cannot be made of {layers} layers")
        if widths and kind != "static":
            raise ConfigError(f"a {kind!r} mix takes no vectors beside its layers: they are for kind 'static'")
        needed = {"learned": layers, "last": 0, "static": layers - 1}[kind]
        if fixed is not None and len(fixed) != needed:
            raise ConfigError(f"fixed weights: a {kind!r} mix of {layers} layers has {needed}; {len(fixed)} were given")
        self.kind, self.layers, self.layer_norm, self.widths = kind, layers, layer_norm, widths
        self.gamma = nn.Parameter(torch.ones(()))
        self.weights: nn.Parameter | None = None
        self.fixed: Tensor | None
        self.register_buffer("fixed", None if fixed is None else torch.tensor(fixed, dtype=torch.float32))
        if fixed is None and needed:
            self.weights = nn.Parameter(torch.zeros(needed))
        self.projection = nn.Linear(*widths, bias=False) if widths and widths[0] != widths[1] else None

    def layer_weights(self) -> Tensor:
        """What each layer counts for, before gamma, (L,)."""
        if self.kind == "last":
            return F.one_hot(torch.tensor(self.layers - 1), self.layers).to(self.gamma)
        shares = self.fixed
        if shares is None:
            assert self.weights is not None
            shares = self.weights.softmax(dim=0)
        return torch.cat([shares.new_ones(1), shares]) if self.kind == "static" else shares

    def forward(self, layers: Tensor, static: Tensor | None = None) -> Tensor:
        """One vector a token, (..., D), from its layers, (L, ..., D), and its static vector e, (..., E), if any."""
        if len(layers) != self.layers:
            raise ConfigError(f"this mix is made for {self.layers} layers, not {len(layers)}")
        if (static is None) != (self.widths is None):
            needs = "needs static vectors, for it was made with widths" if self.widths else "was made without widths"
            raise ConfigError(f"this mix {needs}: static vectors were {'not ' if static is None else ''}given")
        if self.kind == "last":
            layers = layers[-1:]
        if static is not None:
            embedded = static if self.projection is None else self.projection(static)  # (..., D)
            layers = torch.cat([embedded[None], layers[1:]])
        if self.layer_norm:
            layers = F.layer_norm(layers, layers.shape[-1:], eps=1e-12)
        mixed: Tensor = layers[0] if self.kind == "last" else torch.tensordot(self.layer_weights(), layers, dims=1)
        return self.gamma * mixed
