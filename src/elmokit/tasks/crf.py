"""A linear-chain conditional random field, and which tags may follow which."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn


def mark_spans(labels: Iterable[str]) -> bool:
    """Whether tags are the parts of spans, such as B-PER and O, and not parts of speech."""
    return all(label == "O" or (label[1:2] == "-" and label[0] in "BIES") for label in labels)


def allowed_transitions(labels: Sequence[str]) -> Tensor:
    """Whether each tag may follow each, (K + 1, K + 1); the last row is before a sentence, the last column after it.

    Tags like B-PER, I-PER and O bind each other; with E- or S- among them also how a span ends. Others are free.
    """
    if not mark_spans(labels):
        return torch.ones(len(labels) + 1, len(labels) + 1, dtype=torch.bool)
    ends = any(label[0] in "ES" for label in labels)
    names = [*labels, "O"]  # outside a sentence is outside a span
    return torch.tensor([[_may_follow(before, after, ends=ends) for after in names] for before in names])


def _may_follow(before: str, after: str, *, ends: bool) -> bool:
    within = before[0] in "BI"
    if after[0] in "IE":
        return within and before[1:] == after[1:]
    return not (ends and within)


class Crf(nn.Module):
    """p(tags | scores) ∝ exp(Σ_t score(t, tag_t) + Σ_t transition(tag_t-1, tag_t)), with a start and an end.

    All sequences share the probability; `decode` chooses among those that are allowed. (Gold tags may break the rules:
    a likelihood that knew none such would have no finite loss.)
    """

    allowed: Tensor

    def __init__(self, size: int, allowed: Tensor | None = None) -> None:
        super().__init__()
        self.size = size
        self.transitions = nn.Parameter(torch.empty(size + 1, size + 1).uniform_(-0.1, 0.1))
        free = torch.ones(size + 1, size + 1, dtype=torch.bool)
        self.register_buffer("allowed", free if allowed is None else allowed, persistent=False)

    def loss(self, scores: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The mean negative log likelihood of a sentence, from (S, T, K) scores and (S, T) tags."""
        return (self.log_partition(scores, mask) - self.path_score(scores, tags, mask)).mean()

    def path_score(self, scores: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """What one sequence of tags scores, (S,)."""
        bounds = tags.new_full((len(tags), 1), self.size)
        inner = torch.where(mask, tags, self.size)  # beyond the end all is the end
        path = torch.cat([bounds, inner, bounds], dim=1)  # (S, T + 2)
        steps = torch.cat([mask.new_ones(len(mask), 1), mask], dim=1)  # the last step goes from the last tag to the end
        moves = self.transitions[path[:, :-1], path[:, 1:]] * steps
        emitted = scores.gather(2, tags.clamp(0, self.size - 1)[..., None])[..., 0] * mask
        return moves.sum(dim=1) + emitted.sum(dim=1)

    def log_partition(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The log of the summed weights of all sequences, (S,)."""
        inner = self.transitions[:-1, :-1]
        alpha = self.transitions[-1, :-1] + scores[:, 0]  # (S, K)
        for step in range(1, scores.shape[1]):
            longer = torch.logsumexp(alpha[:, :, None] + inner, dim=1) + scores[:, step]
            alpha = torch.where(mask[:, step, None], longer, alpha)
        total = torch.logsumexp(alpha + self.transitions[:-1, -1], dim=1)
        return torch.where(mask[:, 0], total, self.transitions[-1, -1])  # an empty sentence has one sequence

    @torch.no_grad()
    def decode(self, scores: Tensor, mask: Tensor) -> list[list[int]]:
        """The best sequence of each sentence among those allowed."""
        moves = self.transitions.masked_fill(~self.allowed, -torch.inf)
        best = moves[-1, :-1] + scores[:, 0]  # (S, K)
        stay = torch.arange(self.size, device=scores.device).expand(len(scores), -1)
        origins = []
        for step in range(1, scores.shape[1]):
            longer, origin = (best[:, :, None] + moves[:-1, :-1]).max(dim=1)
            running = mask[:, step, None]
            best = torch.where(running, longer + scores[:, step], best)
            origins.append(torch.where(running, origin, stay))
        last = (best + moves[:-1, -1]).argmax(dim=1)  # (S,)
        path = [last]
        for origin in reversed(origins):
            path.append(origin.gather(1, path[-1][:, None])[:, 0])
        tags = torch.stack(path[::-1], dim=1).tolist()  # (S, T)
        return [row[:length] for row, length in zip(tags, mask.sum(dim=1).tolist(), strict=True)]
