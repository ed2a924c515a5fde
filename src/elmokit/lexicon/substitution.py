"""Which words could stand for another: those that mean the same there, and those that merely fit."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, get_args

import numpy as np

from elmokit.elmo import Elmo
from elmokit.embedder import Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.function_words import is_function_word
from elmokit.lexicon.inflections import is_form_of
from elmokit.lexicon.neighbors import WordVectors, check_k
from elmokit.lexicon.occurrences import is_wordlike, unit_vectors
from elmokit.lexicon.predictions import Scores, normalized, position_scores
from elmokit.lexicon.settings import Direction, Kept, View
from elmokit.text.brackets import BracketedWord, read_brackets

# Chosen by GAP on the trial set of SemEval-2007 task 10; see docs/words.md
SHARE = 1.5  # of the mean prediction that is taken off where words are to mean the same: less for being frequent
WEIGHT = 5.0  # of the cosine with the word itself, in nats
MOST_COMPARED = 5000  # candidates that are compared with the word, those that fit best


class Substitute(NamedTuple):
    """A word and its probability in the place of another."""

    word: str
    probability: float


@dataclass(frozen=True)
class Substitutes:
    """What could stand in the place of a word."""

    word: str
    view: View
    rank: int | None  # that of the word itself among all, from 1; none if the vocabulary lacks it
    probability: float | None
    candidates: tuple[Substitute, ...]  # the most probable words


def substitutes(
    elmo: Elmo,
    query: str | BracketedWord,
    *,
    k: int = 10,
    view: View = "means-the-same",
    direction: Direction = "both",
    keep: Collection[Kept] | None = None,
    among: Sequence[str] = (),
    similar: WordVectors | None = None,
) -> Substitutes:
    """The words most probable in the place of the one in brackets, as in "on the [bank] of it".

    What fits, by the words around alone:     p(w) ∝ p(w | before, after)
    What means the same, by the word itself:  p(w) ∝ p(w | before, after) / p̄(w)^(SHARE - 1) * exp(WEIGHT * cos)

    where p̄ is the model's mean prediction, p(w | before, after) what its cloze layer says or, without one,
    p(w | before) p(w | after) / p̄(w), and cos that of the context-free vectors of both words, the model's or those in
    `similar`. What fits has all words; of what means the same the word itself, its inflections, and function
    words and punctuation (unless the word is one) are left out, but for what is to be kept. `among` names the only
    words that there are beside the word itself; those that the vocabulary lacks have the probability 0. <S>, </S> and
    <UNK> are never candidates, and the probabilities of all others, before any are left out, sum to 1.
    """
    check_k(k)
    if view not in get_args(View):
        raise ConfigError(f"unknown view {view!r}: known are {', '.join(get_args(View))}")
    if isinstance(query, str):
        query = read_brackets(query, elmo.tokenizer)
    _, vocabulary = elmo.output_layer()
    scores = _scores(elmo, query, view, direction, among, similar)  # (V,)
    probabilities = dict(zip(vocabulary.words, normalized(scores).tolist(), strict=True))
    if among:
        found = [Substitute(word, probabilities.get(word, 0.0)) for word in dict.fromkeys(among)]
        found.sort(key=lambda one: -one.probability)
    else:
        kept = get_args(Kept) if keep is None and view == "fits" else keep or ()
        ranked = (vocabulary.words[index] for index in np.argsort(-scores, kind="stable"))
        able = (word for word in ranked if probabilities[word] > 0 and is_candidate(word, query.word, kept))
        found = [Substitute(word, probabilities[word]) for word in islice(able, k)]
    own = probabilities.get(query.word, 0.0)
    rank = sum(other > own for other in probabilities.values()) + 1 if own else None
    return Substitutes(query.word, view, rank, own or None, tuple(found[:k]))


def is_candidate(word: str, target: str, kept: Collection[Kept]) -> bool:
    """Whether a word is more than another form of the target, or a function word."""
    if word.casefold() == target.casefold():
        return "same-form" in kept
    if "inflections" not in kept and is_form_of(word, target):
        return False
    return "function-words" in kept or is_content_word(word) or not is_content_word(target)


def is_content_word(word: str) -> bool:
    """Whether it is neither a function word nor punctuation."""
    return is_wordlike(word) and not is_function_word(word)


def _scores(
    elmo: Elmo,
    query: BracketedWord,
    view: View,
    direction: Direction,
    among: Sequence[str],
    similar: WordVectors | None,
) -> Scores:
    """The logarithms of the probabilities but for a constant, (V,); -inf for a word that is not compared."""
    share = SHARE if view == "means-the-same" else 1.0
    scores = position_scores(elmo, query.context.words, query.position, direction=direction, share=share)
    _, vocabulary = elmo.output_layer()
    if among:
        others = np.ones(len(scores), dtype=bool)
        others[vocabulary.encode([word for word in (*among, query.word) if word in vocabulary])] = False
        scores[others] = -np.inf
    if view == "fits":
        return scores
    compared = np.argsort(-scores, kind="stable")[:MOST_COMPARED]
    if query.word in vocabulary:
        compared = np.union1d(compared, vocabulary.encode([query.word]))
    compared = compared[np.isfinite(scores[compared])]
    together = np.full_like(scores, -np.inf)
    cosines = _cosines(elmo, query.word, [vocabulary.words[index] for index in compared], similar)
    together[compared] = scores[compared] + WEIGHT * cosines
    return together


def _cosines(elmo: Elmo, target: str, words: Sequence[str], similar: WordVectors | None) -> Vectors:
    """Of the context-free vectors of words with that of the target, (words,); 0 for a word that has none."""
    if similar is None:
        vectors = elmo.embed([[target, *words]], layers=0)[0]  # (1 + words, D)
    else:
        rows = {word: row for row, word in reversed(list(enumerate(similar.words)))}
        found = [rows.get(word, rows.get(word.lower(), -1)) for word in (target, *words)]
        vectors = similar.vectors[found] * (np.array(found) >= 0)[:, None]
    units = unit_vectors(vectors)
    return np.asarray(units[1:] @ units[0])
