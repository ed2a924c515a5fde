"""What a language model expects of a sentence: which words could stand for another, and how surprising each word is."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import log
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elmokit.elmo import Elmo
from elmokit.embedder import Sentence, Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.neighbors import check_k
from elmokit.lexicon.settings import Direction
from elmokit.text.brackets import BracketedWord, read_brackets
from elmokit.text.vocabulary import BOS, EOS, UNK

Scores = NDArray[np.float64]
logger = logging.getLogger(__name__)


class Substitute(NamedTuple):
    """A word and its probability in the place of another."""

    word: str
    probability: float


@dataclass(frozen=True)
class Substitutes:
    """What could stand in the place of a word."""

    word: str
    rank: int | None  # that of the word itself among all, from 1; none if the vocabulary lacks it
    probability: float | None
    candidates: tuple[Substitute, ...]  # the most probable words


class WordSurprisal(NamedTuple):
    """How surprising a word is, in bits."""

    word: str
    forward: float  # after what stands before it
    backward: float  # before what stands after it
    known: bool  # whether it is in the vocabulary; if not, it is <UNK> that is predicted


@dataclass(frozen=True)
class SentenceSurprisal:
    """How surprising each word of a sentence is, and its bounds, in bits."""

    words: tuple[WordSurprisal, ...]
    end: float  # that the sentence ends where it does, read forwards
    begin: float  # that it begins where it does, read backwards


def substitutes(elmo: Elmo, query: str | BracketedWord, *, k: int = 10, direction: Direction = "both") -> Substitutes:
    """The words most probable in the place of the one in brackets, as in "on the [bank] of it", which is not read.

    For both directions p(w) is proportional to p(w | words before) * p(w | words after) / p̄(w), where p̄ is the model's
    mean prediction: without it, the frequency of a word counts twice. <S>, </S> and <UNK> are no candidates, and the
    probabilities of all other words sum to 1.
    """
    check_k(k)
    if isinstance(query, str):
        query = read_brackets(query, elmo.tokenizer)
    probabilities = position_probabilities(elmo, query.context.words, query.position, direction=direction)  # (V,)
    _, vocabulary = elmo.output_layer()
    best = np.argsort(-probabilities, kind="stable")[:k]
    candidates = [Substitute(vocabulary.words[i], float(probabilities[i])) for i in best if probabilities[i] > 0]
    if query.word not in vocabulary or query.word in (BOS, EOS, UNK):
        return Substitutes(query.word, None, None, tuple(candidates))
    own = probabilities[vocabulary.encode([query.word])[0]]
    return Substitutes(query.word, int((probabilities > own).sum()) + 1, float(own), tuple(candidates))


@cache
def _report_no_prior(model: str) -> None:
    logger.info(
        f"{model}: no mean prediction is kept with it, so frequent words are favoured: fine-tune it, or a newer one"
    )


def surprisal(elmo: Elmo, sentence: Sentence) -> SentenceSurprisal:
    """Minus the base 2 logarithm of each word's probability in both directions, the sentence standing by itself.

    The mean over the words and the bound of a direction is the base 2 logarithm of its perplexity.
    """
    [found] = surprisals(elmo, [sentence])
    return found


def surprisals(elmo: Elmo, sentences: Iterable[Sentence]) -> Iterator[SentenceSurprisal]:
    """What `surprisal` says of each of the sentences, in order and in bounded memory."""
    _, vocabulary = elmo.output_layer()
    for words, *directions in elmo.log_likelihoods(sentences):
        forward, backward = ((one.astype(np.float64) / -log(2)).tolist() for one in directions)
        each = zip(words, forward, backward[1:], strict=False)
        found = tuple(WordSurprisal(word, after, before, word in vocabulary) for word, after, before in each)
        yield SentenceSurprisal(found, end=forward[-1], begin=backward[0])


def position_probabilities(elmo: Elmo, sentence: Sentence, position: int, *, direction: Direction = "both") -> Scores:
    """The probability of every word of the vocabulary at one position of a sentence, (V,)."""
    if direction not in get_args(Direction):
        raise ConfigError(f"unknown direction {direction!r}: known are {', '.join(get_args(Direction))}")
    _, forward, backward = elmo.predictions(sentence, positions=[position])
    [found] = joined_probabilities(elmo, forward, backward, direction=direction)
    return np.asarray(found)


def joined_probabilities(elmo: Elmo, forward: Vectors, backward: Vectors, *, direction: Direction) -> Scores:
    """The probability of every word but <S>, </S> and <UNK>, (T, V), from the log probabilities of both directions."""
    experts = {"forward": forward, "backward": backward}  # (T, V) each
    chosen = [expert for name, expert in experts.items() if direction in (name, "both")]
    scores: Scores = np.stack(chosen).sum(axis=0, dtype=np.float64)
    if direction == "both":
        if elmo.prior is None:
            _report_no_prior(elmo.source)
        else:
            scores -= elmo.prior.numpy()
    _, vocabulary = elmo.output_layer()
    scores[:, vocabulary.encode([word for word in (BOS, EOS, UNK) if word in vocabulary])] = -np.inf
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
