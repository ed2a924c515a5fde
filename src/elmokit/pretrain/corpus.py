"""A prepared corpus: a folder of word ids that training reads without loading them.

| file | what it holds |
|---|---|
| words.txt | the lexicon: every distinct word, one per line in the order of the ids; <S>, </S>, <UNK> first |
| counts.npy | int64 (2, words): how often each occurs in the training text and in the held-out text |
| train.ids, valid.ids | int32, little-endian: <S> word… </S> <S> word… </S> …, sentence after sentence |
| manifest.json | the format, the fingerprint of what it was made from, the length of each file, tokens forgotten |
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from elmokit.errors import DataError
from elmokit.text.characters import most_frequent_characters
from elmokit.text.numbering import BOS_ID, SPECIAL_IDS, TRAIN, UNK_ID, VALID
from elmokit.text.vocabulary import Vocabulary, read_vocabulary

FORMAT = 2
OLDER, NEWER = (f"prepared by {age} version of elmokit" for age in ("an older", "a newer"))
WORDS, COUNTS, MANIFEST = "words.txt", "counts.npy", "manifest.json"
IDS = ("train.ids", "valid.ids")  # by part
CORPUS_FILES = frozenset((WORDS, COUNTS, MANIFEST, *IDS))
FEWEST_FOR_TREND = 100  # words; among fewer, chance may look like an order
TREND = -0.2  # correlation of rank and log count: below -0.5 for a vocabulary of other text, about 0 for an alphabet


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is known of a corpus without reading it."""

    format: int
    fingerprint: str
    """Of the files and settings that it was made from."""
    bytes: dict[str, int]
    """The length of each file."""
    vocabulary: int | None = None
    """Words of the vocabulary that was given."""
    forgotten: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)

    @property
    def age(self) -> str:
        """What is to be said of a corpus of another format; nothing of one of this."""
        return "" if self.format == FORMAT else OLDER if self.format < FORMAT else NEWER


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """The training text or the held-out text."""

    ids: NDArray[np.int32]
    """Lexicon ids, <S> word… </S> for each sentence, mapped into memory."""
    sentences: int
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
    train: Part
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


def read_corpus(folder: Path, *, vocab_size: int | None = None, min_count: int = 1, new_words: int = 0) -> Corpus:
    """A corpus that `prepare` wrote.

    Its vocabulary is the one it was given, or the most frequent words of the lexicon; and so many of the most frequent
    words that this one lacks.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(f"{folder}: no prepared corpus, or a damaged one: prepare it again")
    if manifest.age:
        raise DataError(f"{folder}: {manifest.age}: prepare it again")
    words = read_vocabulary(folder / WORDS).words
    counts = np.load(folder / COUNTS)
    if counts.shape != (2, len(words)):
        raise DataError(f"{folder}: {len(words)} words but counts of shape {counts.shape}: prepare the corpus again")
    size = manifest.vocabulary or _vocabulary_size(counts[TRAIN], vocab_size, min_count)
    size += min(new_words, int(np.count_nonzero(counts[TRAIN, size:])))
    return Corpus(
        folder=folder,
        train=_read_part(folder, TRAIN, counts, size),
        valid=_read_part(folder, VALID, counts, size),
        words=words,
        counts=counts,
        vocabulary=Vocabulary(words[:size]),
        forgotten=manifest.forgotten,
    )


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a whole corpus; None if there is none, or if files have other lengths."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        lengths = {name: (folder / name).stat().st_size for name in manifest.bytes}
    except (OSError, ValueError):
        return None
    return manifest if manifest.bytes == lengths else None


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
    ranks = early[counts[early].argmin()], late[counts[late].argmax()]
    found = [f"{corpus.words[rank + 3]!r} on line {rank + 4} occurs {counts[rank]} times" for rank in ranks]
    raise DataError(f"the vocabulary is not ordered by falling frequency: {found[0]}, {found[1]}: sort it by counts")


def _vocabulary_size(counts: NDArray[np.int64], vocab_size: int | None, min_count: int) -> int:
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
