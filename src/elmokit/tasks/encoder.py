"""The part that most tasks share: a BiLSTM over the sentences of a batch, and what can be made of its outputs."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmokit.errors import ConfigError
from elmokit.model.dropout import Dropout
from elmokit.tasks.task import Widths

WIDEST, DEEPEST = 4096, 16  # a damaged or hostile file shall not make a network that no memory can hold


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """What the settings of tasks with a BiLSTM have in common."""

    hidden: int = 200
    """Width of the BiLSTM in each direction."""
    layers: int = 1
    """Of the BiLSTM."""
    dropout: float = 0.5
    """Share of its outputs that are dropped in training."""

    def __post_init__(self) -> None:
        for name, most in (("hidden", WIDEST), ("layers", DEEPEST)):
            if not 1 <= getattr(self, name) <= most:
                raise ConfigError(f"{name} is {getattr(self, name)}: it goes from 1 to {most}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout is {self.dropout}: it goes from 0 to below 1")


class Encoder(nn.Module):
    """A BiLSTM that reads every sentence to its own end; a second mix, where there is one, stands beside its outputs.

    `dropout` falls between its layers and on what it gives.
    """

    def __init__(self, width: int, hidden: int, layers: int = 1, dropout: float = 0.0, output_width: int = 0) -> None:
        super().__init__()
        widths = [width, *[2 * hidden] * (layers - 1)]
        self.ahead = nn.ModuleList(nn.LSTM(each, hidden, batch_first=True) for each in widths)
        self.back = nn.ModuleList(nn.LSTM(each, hidden, batch_first=True) for each in widths)
        self.dropout = Dropout(dropout)
        self.width = 2 * hidden + output_width

    def forward(self, vectors: Tensor, mask: Tensor, output: Tensor | None = None) -> Tensor:
        """One vector a token, (S, T, width), zeros where a sentence has ended."""
        encoded = vectors
        for ahead, back in zip(self.ahead, self.back, strict=True):
            both = [ahead(encoded)[0], turned(back(turned(encoded, mask))[0], mask)]
            encoded = self.dropout(torch.cat(both, dim=-1))  # (S, T, 2 * hidden)
        if output is not None:
            encoded = torch.cat([encoded, output], dim=-1)
        return encoded * mask[..., None]


def turned(vectors: Tensor, mask: Tensor) -> Tensor:
    """Each sentence from its end to its start, with its padding behind it."""
    # torch could pack the sentences instead, but then going back through a step costs as much as a batch is large
    indices = torch.arange(mask.shape[1], device=mask.device)
    indices = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - indices, indices)  # (S, T)
    return vectors.gather(1, indices[..., None].expand_as(vectors))


def input_encoder(settings: EncoderSettings, widths: Widths) -> Encoder:
    """The BiLSTM that a task's inputs go through."""
    return Encoder(widths.input, settings.hidden, settings.layers, settings.dropout, output_width=widths.output)


class Biattention(nn.Module):
    """Every token beside what it finds by looking at all others, read by a second BiLSTM."""

    def __init__(self, width: int, hidden: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.integrator = Encoder(3 * width, hidden, dropout=dropout)
        self.width = self.integrator.width

    def forward(self, encoded: Tensor, mask: Tensor) -> Tensor:
        """One vector a token, (S, T, width)."""
        scores = encoded @ encoded.transpose(1, 2)  # (S, T, T)
        found = masked_softmax(scores, mask[:, None]) @ encoded
        integrated: Tensor = self.integrator(torch.cat([encoded, encoded - found, encoded * found], dim=-1), mask)
        return integrated


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Shares of the last dimension among its real tokens, which add up to 1, or to 0 where there are none."""
    least = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, least).softmax(dim=-1) * mask


def max_mean(encoded: Tensor, mask: Tensor) -> Tensor:
    """The largest and the mean value of each column over a sentence's tokens, (S, 2 * width); zeros if it is empty."""
    real = mask[..., None]
    largest = encoded.masked_fill(~real, -torch.inf).amax(dim=1)  # (S, width)
    mean = (encoded * real).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.cat([largest.masked_fill(~mask.any(dim=1, keepdim=True), 0), mean], dim=-1)
