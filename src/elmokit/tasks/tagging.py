"""A tag for every token, as entities, parts of speech or chunks: a BiLSTM under a conditional random field.

And what each layer knows of a token's tag: a linear classifier on every layer, all trained side by side.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.tasks.crf import Crf, allowed_transitions, mark_spans
from elmokit.tasks.encoder import EncoderSettings, input_encoder
from elmokit.tasks.examples import TaggedSentence
from elmokit.tasks.readers import read_tagged
from elmokit.tasks.scores import OUTSIDE, accuracy, chunks, span_f1, to_bio
from elmokit.tasks.task import INPUT_OPTIONS, Inputs, InputSettings, Item, Scores, Task, Widths, parse_tokens


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """How tags are read."""

    column: str | int | None = None
    """Where they stand: upos or xpos of a .conllu file, else a column's number from 0; upos, or the last column."""


@dataclass(frozen=True, kw_only=True)
class Settings(ProbeSettings, EncoderSettings):
    """How tags are read and learned."""


class Model(nn.Module):
    """Scores from a BiLSTM; the field chooses the best sequence that its rules allow."""

    def __init__(self, settings: Settings, labels: Sequence[str], widths: Widths) -> None:
        super().__init__()
        self.labels = tuple(labels)
        self.ids = {label: number for number, label in enumerate(labels)}
        self.encoder = input_encoder(settings, widths)
        self.head = nn.Linear(self.encoder.width, len(labels))
        self.crf = Crf(len(labels), allowed_transitions(labels))

    def scores(self, inputs: Inputs) -> Tensor:
        """What each tag scores at each token, (S, T, K)."""
        scores: Tensor = self.head(self.encoder(inputs.vectors, inputs.mask, inputs.output))
        return scores

    def loss(self, inputs: Inputs, items: Sequence[Item]) -> Tensor:
        """The mean negative log likelihood of a sentence's tags."""
        return self.crf.loss(self.scores(inputs), padded_ids(self.ids, items, inputs.mask), inputs.mask)

    def predict(self, inputs: Inputs, items: Sequence[Item]) -> list[TaggedSentence]:
        decoded = self.crf.decode(self.scores(inputs), inputs.mask)
        tags = [tuple(self.labels[number] for number in row) for row in decoded]
        return [replace(item.example, tags=row) for item, row in zip(items, tags, strict=True)]


def padded_ids(ids: Mapping[str, int], items: Sequence[Item], mask: Tensor) -> Tensor:
    """The numbers of the gold tags, (S, T)."""
    flat = [ids[tag] for item in items for tag in item.example.tags]
    padded = torch.zeros_like(mask, dtype=torch.long)
    padded[mask] = torch.tensor(flat, dtype=torch.long, device=mask.device)
    return padded


def read(path: Path, settings: Settings) -> Iterator[TaggedSentence]:
    """Sentences of CoNLL columns or CoNLL-U; where I- begins a span, as CoNLL-2003 came, it is read as B-."""
    sentences = read_tagged(path, column=settings.column)
    return (replace(sentence, tags=_begun(sentence.tags)) for sentence in sentences)


def _begun(tags: tuple[str, ...]) -> tuple[str, ...]:
    """The same spans with a B- at the head of each; tags that mark none, or also how spans end, are as they were."""
    if not mark_spans(tags) or any(tag[0] in "ES" for tag in tags):
        return tags
    return tuple(to_bio(chunks(tags), len(tags)))


def score(gold: Sequence[TaggedSentence], predicted: Sequence[TaggedSentence]) -> Scores:
    """F1 of spans, where tags mark spans, and the share of tags that are right."""
    ours, theirs = ([sentence.tags for sentence in part] for part in (predicted, gold))
    right = {"accuracy": accuracy(list(chain(*theirs)), list(chain(*ours)))}
    if not mark_spans(chain(*theirs)):
        return right
    marked = [[tag if mark_spans([tag]) else OUTSIDE for tag in tags] for tags in ours]
    spans = span_f1(theirs, marked).all
    return {"f1": spans.f1, "precision": spans.precision, "recall": spans.recall} | right


TASK = Task(
    name="tagging",
    settings=Settings,
    model=Model,
    read=read,
    parse=lambda values, tokenize: TaggedSentence(parse_tokens(values, tokenize), (), "", ()),
    prepare=lambda example, _: Item(example, (example.tokens,)),
    labels=lambda example: [(tag, example.place(number)) for number, tag in enumerate(example.tags)],
    score=score,
)


@dataclass(frozen=True, slots=True)
class ProbedSentence:
    """A sentence and the tags that each layer by itself would give it."""

    tokens: tuple[str, ...]
    tags: dict[str, tuple[str, ...]]


class ProbeModel(nn.Module):
    """A linear layer for each layer; none learns from another's loss."""

    def __init__(self, settings: ProbeSettings, labels: Sequence[str], widths: Widths) -> None:  # noqa: ARG002
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


def score_layers(gold: Sequence[TaggedSentence], predicted: Sequence[ProbedSentence]) -> Scores:
    """The mean accuracy of all layers, and each one's own."""
    tags = list(chain.from_iterable(sentence.tags for sentence in gold))
    layers = {
        name: accuracy(tags, list(chain.from_iterable(sentence.tags[name] for sentence in predicted)))
        for name in (predicted[0].tags if predicted else ())
    }
    return {"mean accuracy": sum(layers.values()) / max(1, len(layers))} | layers


PROBE = replace(
    TASK,
    name="probe",
    settings=ProbeSettings,
    model=ProbeModel,
    read=lambda path, settings: read_tagged(path, column=settings.column),
    score=score_layers,
    inputs=InputSettings(mix="apart", input_dropout=0.0),
    refused=INPUT_OPTIONS,
    reason="sees each layer as it is",
)
