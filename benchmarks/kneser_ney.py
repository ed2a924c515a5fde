#!/usr/bin/env python3
"""The perplexity of an n-gram model on the held-out text of a run: what a biLM has to be better than.

    python benchmarks/kneser_ney.py my-model               3-grams of the text that the run was trained on
    python benchmarks/kneser_ney.py my-model --order 5     5-grams
    python benchmarks/kneser_ney.py my-model --text held-out.txt.xz --text novels.txt.xz
                                                           on these texts instead of the run's held-out one

The vocabulary is the run's, and the words predicted are those of `elmokit perplexity`, each way. Smoothing is modified
Kneser-Ney (Chen and Goodman, 1998), interpolated, nothing pruned, as KenLM's lmplz estimates it:

    p(w | h) = (a(hw) - D(a(hw))) / sum_v a(hv) + gamma(h) p(w | h without its first word)
    gamma(h) = sum_v D(a(hv)) / sum_v a(hv)

a counts the occurrences of an n-gram in the highest order or at the beginning of a sentence, else the distinct words
before it. Below the unigrams all words are equally likely, but for the one that begins sentences: it never follows.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import elmokit
from elmokit.checkpoints.native import VOCABULARY
from elmokit.errors import ConfigError, DataError, ElmoError
from elmokit.pretrain.corpus import Corpus, read_corpus
from elmokit.pretrain.evaluation import Perplexity
from elmokit.pretrain.run import CORPUS
from elmokit.text.corpus import open_corpus
from elmokit.text.numbering import BOS_ID, UNK_ID
from elmokit.text.vocabulary import BOS, EOS, read_vocabulary

FALLBACK = (0.0, 0.5, 1.0, 1.5)  # KenLM's

Ids = NDArray[np.integer]


class Counts(NamedTuple):
    """The distinct n-grams of one order; an n-gram's number is its place among them."""

    keys: NDArray[np.int64]
    """The number of the n-gram without its last word, times the vocabulary's size, plus that word; ascending."""
    counts: NDArray[np.int64]
    """a, as above; 0 for the word that begins sentences."""


class Estimates(NamedTuple):
    """What one order has to say of a probability."""

    keys: NDArray[np.int64]
    """Those of the counts."""
    shares: NDArray[np.float64]
    """Of each n-gram: its discounted count by the sum over its context."""
    gammas: NDArray[np.float64]
    """Of each n-gram of the order below, as a context: the weight of that order."""


class KneserNey:
    """An n-gram model of sentences end to end; the first word of all, and only it, begins each of them.

    The ids of a corpus are such sentences (<S> word… </S>); from last to first they still are, to be read backwards.
    """

    def __init__(self, ids: Ids, order: int, *, vocab_size: int) -> None:
        if order < 1:
            raise ConfigError(f"there are no n-grams of order {order}: the least is 1")
        self.vocab_size = vocab_size
        self.start = int(ids[0]) if len(ids) else -1
        self._check(ids)
        self.orders: list[Estimates] = []
        contexts = 1
        for counts in count_ngrams(ids, order, vocab_size=vocab_size):
            self.orders.append(_estimate(counts, contexts, vocab_size))
            contexts = len(counts.keys)

    def log_probabilities(self, ids: Ids) -> NDArray[np.float64]:
        """Natural logarithms, one for each word but those that begin a sentence."""
        self._check(ids)
        starts = ids == self.start  # (N,)
        probabilities = np.full(len(ids), 1 / (self.vocab_size - 1))  # (N,)
        contexts = np.zeros(len(ids), dtype=np.int32)  # (N,)
        for keys, shares, gammas in self.orders:
            known = np.flatnonzero(contexts >= 0)
            probabilities[known] *= gammas[contexts[known]]
            wanted = _keys(contexts[known], ids[known], self.vocab_size)
            numbers = np.searchsorted(keys, wanted)
            seen = np.searchsorted(keys, wanted, side="right") > numbers
            known, numbers = known[seen], numbers[seen]
            probabilities[known] += shares[numbers]
            contexts = _contexts(_spread(numbers, known, len(ids)), starts)
        logs: NDArray[np.float64] = np.log(probabilities[~starts])
        return logs

    def _check(self, ids: Ids) -> None:
        if not len(ids):
            raise DataError("there is no text to count n-grams of")
        if ids[0] != self.start:
            raise DataError(f"the text begins with id {ids[0]}, but the sentences of this model with {self.start}")
        if ids.min() < 0 or ids.max() >= self.vocab_size:
            raise DataError(f"ids go from {ids.min()} to {ids.max()}, but the vocabulary has {self.vocab_size} words")


def count_ngrams(ids: Ids, order: int, *, vocab_size: int) -> Iterator[Counts]:
    """The n-grams of each order from 1 on; none goes beyond its sentence."""
    starts = ids == ids[0]  # (N,)
    numbers_below = contexts = np.zeros(len(ids), dtype=np.int32)  # (N,), of the n-gram without any word
    below = None
    for _ in range(order):
        inside = contexts >= 0
        wanted = _keys(contexts[inside], ids[inside], vocab_size)
        keys, numbers, counts = np.unique(wanted, return_inverse=True, return_counts=True)
        counts[keys == ids[0]] = 0  # a unigram: longer n-grams do not end with it
        if below:
            suffixes = np.empty(len(keys), dtype=np.int32)
            suffixes[numbers] = numbers_below[inside]  # the same for all occurrences
            yield _count_words_before(below, suffixes)
        below = Counts(keys, counts)
        numbers_below = _spread(numbers, inside, len(ids))
        contexts = _contexts(numbers_below, starts)
    assert below
    yield below


def _count_words_before(below: Counts, suffixes: NDArray[np.int32]) -> Counts:
    """Of each n-gram, how many longer ones end with it; where none does, it begins a sentence and keeps its count."""
    words_before = np.bincount(suffixes, minlength=len(below.keys))
    return below._replace(counts=np.where(words_before, words_before, below.counts))


def discounts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """D of counts 0, 1, 2, and 3 or more; a fallback where there are too few n-grams to tell."""
    n = np.bincount(counts[counts <= 4], minlength=5)  # (5,)
    if not n[1:4].all():
        return np.array(FALLBACK)
    y = n[1] / (n[1] + 2 * n[2])
    found = np.array([0.0, *(k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))])
    # A discount of 0 would leave nothing for words not seen.
    return found if (found[1:] > 0).all() else np.array(FALLBACK)


def _estimate(ngrams: Counts, contexts: int, vocab_size: int) -> Estimates:
    context = ngrams.keys // vocab_size
    taken = discounts(ngrams.counts)[np.minimum(ngrams.counts, 3)]
    totals = np.bincount(context, weights=ngrams.counts, minlength=contexts)
    gammas = np.ones(contexts)  # of what ends a sentence, which is no context
    np.divide(np.bincount(context, weights=taken, minlength=contexts), totals, out=gammas, where=totals > 0)
    return Estimates(ngrams.keys, (ngrams.counts - taken) / totals[context], gammas)


def _keys(contexts: Ids, words: Ids, vocab_size: int) -> NDArray[np.int64]:
    return contexts.astype(np.int64) * vocab_size + words


def _spread(numbers: Ids, places: NDArray[np.bool_] | Ids, length: int) -> NDArray[np.int32]:
    """The number of the n-gram that ends at each place, -1 if there is none."""
    spread = np.full(length, -1, dtype=np.int32)  # (N,)
    spread[places] = numbers
    return spread


def _contexts(numbers: NDArray[np.int32], starts: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The number of the n-gram before each word within its sentence, -1 if there is none."""
    contexts = np.roll(numbers, 1)  # (N,)
    contexts[starts] = -1
    return contexts


class HeldOut(NamedTuple):
    """Text to measure on."""

    ids: Ids
    """Of the vocabulary, <S> word… </S> for each sentence."""
    tokens: int
    unknown: int
    """Tokens that count as <UNK>."""


def held_out_of(corpus: Corpus) -> HeldOut:
    """What the run held out."""
    if not corpus.valid.tokens:
        raise DataError(f"{corpus.folder}: no text is held out to measure on")
    return HeldOut(_known(corpus.valid.ids, corpus), corpus.valid.tokens, corpus.valid.unknown)


def read_text(path: Path, elmo: elmokit.Elmo) -> HeldOut:
    """A text as `elmokit perplexity` reads it."""
    assert elmo.vocabulary is not None
    contexts = open_corpus([path], elmo.tokenizer, repeatable=False)
    sentences = [elmo.vocabulary.encode([BOS, *context.words, EOS]) for context in contexts]
    if not sentences:
        raise DataError(f"{path}: there is no text to measure on")
    ids = np.concatenate(sentences)
    return HeldOut(ids, len(ids) - 2 * len(sentences), int((ids == UNK_ID).sum()))


def perplexities_of(corpus: Corpus, order: int, texts: Sequence[HeldOut]) -> list[Perplexity]:
    """The perplexity of each text for n-grams of the training text, both with the corpus's vocabulary."""
    train, losses = _known(corpus.train.ids, corpus), []
    for step in (1, -1):
        ngrams = KneserNey(train[::step], order, vocab_size=len(corpus.vocabulary))
        losses.append([-ngrams.log_probabilities(text.ids[::step]).mean() for text in texts])
        del ngrams  # gigabytes: before those of the other direction are counted
    return [
        Perplexity(math.exp(forward), math.exp(backward), int((text.ids != BOS_ID).sum()), text.unknown)
        for text, forward, backward in zip(texts, *losses, strict=True)
    ]


def _known(ids: Ids, corpus: Corpus) -> Ids:
    return np.where(ids < len(corpus.vocabulary), ids, UNK_ID)


def read_run(folder: Path) -> Corpus:
    """The corpus of a run, with the vocabulary of its model."""
    vocabulary = read_vocabulary(folder / VOCABULARY)
    corpus = read_corpus(folder / CORPUS, vocab_size=len(vocabulary))
    if new_words := len(vocabulary) - len(corpus.vocabulary):
        corpus = read_corpus(folder / CORPUS, vocab_size=len(vocabulary), new_words=new_words)
    if corpus.vocabulary.words != vocabulary.words:
        raise DataError(f"{folder}: the words of {VOCABULARY} are not those of {CORPUS}: are they of the same run?")
    return corpus


def main() -> None:
    """Measure, and print as `elmokit perplexity` does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a run of `elmokit pretrain`")
    parser.add_argument("--order", type=int, default=3, help="words in an n-gram")
    parser.add_argument("--text", type=Path, action="append", default=[], help="text to measure on")
    args = parser.parse_args()
    try:
        corpus = read_run(args.run)
        elmo = elmokit.load(args.run) if args.text else None
        texts = [read_text(path, elmo) for path in args.text] if elmo else [held_out_of(corpus)]
        results = perplexities_of(corpus, args.order, texts)
    except ElmoError as error:
        parser.exit(2, f"kneser_ney: {error}\n")
    for path, text, found in zip(args.text or [args.run], texts, results, strict=True):
        if args.text:
            print(path.name)
        print(f"forward   {found.forward:,.2f}\nbackward  {found.backward:,.2f}\naverage   {found.average:,.2f}")
        print(
            f"{found.targets:,} words predicted each way; vocabulary {len(corpus.vocabulary):,}; "
            f"{found.unknown:,} tokens ({text.unknown / text.tokens:.2%}) count as <UNK>"
        )


if __name__ == "__main__":
    main()
