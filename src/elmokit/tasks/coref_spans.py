"""The spans of a document: how each scores as a mention, which stay, how pairs score, and what clusters they make."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.model.dropout import Dropout

BUCKETS = (2, 3, 4, 5, 8, 16, 32, 64)  # where another kind of distance begins: 1, 2, 3, 4, 5-7, 8-15 and so on
SPANS_AT_A_TIME = 128  # whose pairs are scored together: answers take memory for these alone


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
        if any(
            last_end.get(inner, end) > end or first_start.get(inner, start) < start for inner in range(start + 1, end)
        ):
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
        return nn.functional.pad(torch.cat(rows), (1, 0))


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
