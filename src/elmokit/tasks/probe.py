"""What each layer knows of a token's tag: a linear classifier on every layer, all trained side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.tasks.examples import TaggedSentence
from elmokit.tasks.readers import read_tagged
from elmokit.tasks.scores import accuracy
from elmokit.tasks.tagging import TASK as TAGGING
from elmokit.tasks.tagging import padded_ids
from elmokit.tasks.task import INPUT_OPTIONS, Inputs, InputSettings, Item, Scores, Widths


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How tags are read."""

    column: str | int | None = None
    """Where they stand: upos or xpos of a .conllu file, else a column's number from 0; upos, or the last column."""


@dataclass(frozen=True, slots=True)
class ProbedSentence:
    """A sentence and the tags that each layer by itself would give it."""

    tokens: tuple[str, ...]
    tags: dict[str, tuple[str, ...]]


class Model(nn.Module):
    """A linear layer for each layer; none learns from another's loss."""

    def __init__(self, settings: Settings, labels: Sequence[str], widths: Widths) -> None:  # noqa: ARG002
        super().__init__()
        self.labels = tuple(labels)
        self.ids = {label: number for number, label in enumerate(labels)}
        embedders = [f"embedder {number} " if len(widths.parts) > 1 else "" for number in range(len(widths.parts))]
        layers = zip(embedders, widths.parts, strict=True)
        self.names = [f"{embedder}layer {layer}" for embedder, (count, _) in layers for layer in range(count)]
        self.widths = [width for layers, width in widths.parts for _ in range(layers)]
        self.heads = nn.ModuleList(nn.Linear(width, len(labels)) for width in self.widths)

    def scores(self, inputs: Inputs) -> list[Tensor]:
        """What each tag scores at each real token by each layer, (N, K)."""
        layers = inputs.vectors[inputs.mask].split(self.widths, dim=-1)
        return [head(layer) for head, layer in zip(self.heads, layers, strict=True)]

    def loss(self, inputs: Inputs, items: Sequence[Item]) -> Tensor:
        """The sum of the layers' mean cross-entropies."""
        targets = padded_ids(self.ids, items, inputs.mask)[inputs.mask]  # (N,)
        return sum((F.cross_entropy(scores, targets) for scores in self.scores(inputs)), inputs.vectors.new_zeros(()))

    def predict(self, inputs: Inputs, items: Sequence[Item]) -> list[ProbedSentence]:
        found = [[self.labels[number] for number in scores.argmax(dim=-1).tolist()] for scores in self.scores(inputs)]
        sentences, end = [], 0
        for item in items:
            start, end = end, end + len(item.example.tokens)
            tags = {name: tuple(layer[start:end]) for name, layer in zip(self.names, found, strict=True)}
            sentences.append(ProbedSentence(item.example.tokens, tags))
        return sentences


def score(gold: Sequence[TaggedSentence], predicted: Sequence[ProbedSentence]) -> Scores:
    """The mean accuracy of all layers, and each one's own."""
    tags = list(chain.from_iterable(sentence.tags for sentence in gold))
    layers = {
        name: accuracy(tags, list(chain.from_iterable(sentence.tags[name] for sentence in predicted)))
        for name in (predicted[0].tags if predicted else ())
    }
    return {"mean accuracy": sum(layers.values()) / max(1, len(layers))} | layers


TASK = replace(
    TAGGING,
    name="probe",
    settings=Settings,
    model=Model,
    read=lambda path, settings: read_tagged(path, column=settings.column),
    score=score,
    inputs=InputSettings(mix="apart", input_dropout=0.0),
    refused=INPUT_OPTIONS,
    reason="sees each layer as it is",
)
