"""Which mentions are the same: spans ranked as antecedents of one another (Lee et al. 2017), over a whole document.

The BiLSTM runs over sentences, the ranking over the document. With `singletons` all gold mentions, also those that are
mentioned once, are learned as mentions, and a span that scores above 0 as one without being linked is a cluster of one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.coref_spans import PairScorer, SpanScorer, gold_links, linked, marginal_loss, prune, spans_within
from elmokit.tasks.encoder import WIDEST, EncoderSettings, input_encoder
from elmokit.tasks.examples import CoreferenceDocument, Place
from elmokit.tasks.readers import read_coreference
from elmokit.tasks.scores import coreference_scores
from elmokit.tasks.task import Inputs, Item, Scores, Task, Tokens, Widths, parse_tokens, token_texts
from elmokit.text.sentences import Span, split_sentences
from elmokit.text.tokenizers import Tokenizer

FEATURE = 20  # width of the vector that stands for a span's length
LONGEST = 100  # every span's words are weighed against each other: 15 take 40 times less than 100
RARE = -4.0  # log-odds that a span is a mention: the first epoch need not learn that


@dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings):
    """How mentions are learned."""

    hidden: int = 150
    """Width of the BiLSTM in each direction."""
    dropout: float = 0.3
    """Share of the values of every hidden layer that are dropped in training."""
    scorer: int = 150
    """Width of the layers that score mentions and pairs."""
    longest: int = 15
    """Tokens of a mention, at most."""
    spans_per_token: float = 0.25
    """Spans that are ranked, the best as mentions, for each token of a document."""
    antecedents: int = 100
    """Spans before each that are ranked as its antecedent, the nearest."""
    singletons: bool = True
    """Learn and answer mentions that are alone too; turn it off for data that marks none, as OntoNotes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in (("scorer", WIDEST), ("longest", LONGEST), ("antecedents", WIDEST)):
            if not 1 <= getattr(self, name) <= most:
                raise ConfigError(f"{name} is {getattr(self, name)}: it goes from 1 to {most}")
        if not 0 < self.spans_per_token <= LONGEST:
            raise ConfigError(f"spans_per_token is {self.spans_per_token}: it is above 0 and at most {LONGEST}")


class Ranking(NamedTuple):
    """What a model makes of a document."""

    mentions: Tensor
    """What every span of w + 1 tokens from token n on scores as a mention, (N, W)."""
    within: Tensor
    """Whether there is such a span, (N, W)."""
    spans: list[Span]
    """The M of them that stay, in order."""
    kept: Tensor
    """What these score as mentions, (M,)."""
    links: Tensor
    """What it scores that they have no antecedent, or one of the K spans before them, the nearest first, (M, 1 + K)."""


class Model(nn.Module):
    """Spans scored as mentions; those that stay, as antecedents of each other."""

    def __init__(self, settings: Settings, labels: Sequence[str], widths: Widths) -> None:  # noqa: ARG002
        super().__init__()
        self.settings = settings
        self.encoder = input_encoder(settings, widths)
        sizes: dict[str, Any] = {"hidden": settings.scorer, "dropout": settings.dropout}
        self.spans = SpanScorer(self.encoder.width, widths.input, longest=settings.longest, feature=FEATURE, **sizes)
        self.pairs = PairScorer(self.spans.width, most=settings.antecedents, **sizes)
        if settings.singletons:
            nn.init.constant_(self.spans.score.bias, RARE)

    def rank(self, encoded: Tensor, vectors: Tensor, lengths: Tensor) -> Ranking:
        """Rank the spans of a document of (N, H) tokens in sentences of so many tokens."""
        mentions = self.spans(encoded, vectors)  # (N, W)
        within = spans_within(lengths, self.settings.longest)
        candidates = within.nonzero()  # (C, 2)
        best = mentions[within].argsort(descending=True, stable=True)
        starts, sizes = candidates[best].unbind(dim=1)
        most = math.ceil(self.settings.spans_per_token * len(encoded))
        chosen = best[prune(starts.tolist(), (starts + sizes + 1).tolist(), most)].sort().values  # (M,)
        starts, sizes = candidates[chosen].unbind(dim=1)
        spans = [Span(start, start + size + 1) for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)]
        kept = mentions[starts, sizes]  # (M,)
        links = self.pairs(self.spans.represent(encoded, vectors, starts, sizes), kept)
        return Ranking(mentions, within, spans, kept, links)

    def rankings(self, inputs: Inputs, items: Sequence[Item]) -> Iterator[Ranking | None]:
        """The ranking of each document; None of an empty one."""
        encoded = self.encoder(inputs.vectors, inputs.mask, inputs.output)  # (S, T, H)
        counts = [len(item.sentences) for item in items]
        for states, vectors, mask in zip(
            encoded.split(counts), inputs.vectors.split(counts), inputs.mask.split(counts), strict=True
        ):
            yield self.rank(states[mask], vectors[mask], mask.sum(dim=1)) if mask.any() else None

    def loss(self, inputs: Inputs, items: Sequence[Item]) -> Tensor:
        """The mean over documents of what their spans' antecedents, and which spans are mentions, lose."""
        pairs = zip(items, self.rankings(inputs, items), strict=True)
        losses = [self._loss(ranking, item.example) for item, ranking in pairs if ranking is not None]
        return torch.stack(losses).mean() if losses else self.spans.attention.bias.sum() * 0

    def _loss(self, ranking: Ranking, gold: CoreferenceDocument) -> Tensor:
        clusters = {mention: number for number, cluster in enumerate(gold.clusters) for mention in cluster}
        ids = torch.tensor([clusters.get(span, -1) for span in ranking.spans], device=ranking.links.device)
        loss = marginal_loss(ranking.links, gold_links(ids, ranking.links.shape[1] - 1))
        if not self.settings.singletons:
            return loss
        targets = torch.zeros_like(ranking.mentions)
        for start, end in clusters:
            if end - start <= self.settings.longest:
                targets[start, end - start - 1] = 1
        within = ranking.within
        lost = F.binary_cross_entropy_with_logits(ranking.mentions[within], targets[within], reduction="sum")
        return loss + lost / len(ranking.spans)

    def predict(self, inputs: Inputs, items: Sequence[Item]) -> list[CoreferenceDocument]:
        """The documents with the clusters of their mentions."""
        found = (() if ranking is None else self._clusters(ranking) for ranking in self.rankings(inputs, items))
        return [replace(item.example, clusters=clusters) for item, clusters in zip(items, found, strict=True)]

    def _clusters(self, ranking: Ranking) -> tuple[tuple[Span, ...], ...]:
        alone = (ranking.kept > 0).tolist() if self.settings.singletons else [False] * len(ranking.spans)
        clusters = linked(ranking.links.argmax(dim=1).tolist())
        chosen = [cluster for cluster in clusters if len(cluster) > 1 or alone[cluster[0]]]
        return tuple(tuple(ranking.spans[number] for number in cluster) for cluster in chosen)


def score(gold: Sequence[CoreferenceDocument], predicted: Sequence[CoreferenceDocument]) -> Scores:
    """CoNLL's mean of three F1, and these; singletons count, where there are any."""
    pairs = ((theirs.clusters, ours.clusters) for theirs, ours in zip(gold, predicted, strict=True))
    scores = coreference_scores(pairs)
    return {"average": scores.average} | {name: measure.f1 for name, measure in scores._asdict().items()}


def parse(values: Mapping[str, Any], tokenize: Tokenizer) -> CoreferenceDocument:
    """A document from its "sentences", lists of tokens; or from the "tokens" of a single one; or from its "text"."""
    name = values.get("name", "")
    if not isinstance(name, str):
        raise DataError(f'"name" is {name}: expected a string')
    return CoreferenceDocument(name, tuple(_sentences(values, tokenize)), (), Place("", 0))


def _sentences(values: Mapping[str, Any], tokenize: Tokenizer) -> list[Tokens]:
    sentences, text = values.get("sentences"), values.get("text")
    if sentences is None and "tokens" not in values and isinstance(text, str):
        return [token_texts(text[start:end], tokenize) for start, end in split_sentences(text)]
    if sentences is None:
        return [parse_tokens(values, tokenize)]
    try:
        return [tuple(sentence) for sentence in msgspec.convert(sentences, list[list[str]])]
    except msgspec.ValidationError:
        raise DataError('"sentences" is expected to be a list of lists of strings') from None


TASK = Task(
    name="coref",
    settings=Settings,
    model=Model,
    read=lambda path, _: read_coreference(path),
    parse=parse,
    prepare=lambda example, _: Item(
        example, example.sentences or ((),)
    ),  # a document without sentences has an empty one
    score=score,
    training={"batch": 1},  # one document per step
)
