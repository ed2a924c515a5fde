"""ELMo as a layer of one's own torch model."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from elmokit.elmo import Elmo
from elmokit.embedder import Embedder, Sentence
from elmokit.errors import ConfigError
from elmokit.model.mix import MixKind, ScalarMix
from elmokit.text.inputs import in_original_order
from elmokit.text.vocabulary import BOS, EOS

Trainable = Literal["mix", "top", "all"]


class ElmoEmbedding(nn.Module):
    """Sentences → one padded tensor for each mix, (B, T, width), and a mask, (B, T), True for a real token.

    `trainable` decides what learns: "mix" the layer weights alone, "top" also the last recurrent layer of each
    direction, "all" the whole model. `dropout` falls on the mixed vectors. `static`, for the mix of that kind, are
    GloVe's or word2vec's vectors in the place of layer 0, by a projection that learns where they have another width.
    """

    def __init__(
        self,
        elmo: Elmo,
        *,
        mixes: int = 1,
        dropout: float = 0.5,
        trainable: Trainable = "mix",
        kind: MixKind = "learned",
        fixed: Sequence[float] | None = None,
        layer_norm: bool = False,
        static: Embedder | None = None,
    ) -> None:
        super().__init__()
        if trainable not in get_args(Trainable):
            raise ConfigError(f"unknown trainable {trainable!r}: known are {', '.join(get_args(Trainable))}")
        if mixes < 1:
            raise ConfigError(f"mixes is {mixes}: at least one is needed")
        if elmo.stateful:
            raise ConfigError("a stateful model cannot be a layer: load it with stateful=False")
        self.elmo, self.bilm, self.trainable, self.static = elmo, elmo.bilm, trainable, static
        widths = None if static is None else (static.width, elmo.width)
        self.mixes = nn.ModuleList(
            ScalarMix(elmo.layer_count, kind=kind, fixed=fixed, layer_norm=layer_norm, widths=widths)
            for _ in range(mixes)
        )
        self.dropout = nn.Dropout(dropout)
        self.mixes.to(elmo.device)
        self.bilm.requires_grad_(trainable == "all")
        for stack in self.bilm.stacks if trainable == "top" else ():
            stack[-1].requires_grad_(True)

    def forward(self, sentences: Sequence[Sentence]) -> tuple[Tensor, ...]:
        """Each mix's vectors, then the mask."""
        tokens = self.elmo.tokenize(sentences)
        lengths, layers = self._padded_layers(tokens)  # (B,), (L, B, T, width)
        mask = torch.arange(layers.shape[2], device=layers.device) < lengths[:, None]  # (B, T)
        static = self._padded_static(tokens, layers.device)  # (B, T, static width)
        return *(self.dropout(mix(layers, static)) * mask[..., None] for mix in self.mixes), mask

    def _padded_static(self, sentences: list[list[str]], device: torch.device) -> Tensor | None:
        if self.static is None:
            return None
        rows = [torch.from_numpy(rows).to(device) for rows in self.static.embed(sentences, layers="top")]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def _padded_layers(self, sentences: list[list[str]]) -> tuple[Tensor, Tensor]:
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        bounded = [[BOS, *sentences[i], EOS] for i in order]
        outputs = self.elmo.run(bounded, gradients=torch.is_grad_enabled() and self.trainable != "mix")  # (L, N, width)
        parts = outputs.split([len(tokens) for tokens in bounded], dim=1)
        inner = in_original_order([order], [[part[:, 1:-1].transpose(0, 1) for part in parts]])  # each (T, L, width)
        padded = nn.utils.rnn.pad_sequence(inner, batch_first=True)  # (B, T, L, width)
        return torch.tensor([*map(len, sentences)], device=outputs.device), padded.permute(2, 0, 1, 3)
