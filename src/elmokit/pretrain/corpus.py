"""A prepared corpus: a folder of word ids that training reads without loading them.

| file | what it holds |
|---|---|
| words.txt | the lexicon: every distinct word, one a line in the order of the ids; <S>, </S>, <UNK> first |
| counts.npy | int64 (2, words): how often each occurs in the training text and in the held-out text |
| train.ids, valid.ids | int32, little-endian: <S> word… </S> <S> word… </S> …, sentence after sentence |
| manifest.json | the format, the fingerprint of what it was made from, the length of each file, tokens forgotten |
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ConfigError, DataError
from elmokit.text.characters import most_frequent_characters
from elmokit.text.vocabulary import Vocabulary, read_vocabulary
from elmokit.text.word_counts import BOS_ID, SPECIAL_IDS, TRAIN, UNK_ID, VALID

FORMAT = 2
WORDS, COUNTS, MANIFEST = "words.txt", "counts.npy", "manifest.json"
IDS = ("train.ids", "valid.ids")  # by part
CORPUS_FILES = frozenset((WORDS, COUNTS, MANIFEST, *IDS))
FEWEST_FOR_TREND = 100  # words; among fewer, chance may look like an order
TREND = -0.2  # correlation of place and log count: below -0.5 for a vocabulary of other text, about 0 for an alphabet


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """The training text or the held-out text."""

    ids: NDArray[np.int32]
    """Lexicon ids, <S> word… </S> for each sentence, mapped into memory."""
    sentences: int
    """Sentences."""
    tokens: int
    """Words and punctuation marks, without <S> and </S>."""
    unknown: int
    """Tokens that the vocabulary lacks."""

    @property
    def oov_rate(self) -> float:
        """The share of tokens that the vocabulary lacks."""
        return self.unknown / self.tokens if self.tokens else 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus:
    """Text as ids: a word's lexicon id is also its vocabulary id if it is below the vocabulary's size, else <UNK>."""

    folder: Path
    """Where it lies."""
    train: Part
    """What is trained on."""
    valid: Part
    """What is held out; empty if nothing was."""
    words: tuple[str, ...]
    """The lexicon: every distinct word, the vocabulary first."""
    counts: NDArray[np.int64]
    """(2, words): occurrences in the training text and in the held-out text."""
    vocabulary: Vocabulary
    """The words that the softmax knows."""
    forgotten: int
    """Tokens read as <UNK> because there were more distinct words than the lexicon may hold."""

    @property
    def types(self) -> int:
        """Distinct words, without <S>, </S> and <UNK>."""
        return len(self.words) - len(SPECIAL_IDS)

    def characters(self, *, min_count: int = 1, limit: int | None = None) -> str:
        """The characters of the training text, most frequent first: a Unicode alphabet."""
        first = len(SPECIAL_IDS)
        counts = dict(zip(self.words[first:], self.counts[TRAIN, first:].tolist(), strict=True))
        return most_frequent_characters(counts, min_count=min_count, limit=limit)


def read_corpus(folder: Path, *, vocab_size: int | None = None, min_count: int = 1) -> Corpus:
    """A corpus that `prepare` wrote; the vocabulary it was given, or the most frequent words of the lexicon."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(f"{folder}: no prepared corpus, or a damaged one: prepare it again")
    words = read_vocabulary(folder / WORDS).words
    counts = np.load(folder / COUNTS)
    if counts.shape != (2, len(words)):
        raise DataError(f"{folder}: {len(words)} words but counts of shape {counts.shape}: prepare the corpus again")
    size = manifest["vocabulary"] or _vocabulary_size(counts[TRAIN], vocab_size, min_count)
    return Corpus(
        folder=folder,
        train=_read_part(folder, TRAIN, counts, size),
        valid=_read_part(folder, VALID, counts, size),
        words=words,
        counts=counts,
        vocabulary=Vocabulary(words[:size]),
        forgotten=manifest["forgotten"],
    )


def with_new_words(corpus: Corpus, count: int) -> Corpus:
    """The corpus with so many more words in its vocabulary, the most frequent of those it lacks."""
    if not count:
        return corpus
    known = len(corpus.vocabulary)
    size = known + min(count, int(np.count_nonzero(corpus.counts[TRAIN, known:])))
    return replace(
        corpus,
        train=_read_part(corpus.folder, TRAIN, corpus.counts, size),
        valid=_read_part(corpus.folder, VALID, corpus.counts, size),
        vocabulary=Vocabulary(corpus.words[:size]),
    )


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a whole corpus of this format; None if there is none or its files have other lengths."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        lengths = {name: (folder / name).stat().st_size for name in manifest["bytes"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = manifest.get("format") == FORMAT and manifest["bytes"] == lengths
    return manifest if whole else None


def check_vocab_size(vocab_size: int | None) -> None:
    """Refuse a vocabulary without room for <S>, </S> and <UNK>."""
    if vocab_size is not None and vocab_size < len(SPECIAL_IDS):
        raise ConfigError(f"a vocabulary of size {vocab_size} is too small: <S>, </S> and <UNK> alone are 3")


def check_frequency_order(corpus: Corpus) -> None:
    """Refuse a vocabulary in another order, such as the alphabet's, which sampled and adaptive softmaxes would trust.

    One made from other text is never in the order of this one's counts, so only the general trend is looked at.
    """
    counts = corpus.counts[TRAIN, len(SPECIAL_IDS) : len(corpus.vocabulary)]
    seen = np.flatnonzero(counts)
    if len(seen) < FEWEST_FOR_TREND or np.ptp(counts[seen]) == 0:
        return
    if np.corrcoef(seen, np.log(counts[seen]))[0, 1] < TREND:
        return
    early, late = np.array_split(seen, 2)
    places = early[counts[early].argmin()], late[counts[late].argmax()]
    found = [f"{corpus.words[place + 3]!r} on line {place + 4} occurs {counts[place]} times" for place in places]
    raise DataError(f"the vocabulary is not ordered by falling frequency: {found[0]}, {found[1]}: sort it by counts")


def _vocabulary_size(counts: NDArray[np.int64], vocab_size: int | None, min_count: int) -> int:
    check_vocab_size(vocab_size)
    specials = len(SPECIAL_IDS)
    frequent = specials + int(np.count_nonzero(counts[specials:] >= max(1, min_count)))
    return frequent if vocab_size is None else min(frequent, vocab_size)


def _read_part(folder: Path, part: int, counts: NDArray[np.int64], vocab_size: int) -> Part:
    path = folder / IDS[part]
    return Part(
        # An empty file cannot be mapped.
        ids=np.memmap(path, dtype="<i4", mode="r") if path.stat().st_size else np.empty(0, dtype=np.int32),
        sentences=int(counts[part, BOS_ID]),
        tokens=int(counts[part, UNK_ID:].sum()),
        unknown=int(counts[part, UNK_ID] + counts[part, vocab_size:].sum()),
    )
