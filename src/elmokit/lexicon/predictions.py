"""What a language model expects of a sentence: which words could stand for another, and how surprising each word is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from elmokit.elmo import Elmo
from elmokit.embedder import Sentence
from elmokit.errors import CheckpointError, ConfigError
from elmokit.lexicon.neighbors import check_k
from elmokit.lexicon.settings import Direction
from elmokit.model.softmax import Softmax
from elmokit.text.brackets import BracketedWord, read_brackets
from elmokit.text.vocabulary import BOS, EOS, UNK, Vocabulary


class Substitute(NamedTuple):
    """A word and its probability in the place of another."""

    word: str
    probability: float


@dataclass(frozen=True)
class Substitutes:
    """What could stand in the place of a word."""

    word: str
    """The one that does."""
    rank: int | None
    """Its own rank among all words, from 1; none if the vocabulary lacks it."""
    probability: float | None
    """Its own."""
    candidates: tuple[Substitute, ...]
    """The most probable words."""


class WordSurprisal(NamedTuple):
    """How surprising a word is, in bits."""

    word: str
    forward: float
    """After what stands before it."""
    backward: float
    """Before what stands after it."""
    known: bool
    """Whether it is in the vocabulary; if not, it is <UNK> that is predicted."""


@dataclass(frozen=True)
class SentenceSurprisal:
    """How surprising each word of a sentence is, and its bounds, in bits."""

    words: tuple[WordSurprisal, ...]
    end: float
    """That the sentence ends where it does, read forwards."""
    begin: float
    """That it begins where it does, read backwards."""


def substitutes(elmo: Elmo, query: str | BracketedWord, *, k: int = 10, direction: Direction = "both") -> Substitutes:
    """The words most probable in the place of the one in brackets, as in "on the [bank] of it", which is not read.

    For both directions p(w) is proportional to p(w | words before) * p(w | words after), a product of two experts;
    <S>, </S> and <UNK> are no candidates, and the probabilities of all other words sum to 1.
    """
    check_k(k)
    if isinstance(query, str):
        query = read_brackets(query, elmo.tokenizer)
    _, vocabulary = _predictor(elmo)
    probabilities = position_probabilities(elmo, query.context.words, query.position, direction=direction)  # (V,)
    best = probabilities.topk(min(k, len(vocabulary)))
    candidates = [
        Substitute(vocabulary.words[index], probability)
        for index, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        if probability > 0
    ]
    if query.word not in vocabulary or query.word in (BOS, EOS, UNK):
        return Substitutes(query.word, None, None, tuple(candidates))
    own = probabilities[vocabulary.encode([query.word])[0]]
    return Substitutes(query.word, int((probabilities > own).sum()) + 1, own.item(), tuple(candidates))


def surprisal(elmo: Elmo, sentence: Sentence) -> SentenceSurprisal:
    """Minus the base 2 logarithm of each word's probability in both directions, the sentence standing by itself.

    The mean over the words and the bound of a direction is the base 2 logarithm of its perplexity.
    """
    [words] = elmo.tokenize([sentence])
    softmax, vocabulary = _predictor(elmo)
    targets = torch.from_numpy(vocabulary.encode([BOS, *words, EOS])).to(elmo.device)  # (T + 2,)
    directions = zip(_predictions(elmo, words), (targets[1:], targets[:-1]), strict=True)
    forward, backward = ((softmax.log_likelihood(*one).double() / -log(2)).tolist() for one in directions)
    each = zip(words, forward, backward[1:], strict=False)
    return SentenceSurprisal(
        tuple(WordSurprisal(word, after, before, word in vocabulary) for word, after, before in each),
        end=forward[-1],
        begin=backward[0],
    )


def position_probabilities(elmo: Elmo, words: Sequence[str], position: int, *, direction: Direction = "both") -> Tensor:
    """The probability of every word of the vocabulary at one position of a sentence, (V,) in float64."""
    if direction not in get_args(Direction):
        raise ConfigError(f"unknown direction {direction!r}: known are {', '.join(get_args(Direction))}")
    softmax, vocabulary = _predictor(elmo)
    forward, backward = _predictions(elmo, words)
    experts = {"forward": forward[position], "backward": backward[position + 1]}  # (P,) each
    rows = torch.stack([expert for name, expert in experts.items() if direction in (name, "both")])  # (1 or 2, P)
    scores = softmax.log_probabilities(rows).double().sum(dim=0).cpu()  # (V,)
    specials = [word for word in (BOS, EOS, UNK) if word in vocabulary]
    scores[torch.from_numpy(vocabulary.encode(specials))] = -torch.inf
    return scores.softmax(dim=0)


def _predictor(elmo: Elmo) -> tuple[Softmax, Vocabulary]:
    softmax, vocabulary = elmo.language_model.softmax, elmo.vocabulary
    if softmax is None or vocabulary is None:
        raise CheckpointError(
            f"{elmo.source}: the model has no softmax, so it cannot predict words: train one, or `elmokit finetune` it"
        )
    return softmax, vocabulary


def _predictions(elmo: Elmo, words: Sequence[str]) -> tuple[Tensor, Tensor]:
    """What each direction puts out for the words and its bound, (T + 1, P) each.

    Forward row k has read up to word k - 1 and predicts word k, the last row </S>. Backward row k has read down to
    word k, or </S>, and predicts the one before it, the first row <S>.
    """
    top = elmo.run([[BOS, *words, EOS]], gradients=False)[-1]  # (T + 2, 2P)
    forward, backward = top.chunk(2, dim=-1)
    return forward[:-1], backward[1:]
