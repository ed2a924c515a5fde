"""The spans of a document: which there are, how each scores as a mention, which stay, and what represents them."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.model.dropout import Dropout


def spans_within(lengths: Tensor, longest: int) -> Tensor:
    """Whether the span of w + 1 tokens from token n on ends within its sentence, (N, W)."""
    places = torch.arange(int(lengths.sum()), device=lengths.device)
    ends = lengths.cumsum(dim=0).repeat_interleave(lengths)  # (N,) of each token's sentence
    return places[:, None] + torch.arange(longest, device=lengths.device) < ends[:, None]


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
        if any(last_end.get(cut, end) > end or first_start.get(cut, start) < start for cut in range(start + 1, end)):
            continue
        kept.append(number)
        last_end[start] = max(end, last_end.get(start, end))
        first_start[end] = min(start, first_start.get(end, start))
    return kept
