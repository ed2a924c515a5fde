"""A class for a text, as its sentiment: a BiLSTM, or a biattentive network, pooled by maximum and mean."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.model.dropout import Dropout
from elmokit.tasks.encoder import Biattention, EncoderSettings, input_encoder, max_mean
from elmokit.tasks.examples import LabelledText
from elmokit.tasks.readers import find_labelled, read_labelled
from elmokit.tasks.scores import accuracy, macro_f1
from elmokit.tasks.task import Inputs, Item, Scores, Task, Widths, parse_tokens, token_texts
from elmokit.text.tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings):
    """How texts are read and their classes learned."""

    label: str | int | None = None
    """The column or field of the class, by its name or its number from 0; found by itself unless given."""
    text: str | int | None = None
    """The column or field of the text, likewise."""
    fine: bool = False
    """Keep TREC's fine classes, ABBR:exp; else the coarse ones, ABBR."""
    hidden: int = 300
    phrases: bool = False
    """Learn from every phrase of PTB trees, not from whole sentences alone; what is measured are sentences."""
    attention: bool = False
    """Let tokens look at each other, and read what they find by a second BiLSTM: a biattentive network."""


class Model(nn.Module):
    """Classes from a layer over the pooled outputs of a BiLSTM."""

    def __init__(self, settings: Settings, labels: Sequence[str], widths: Widths) -> None:
        super().__init__()
        self.labels = tuple(labels)
        self.ids = {label: number for number, label in enumerate(labels)}
        self.encoder = input_encoder(settings, widths)
        width, dropout = self.encoder.width, settings.dropout
        self.attention = Biattention(width, settings.hidden, dropout=dropout) if settings.attention else None
        pooled, hidden = 2 * (self.attention.width if self.attention else width), settings.hidden
        layers = (nn.Linear(pooled, hidden), nn.ReLU(), Dropout(dropout), nn.Linear(hidden, len(labels)))
        self.head = nn.Sequential(*layers)

    def scores(self, inputs: Inputs) -> Tensor:
        """What each class scores, (S, K)."""
        encoded = self.encoder(inputs.vectors, inputs.mask, inputs.output)  # (S, T, H)
        if self.attention is not None:
            encoded = self.attention(encoded, inputs.mask)
        scores: Tensor = self.head(max_mean(encoded, inputs.mask))
        return scores

    def loss(self, inputs: Inputs, items: Sequence[Item]) -> Tensor:
        targets = torch.tensor([self.ids[item.example.label] for item in items], device=inputs.mask.device)
        return F.cross_entropy(self.scores(inputs), targets)

    def predict(self, inputs: Inputs, items: Sequence[Item]) -> list[LabelledText]:
        best = self.scores(inputs).argmax(dim=-1).tolist()
        return [replace(item.example, label=self.labels[number]) for item, number in zip(items, best, strict=True)]


def read(path: Path, settings: Settings, *, phrases: bool = False) -> Iterator[LabelledText]:
    """Texts of PTB trees, TREC, fastText, JSONL, CSV or TSV."""
    return read_labelled(path, label=settings.label, text=settings.text, fine=settings.fine, phrases=phrases)


def read_train(path: Path, settings: Settings) -> Iterable[LabelledText]:
    """The same, or each phrase of PTB trees, once with each class that it has."""
    examples = read(path, settings, phrases=settings.phrases)
    return {(phrase.text, phrase.label): phrase for phrase in examples}.values() if settings.phrases else examples


def find(path: Path, settings: Settings) -> tuple[Settings, str]:
    """The settings with the columns of a table that names none, and what was found."""
    layout = find_labelled(path, label=settings.label, text=settings.text)
    if layout is None or layout.names or not layout.columns:
        return settings, layout.described if layout else ""
    label, text = layout.columns
    return replace(settings, label=label, text=text), layout.described


def score(gold: Sequence[LabelledText], predicted: Sequence[LabelledText]) -> Scores:
    """The share of classes that are right, and the mean of all classes' F1."""
    ours, theirs = ([text.label for text in part] for part in (predicted, gold))
    return {"accuracy": accuracy(theirs, ours), "macro_f1": macro_f1(theirs, ours)}


def parse(values: Mapping[str, Any], tokenize: Tokenizer) -> LabelledText:
    """A text as it is, or its tokens."""
    given = values.get("text") if "tokens" not in values else None
    return LabelledText(given if isinstance(given, str) else parse_tokens(values, tokenize), "")


TASK = Task(
    name="classify",
    settings=Settings,
    model=Model,
    read=read,
    read_train=read_train,
    find=find,
    parse=parse,
    prepare=lambda example, tokenize: Item(example, (token_texts(example.text, tokenize),)),
    labels=lambda example: [(example.label, example.place)],
    score=score,
)
