"""The bidirectional language model: token vectors in, a representation from every layer out."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elmokit.config import ModelConfig
from elmokit.model.packing import pack
from elmokit.model.recurrent import RecurrentLayer
from elmokit.model.tokens import TokenEncoder


class State(NamedTuple):
    """What the recurrent layers remember: directions × layers × sentences × width."""

    h: Tensor
    """(2, L, B, P) the outputs that recur."""
    c: Tensor
    """(2, L, B, D) the cells."""


class BiLM(nn.Module):
    """A token encoder shared by a stack of recurrent layers in each direction."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = TokenEncoder(config)
        self.forward_layers = self._stack()
        self.backward_layers = self._stack()

    def _stack(self) -> nn.ModuleList:
        # TensorFlow and this module agree on one width P for tokens and outputs, so residuals always fit
        return nn.ModuleList(RecurrentLayer(self.config.projection, self.config) for _ in range(self.config.layers))

    def zero_state(self, sentences: int) -> State:
        """The state before the first token."""
        weight = next(self.parameters())
        shape = (2, self.config.layers, sentences)
        return State(weight.new_zeros(*shape, self.config.projection), weight.new_zeros(*shape, self.config.hidden))

    def forward(self, x: Tensor, lengths: Sequence[int], state: State | None = None) -> tuple[Tensor, State]:
        """Every layer of every token, (L + 1, N, 2P), from token vectors, (N, P), of sentences end to end.

        Sentences stand longest first; their boundary tokens count as tokens. Layer 0 is the token vector twice.
        """
        state = state or self.zero_state(len(lengths))
        packing = pack(lengths, x.device)
        layers, last_h, last_c = [], [], []
        runs = ((self.forward_layers, packing.forward), (self.backward_layers, packing.backward))
        for (stack, order), h, c in zip(runs, state.h, state.c, strict=True):
            outputs, end_h, end_c = self._run(stack, x[order], packing.batch_sizes, h, c)
            layers.append(torch.stack([x, *(_unpack(output, order) for output in outputs)]))  # (L + 1, N, P)
            last_h.append(end_h)
            last_c.append(end_c)
        return torch.cat(layers, dim=-1), State(torch.stack(last_h), torch.stack(last_c))

    def _run(
        self, stack: nn.ModuleList, x: Tensor, batch_sizes: Sequence[int], h: Tensor, c: Tensor
    ) -> tuple[list[Tensor], Tensor, Tensor]:
        outputs, last_h, last_c = [], [], []
        for level, layer in enumerate(stack):
            output, end_h, end_c = layer(x, batch_sizes, h[level], c[level])
            # the clipped output recurs; what is added to it here does not
            x = output + x if self.config.residual and level > 0 else output
            outputs.append(x)
            last_h.append(end_h)
            last_c.append(end_c)
        return outputs, torch.stack(last_h), torch.stack(last_c)


def _unpack(packed: Tensor, order: Tensor) -> Tensor:
    flat = torch.empty_like(packed)
    flat[order] = packed
    return flat
