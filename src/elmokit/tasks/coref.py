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
from elmokit.model.dropout import Dropout
from elmokit.tasks.encoder import WIDEST, EncoderSettings, input_encoder
from elmokit.tasks.examples import CoreferenceDocument
from elmokit.tasks.readers import read_coreference
from elmokit.tasks.scores import coreference_scores
from elmokit.tasks.task import Inputs, Item, Scores, Task, Tokens, Widths, parse_tokens, token_texts
from elmokit.text.sentences import Span, split_sentences
from elmokit.text.tokenizers import Tokenizer

FEATURE = 20  # width of the vector that stands for a span's length
LONGEST = 100  # every span's words are weighed against each other: 15 take 40 times less than 100
BUCKETS = (2, 3, 4, 5, 8, 16, 32, 64)  # where another kind of distance begins: 1, 2, 3, 4, 5-7, 8-15 and so on
SPANS_AT_A_TIME = 128  # whose pairs are scored together: answers take memory for these alone
RARE = -4.0  # log-odds that a span is a mention: the first epoch need not learn that


@dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings):
    """How mentions are learned."""

    hidden: int = 150
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


def spans_within(lengths: Tensor, longest: int) -> Tensor:
    """Whether the span of w + 1 tokens from token n on ends within its sentence, (N, W)."""
    indices = torch.arange(int(lengths.sum()), device=lengths.device)
    ends = lengths.cumsum(dim=0).repeat_interleave(lengths)  # (N,) of each token's sentence
    return indices[:, None] + torch.arange(longest, device=lengths.device) < ends[:, None]


def windows(values: Tensor, longest: int) -> Tensor:
    """The values of every token and those after it, (N, W, D) of (N, D); zeros beyond the end."""
    return F.pad(values, (0, 0, 0, longest - 1)).unfold(0, longest, 1).transpose(1, 2)


class SpanScorer(nn.Module):
    """s_m(span) = v · relu(W [start; end; head; width]).

    W is taken in its four parts, three of which see tokens before there are spans: far fewer products, the same sum.
    """

    def __init__(self, encoded: int, vectors: int, *, longest: int, feature: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.longest = longest
        self.width = 2 * encoded + vectors + feature
        self.attention = nn.Linear(encoded, 1)
        self.widths = nn.Embedding(longest, feature)
        self.start = nn.Linear(encoded, hidden)
        self.end = nn.Linear(encoded, hidden, bias=False)
        self.head = nn.Linear(vectors, hidden, bias=False)
        self.size = nn.Linear(feature, hidden, bias=False)
        self.dropout = Dropout(dropout)
        self.score = nn.Linear(hidden, 1)

    def forward(self, encoded: Tensor, vectors: Tensor) -> Tensor:
        """What each span of w + 1 tokens from token n on scores, (N, W)."""
        hidden = self.start(encoded)[:, None] + windows(self.end(encoded), self.longest)  # (N, W, H)
        hidden = hidden + self._shares(encoded) @ windows(self.head(vectors), self.longest)
        hidden = (hidden + self.size(self.widths.weight)).relu()
        scores: Tensor = self.score(self.dropout(hidden))[..., 0]
        return scores

    def represent(self, encoded: Tensor, vectors: Tensor, starts: Tensor, sizes: Tensor) -> Tensor:
        """[start; end; head; width] of spans of `sizes` + 1 tokens, (M, G)."""
        inside = (starts[:, None] + torch.arange(self.longest, device=starts.device)).clamp(max=len(vectors) - 1)
        shares = self._shares(encoded)[starts, sizes]  # (M, W)
        head = (shares[:, None] @ vectors[inside])[:, 0]  # (M, D)
        return torch.cat([encoded[starts], encoded[starts + sizes], head, self.widths(sizes)], dim=-1)

    def _shares(self, encoded: Tensor) -> Tensor:
        """The share of each of the next W tokens in the head of each span, (N, W, W)."""
        inside = torch.ones(self.longest, self.longest, dtype=torch.bool, device=encoded.device).tril()
        weights = windows(self.attention(encoded), self.longest)[:, None, :, 0]  # (N, 1, W)
        return weights.masked_fill(~inside, -torch.inf).softmax(dim=-1)


def prune(starts: Sequence[int], ends: Sequence[int], most: int) -> list[int]:
    """The numbers of the spans that stay, given the best first: of two that cross each other only the better may."""
    kept: list[int] = []
    last_end: dict[int, int] = {}  # of the kept spans that begin at a token
    first_start: dict[int, int] = {}  # of the kept spans that end before a token
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if len(kept) >= most:
            break
        inside = range(start + 1, end)
        if any(last_end.get(inner, end) > end or first_start.get(inner, start) < start for inner in inside):
            continue
        kept.append(number)
        last_end[start] = max(end, last_end.get(start, end))
        first_start[end] = min(start, first_start.get(end, start))
    return kept


class PairScorer(nn.Module):
    """s_a(i, j) = v · relu(A g_i + B g_j + C (P g_i ∘ P g_j) + distance(i, j)).

    The product is taken of projections: of the wide spans themselves it would be most of the work of training.
    """

    def __init__(self, width: int, *, most: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.most = most
        self.later = nn.Linear(width, hidden)
        self.earlier = nn.Linear(width, hidden, bias=False)
        self.project = nn.Linear(width, hidden)
        self.product = nn.Linear(hidden, hidden, bias=False)
        self.distance = nn.Embedding(len(BUCKETS) + 1, hidden)
        self.score = nn.Sequential(nn.ReLU(), Dropout(dropout), nn.Linear(hidden, 1))

    def forward(self, spans: Tensor, mentions: Tensor) -> Tensor:
        """s(i, j) = s_m(i) + s_m(j) + s_a(i, j) of (M, G) spans and the K nearest before each, (M, 1 + K).

        The first column is that of no antecedent, which scores 0.
        """
        later, earlier, projected = self.later(spans), self.earlier(spans), self.project(spans)  # (M, H)
        distances = torch.arange(1, min(self.most, len(spans) - 1) + 1, device=spans.device)  # (K,)
        far = self.distance(torch.bucketize(distances, torch.tensor(BUCKETS, device=spans.device), right=True))
        rows = []
        for part in torch.arange(len(spans), device=spans.device).split(SPANS_AT_A_TIME):
            before = nearest_before(part, len(distances))  # (R, K)
            there = before.clamp(min=0)
            hidden = later[part, None] + earlier[there] + far + self.product(projected[part, None] * projected[there])
            scores = self.score(hidden)[..., 0] + mentions[part, None] + mentions[there]
            rows.append(scores.masked_fill(before < 0, -torch.inf))
        return F.pad(torch.cat(rows), (1, 0))


def nearest_before(numbers: Tensor, most: int) -> Tensor:
    """The numbers of the spans before each, the nearest first, (M, K); below 0 where there are none left."""
    return numbers[:, None] - torch.arange(1, most + 1, device=numbers.device)


def gold_links(clusters: Tensor, most: int) -> Tensor:
    """Which antecedents are right, (M, 1 + K), given each span's gold cluster, or -1; the first column is for none."""
    before = nearest_before(torch.arange(len(clusters), device=clusters.device), most)
    same = (clusters[before.clamp(min=0)] == clusters[:, None]) & (before >= 0) & (clusters[:, None] >= 0)
    return torch.cat([~same.any(dim=1, keepdim=True), same], dim=1)


def marginal_loss(scores: Tensor, gold: Tensor) -> Tensor:
    """The mean of -log Σ_gold exp s(i, j) / Σ exp s(i, j): any right antecedent will do."""
    right = scores.masked_fill(~gold, -torch.inf)
    return (scores.logsumexp(dim=1) - right.logsumexp(dim=1)).mean()


def linked(best: Sequence[int]) -> list[list[int]]:
    """The numbers of the spans of each cluster, given how far before each its antecedent is, 0 for none."""
    clusters: list[list[int]] = []
    home: list[int] = []
    for number, distance in enumerate(best):
        if not distance:
            clusters.append([])
        home.append(home[number - distance] if distance else len(clusters) - 1)
        clusters[home[-1]].append(number)
    return clusters


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
        documents = (part.split(counts) for part in (encoded, inputs.vectors, inputs.mask))
        for states, vectors, mask in zip(*documents, strict=True):
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
    return CoreferenceDocument(name, tuple(_sentences(values, tokenize)), ())


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
    prepare=lambda example, _: Item(example, example.sentences or ((),)),  # without sentences, it has an empty one
    score=score,
    training={"batch": 1},  # one document per step
)
