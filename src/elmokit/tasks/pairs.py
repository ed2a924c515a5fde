"""How two texts relate, as premise and hypothesis: ESIM (Chen et al. 2017) reads each in the light of the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.model.dropout import Dropout
from elmokit.tasks.encoder import Encoder, EncoderSettings, input_encoder, masked_softmax, max_mean
from elmokit.tasks.examples import LabelledPair
from elmokit.tasks.readers import find_pairs, read_pairs
from elmokit.tasks.scores import accuracy
from elmokit.tasks.task import Inputs, Item, Task, Widths, parse_two_texts, token_texts
from elmokit.text.tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings):
    """How pairs of texts are read and their relation learned."""

    label: str | int | None = None
    """The column or field of the label, by its name or its number from 0; found by itself unless given."""
    first: str | int | None = None
    """The column or field of the first text, likewise."""
    second: str | int | None = None
    """The column or field of the second text, likewise."""
    hidden: int = 200
    """Width of both BiLSTMs in each direction, and of the layers after them."""


class Model(nn.Module):
    """Texts are encoded, aligned with each other, compared token by token, read again and pooled."""

    def __init__(self, settings: Settings, labels: Sequence[str], widths: Widths) -> None:
        super().__init__()
        self.labels = tuple(labels)
        self.ids = {label: number for number, label in enumerate(labels)}
        hidden, dropout = settings.hidden, settings.dropout
        self.encoder = input_encoder(settings, widths)
        self.projection = nn.Sequential(nn.Linear(4 * self.encoder.width, hidden), nn.ReLU(), Dropout(dropout))
        self.composition = Encoder(hidden, hidden, dropout=dropout)
        layers = (nn.Linear(8 * hidden, hidden), nn.ReLU(), Dropout(dropout), nn.Linear(hidden, len(labels)))
        self.head = nn.Sequential(*layers)

    def scores(self, inputs: Inputs) -> Tensor:
        """What each label scores, (B, K)."""
        mask = inputs.mask
        encoded = self.encoder(inputs.vectors, mask, inputs.output)  # (2B, T, H)
        aligned = align(encoded, mask)
        compared = torch.cat([encoded, aligned, encoded - aligned, encoded * aligned], dim=-1)  # (2B, T, 4H)
        composed = self.composition(self.projection(compared), mask)  # (2B, T, 2 * hidden)
        pooled = max_mean(composed, mask)  # (2B, 4 * hidden)
        scores: Tensor = self.head(pooled.reshape(len(pooled) // 2, -1))
        return scores

    def loss(self, inputs: Inputs, items: Sequence[Item]) -> Tensor:
        targets = torch.tensor([self.ids[item.example.label] for item in items], device=inputs.mask.device)
        return F.cross_entropy(self.scores(inputs), targets)

    def predict(self, inputs: Inputs, items: Sequence[Item]) -> list[LabelledPair]:
        best = self.scores(inputs).argmax(dim=-1).tolist()
        return [replace(item.example, label=self.labels[number]) for item, number in zip(items, best, strict=True)]


def align(encoded: Tensor, mask: Tensor) -> Tensor:
    """For each token of a text the tokens of its partner, weighted by softmax_j(a_i · b_j), (2B, T, H).

    Partners are neighbours, rows 0 and 1, 2 and 3; beside an empty partner there are zeros.
    """
    partners, theirs = _swapped(encoded), _swapped(mask)
    scores = encoded @ partners.transpose(1, 2)  # (2B, T, T)
    return masked_softmax(scores, theirs[:, None]) @ partners


def _swapped(rows: Tensor) -> Tensor:
    return rows.reshape(-1, 2, *rows.shape[1:]).flip(1).reshape(rows.shape)


def read(path: Path, settings: Settings) -> Iterator[LabelledPair]:
    """Pairs of SNLI's JSONL, of SICK's table, and of other tables."""
    return read_pairs(path, label=settings.label, first=settings.first, second=settings.second)


def find(path: Path, settings: Settings) -> tuple[Settings, str]:
    """The settings with the columns of a table that names none, and what was found."""
    layout = find_pairs(path, label=settings.label, first=settings.first, second=settings.second)
    if layout.names or not layout.columns:
        return settings, layout.described
    first, second, label = layout.columns
    return replace(settings, first=first, second=second, label=label), layout.described


def parse(values: Mapping[str, Any], tokenize: Tokenizer) -> LabelledPair:  # noqa: ARG001
    """A pair by our names or by SNLI's."""
    names = ("sentence1", "sentence2") if "sentence1" in values else ("first", "second")
    return LabelledPair(*parse_two_texts(values, *names), "")


TASK = Task(
    name="pairs",
    settings=Settings,
    model=Model,
    read=read,
    find=find,
    parse=parse,
    prepare=lambda pair, tokenize: Item(pair, (token_texts(pair.first, tokenize), token_texts(pair.second, tokenize))),
    labels=lambda example: [(example.label, example.place)],
    score=lambda *both: {"accuracy": accuracy(*([pair.label for pair in part] for part in both))},
)
