"""A tag for every token, as entities, parts of speech or chunks: a BiLSTM under a conditional random field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn

from elmokit.tasks.crf import Crf, allowed_transitions, mark_spans
from elmokit.tasks.encoder import EncoderSettings, input_encoder
from elmokit.tasks.examples import TaggedSentence
from elmokit.tasks.readers import read_tagged
from elmokit.tasks.scores import OUTSIDE, accuracy, chunks, span_f1, to_bio
from elmokit.tasks.task import Inputs, Item, Scores, Task, Widths, parse_tokens


@dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings):
    """How tags are read and learned."""

    column: str | int | None = None
    """Where they stand: upos or xpos of a .conllu file, else a column's number from 0; upos, or the last column."""


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
