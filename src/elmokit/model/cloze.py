"""What stands in a gap, read from both sides at once."""

import torch
from torch import Tensor, nn


class Cloze(nn.Module):
    """softmax(W h + b) with h = f + g + V relu(U [f; g] + u) + v, by the softmax that each direction predicts with.

    f is the forward state before the gap, g the backward state after it. V and v start from zero: what is learned is
    what both directions know together and their sum does not (as context2vec, Melamud et al. 2016, joins them).
    """

    def __init__(self, projection: int, hidden: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * projection, hidden)
        self.output = nn.Linear(hidden, projection)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        """h of each gap, (N, P), from the states on its sides, (N, P) each."""
        sides = torch.cat([before, after], dim=-1)  # (N, 2P)
        joined: Tensor = before + after + self.output(self.hidden(sides).relu())
        return joined
