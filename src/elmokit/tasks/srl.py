"""Who did what to whom: the roles around each predicate, by a BiLSTM that is told which token the predicate is.

Predicates are given. A sentence that comes without any gets those that a linear layer over its vectors takes for
predicates; how often these are right is no part of the score.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.crf import Crf, allowed_transitions
from elmokit.tasks.encoder import EncoderSettings, input_encoder
from elmokit.tasks.examples import Frame, Place, RoleSentence
from elmokit.tasks.readers import read_roles
from elmokit.tasks.scores import chunks, role_f1, to_bio
from elmokit.tasks.task import Inputs, Item, Scores, Task, Widths, parse_tokens
from elmokit.text.tokenizers import Tokenizer

PREDICATE = "V"
PREFIXES = ("", "C-", "R-")  # a role, what continues it, and what refers to it
TOKENS_AT_A_TIME = 16_384  # answered together, counted once for each predicate
DECODED_AT_A_TIME = 32  # runs: tables of all pairs of tags, of which there are hundreds, then stay in the cache

RowAndPredicate = tuple[int, int]
"""A sentence's row in the batch, and the predicate whose roles are asked for."""


@dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings):
    """How roles are learned."""

    layers: int = 2
    dropout: float = 0.3
    mark: int = 16
    """Width of the vector that tells the predicate from other tokens."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mark < 1:
            raise ConfigError(f"mark is {self.mark}: it must be at least 1")


class Model(nn.Module):
    """A run over the sentence for each predicate; the best tags that the rules allow are its roles."""

    def __init__(self, settings: Settings, labels: Sequence[str], widths: Widths) -> None:
        super().__init__()
        roles = dict.fromkeys(prefix + role for role in sorted({PREDICATE, *labels}) for prefix in PREFIXES)
        self.tags = ("O", *(f"{part}-{role}" for role in roles for part in "BI"))
        self.ids = {tag: number for number, tag in enumerate(self.tags)}
        self.finder = nn.Linear(widths.input, 1)
        self.mark = nn.Embedding(2, settings.mark)
        self.encoder = input_encoder(settings, widths._replace(input=widths.input + settings.mark))
        self.head = nn.Linear(self.encoder.width, len(self.tags))
        self.rules = Crf(len(self.tags), allowed_transitions(self.tags)).requires_grad_(False)
        nn.init.zeros_(self.rules.transitions)  # tags are independent but for the rules

    def scores(self, inputs: Inputs, runs: Sequence[RowAndPredicate]) -> Tensor:
        """What each tag scores at each token in each run, (R, T, K)."""
        rows, predicates = torch.tensor(runs, device=inputs.mask.device).unbind(dim=1)
        marks = self.mark(F.one_hot(predicates, inputs.mask.shape[1]))  # (R, T, M)
        vectors = torch.cat([inputs.vectors[rows], marks], dim=-1)  # (R, T, D + M)
        output = None if inputs.output is None else inputs.output[rows]
        scores: Tensor = self.head(self.encoder(vectors, inputs.mask[rows], output))
        return scores

    def loss(self, inputs: Inputs, items: Sequence[Item]) -> Tensor:
        """The mean cross-entropies of a token's tag in a run, and of its being a predicate."""
        frames = [(row, frame) for row, item in enumerate(items) for frame in item.example.frames]
        runs = [(row, frame.predicate) for row, frame in frames]
        found = self.finder(inputs.vectors)[..., 0]  # (S, T)
        given = torch.zeros_like(found)
        for run in runs:
            given[run] = 1
        lost = F.binary_cross_entropy_with_logits(found[inputs.mask], given[inputs.mask], reduction="sum")
        loss = lost / inputs.mask.sum().clamp(min=1)
        if not runs:
            return loss
        tags = [to_bio(frame.spans, len(items[row].example.tokens)) for row, frame in frames]
        targets = torch.tensor([self.ids[tag] for run in tags for tag in run], device=inputs.mask.device)
        mask = inputs.mask[[row for row, _ in runs]]  # (R, T)
        return loss + F.cross_entropy(self.scores(inputs, runs)[mask], targets)

    def predict(self, inputs: Inputs, items: Sequence[Item]) -> list[RoleSentence]:
        found = (self.finder(inputs.vectors)[..., 0] > 0) & inputs.mask  # (S, T)
        runs = [
            (row, token)
            for row, item in enumerate(items)
            for token in [frame.predicate for frame in item.example.frames] or found[row].nonzero()[:, 0].tolist()
        ]
        frames: list[list[Frame]] = [[] for _ in items]
        step = max(1, TOKENS_AT_A_TIME // inputs.mask.shape[1])
        for first in range(0, len(runs), step):
            part = runs[first : first + step]
            for (row, predicate), tags in zip(part, self.decode(inputs, part), strict=True):
                frames[row].append(Frame(predicate, tuple(chunks(tags))))
        return [replace(item.example, frames=tuple(its)) for item, its in zip(items, frames, strict=True)]

    def decode(self, inputs: Inputs, runs: Sequence[RowAndPredicate]) -> list[list[str]]:
        """The best tags of each run: the predicate's own stands at it, and begins nowhere else."""
        rows, predicates = torch.tensor(runs, device=inputs.mask.device).unbind(dim=1)
        scores = self.scores(inputs, runs).log_softmax(dim=-1)
        own = self.ids[f"B-{PREDICATE}"]
        scores[..., own] = -torch.inf
        scores[torch.arange(len(runs)), predicates] = -torch.inf
        scores[torch.arange(len(runs)), predicates, own] = 0
        parts = zip(scores.split(DECODED_AT_A_TIME), inputs.mask[rows].split(DECODED_AT_A_TIME), strict=True)
        found = chain.from_iterable(self.rules.decode(*part) for part in parts)
        return [[self.tags[number] for number in run] for run in found]


def labels(example: RoleSentence) -> Iterator[tuple[str, Place]]:
    """Every role, without what says that it continues or refers to another."""
    for frame in example.frames:
        for span in frame.spans:
            yield span.label[2:] if span.label.startswith(PREFIXES[1:]) else span.label, example.place


def score(gold: Sequence[RoleSentence], predicted: Sequence[RoleSentence]) -> Scores:
    """F1 of the arguments of the gold predicates."""
    frames = (zip(theirs.frames, ours.frames, strict=False) for theirs, ours in zip(gold, predicted, strict=True))
    roles = role_f1((theirs.spans, ours.spans) for theirs, ours in chain.from_iterable(frames)).all
    return {"f1": roles.f1, "precision": roles.precision, "recall": roles.recall}


def parse(values: Mapping[str, Any], tokenize: Tokenizer) -> RoleSentence:
    """A sentence from its text or its tokens, and its predicates, where "predicates" lists their positions from 0."""
    tokens, predicates = parse_tokens(values, tokenize), values.get("predicates", [])
    if not isinstance(predicates, list) or not all(type(one) is int and 0 <= one < len(tokens) for one in predicates):
        raise DataError(f'"predicates" is {predicates}: expected a list of positions from 0, of {len(tokens)} tokens')
    return RoleSentence(tokens, tuple(Frame(one, ()) for one in predicates))


TASK = Task(
    name="srl",
    settings=Settings,
    model=Model,
    read=lambda path, _: read_roles(path),
    parse=parse,
    prepare=lambda example, _: Item(example, (example.tokens,), runs=max(1, len(example.frames))),
    labels=labels,
    score=score,
)
