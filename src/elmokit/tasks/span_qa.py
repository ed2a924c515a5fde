"""The piece of a context that answers a question: attention flow as in BiDAF (Seo et al. 2017), then two pointers."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.errors import ConfigError
from elmokit.model.dropout import Dropout
from elmokit.tasks.encoder import Encoder, EncoderSettings, input_encoder, masked_softmax
from elmokit.tasks.examples import Answer, Question
from elmokit.tasks.readers import read_questions
from elmokit.tasks.scores import squad_scores
from elmokit.tasks.task import Inputs, Item, Scores, Task, Tokens, Widths, parse_two_texts, token_texts
from elmokit.text.sentences import Span
from elmokit.text.tokenizers import Token, Tokenizer


@dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings):
    """How answers are learned and found."""

    hidden: int = 100
    """Width of the BiLSTMs in each direction."""
    dropout: float = 0.2
    """Share of their outputs that are dropped in training."""
    longest: int = 20
    """Tokens that an answer has at most."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest < 1:
            raise ConfigError(f"longest is {self.longest}: an answer has at least 1 token")


class AttentionFlow(nn.Module):
    """[h; ũ; h∘ũ; h∘h̃] of each token of a context.

    Context and question are alike by s(t, j) = v·h_t + w·u_j + z·(h_t∘u_j). ũ is the question by softmax_j(s), and h̃,
    the same for all tokens, the context by softmax_t(max_j(s)). To an empty question both are zeros.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.context = nn.Linear(width, 1, bias=False)
        self.question = nn.Linear(width, 1, bias=False)
        self.both = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5))

    def forward(self, context: Tensor, mask: Tensor, question: Tensor, asked: Tensor) -> Tensor:
        """From (B, T, W) and (B, J, W) with their masks to (B, T, 4W)."""
        likeness = self.context(context) + self.question(question).transpose(1, 2)  # (B, T, J)
        likeness = likeness + (context * self.both) @ question.transpose(1, 2)
        to_question = masked_softmax(likeness, asked[:, None]) @ question  # (B, T, W)
        best = likeness.masked_fill(~asked[:, None], torch.finfo(likeness.dtype).min).amax(dim=-1)  # (B, T)
        to_context = masked_softmax(best, mask & asked.any(dim=1, keepdim=True))[:, None] @ context  # (B, 1, W)
        return torch.cat([context, to_question, context * to_question, context * to_context], dim=-1)


class Model(nn.Module):
    """A BiLSTM reads context and question, attention flows between them; two more BiLSTMs find start and end."""

    def __init__(self, settings: Settings, labels: Sequence[str], widths: Widths) -> None:  # noqa: ARG002
        super().__init__()
        hidden, dropout = settings.hidden, settings.dropout
        self.longest = settings.longest
        self.encoder = input_encoder(settings, widths)
        self.flow = AttentionFlow(self.encoder.width)
        self.projection = nn.Sequential(nn.Linear(4 * self.encoder.width, 2 * hidden), nn.ReLU(), Dropout(dropout))
        self.modelling = Encoder(2 * hidden, hidden, dropout=dropout)
        self.ending = Encoder(4 * hidden, hidden, dropout=dropout)
        self.start = nn.Linear(4 * hidden, 1)
        self.end = nn.Linear(4 * hidden, 1)

    def pointers(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """The log probability of each token to be an answer's first, and its last, both (B, T)."""
        (context, mask), (question, asked) = (self._encoded(inputs, text) for text in range(2))
        flow = self.flow(context, mask, question, asked)  # (B, T, 4W)
        seen = self.projection(flow)  # (B, T, 2 * hidden)
        started = torch.cat([seen, self.modelling(seen, mask)], dim=-1)  # (B, T, 4 * hidden)
        ended = torch.cat([seen, self.ending(started, mask)], dim=-1)
        return _log_softmax(self.start(started)[..., 0], mask), _log_softmax(self.end(ended)[..., 0], mask)

    def _encoded(self, inputs: Inputs, text: int) -> tuple[Tensor, Tensor]:
        """Every second text, (B, T, W), and its mask; T is their own, for questions are shorter than contexts."""
        mask = inputs.mask[text::2]
        width = max(1, int(mask.sum(dim=1).max()))
        mask, vectors = mask[:, :width], inputs.vectors[text::2, :width]
        output = None if inputs.output is None else inputs.output[text::2, :width]
        return self.encoder(vectors, mask, output), mask

    def loss(self, inputs: Inputs, items: Sequence[Item]) -> Tensor:
        """The mean negative log likelihood of finding any of the gold answers."""
        likelihoods = []
        for start, end, item in zip(*self.pointers(inputs), items, strict=True):
            spans = item.extra[1]
            found = start[[span.start for span in spans]] + end[[span.end - 1 for span in spans]]
            likelihoods.append(found.logsumexp(dim=0))
        return -torch.stack(likelihoods).mean()

    def predict(self, inputs: Inputs, items: Sequence[Item]) -> list[Question]:
        """The questions with the likeliest answer; none from an empty context."""
        questions = []
        for item, span in zip(items, best_spans(*self.pointers(inputs), longest=self.longest), strict=True):
            tokens, answers = item.extra[0], tuple[Answer, ...]()
            if tokens:
                start, end = tokens[span.start].start, tokens[span.end - 1].end
                answers = (Answer(item.example.context[start:end], start),)
            questions.append(replace(item.example, answers=answers))
        return questions


def best_spans(start: Tensor, end: Tensor, *, longest: int) -> list[Span]:
    """For each row of scores, (B, T), the span with the highest start[first] + end[last], of at most so many tokens."""
    longest = min(longest, start.shape[1])
    windows = F.pad(end, (0, longest - 1), value=-torch.inf).unfold(1, longest, 1)  # (B, T, longest): end[t + length]
    best = (start[..., None] + windows).flatten(1).argmax(dim=1).tolist()
    return [Span(index // longest, index // longest + index % longest + 1) for index in best]


def covered(tokens: Sequence[Token], start: int, end: int) -> Span:
    """The tokens that have a character of text[start:end]; an empty span if none has."""
    first = bisect_right(tokens, start, key=attrgetter("end"))
    return Span(first, max(first, bisect_left(tokens, end, key=attrgetter("start"))))


def _log_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).log_softmax(dim=-1)


def prepare(example: Question, tokenize: Tokenizer) -> Item:
    """Context and question in tokens; beside them the former with their indices, and the spans of the answers."""
    tokens, context = _context_tokens(example.context, tokenize)
    found = (covered(tokens, answer.start, answer.end) for answer in example.answers)
    spans = tuple(dict.fromkeys(span for span in found if span.start < span.end))
    if example.answers and not spans:
        raise example.place.error("none of its answers has a token of the context")
    return Item(example, (context, token_texts(example.question, tokenize)), (tokens, spans))


@lru_cache(maxsize=1)
def _context_tokens(context: str, tokenize: Tokenizer) -> tuple[tuple[Token, ...], Tokens]:
    """The same objects for all questions about a context, which follow each other."""
    tokens = tuple(tokenize(context))
    return tokens, tuple(token.text for token in tokens)


def score(gold: Sequence[Question], predicted: Sequence[Question]) -> Scores:
    """SQuAD's F1 and exact match."""
    expected, found = ([[answer.text for answer in one.answers] for one in part] for part in (gold, predicted))
    scores = squad_scores((ours[0] if ours else "", theirs) for ours, theirs in zip(found, expected, strict=True))
    return {"f1": scores.f1, "exact": scores.exact}


TASK = Task(
    name="span_qa",
    settings=Settings,
    model=Model,
    read=lambda path, _: read_questions(path),
    parse=lambda values, _: Question(str(values.get("id", "")), *parse_two_texts(values, "question", "context"), ()),
    prepare=prepare,
    score=score,
)
