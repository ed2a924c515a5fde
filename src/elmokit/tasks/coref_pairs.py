"""Spans and what came before them: how pairs score, which of them gold clusters link, and the clusters links make."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmokit.model.dropout import Dropout

BUCKETS = (2, 3, 4, 5, 8, 16, 32, 64)  # where another kind of distance begins: 1, 2, 3, 4, 5-7, 8-15 and so on
SPANS_AT_A_TIME = 128  # whose pairs are scored together: answers take memory for these alone


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
