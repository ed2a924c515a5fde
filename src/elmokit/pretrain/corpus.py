"""A prepared corpus: text tokenized once, in a folder of word ids that training reads without loading them.

| file | what it holds |
|---|---|
| words.txt | the lexicon: every distinct word, one per line in the order of the ids; <S>, </S>, <UNK> first |
| counts.npy | int64 (2, words): how often each occurs in the training text and in the held-out text |
| train.ids, valid.ids | int32, little-endian: <S> word… </S> <S> word… </S> …, sentence after sentence |
| manifest.json | the format, the fingerprint of what it was made from, the length of each file, tokens forgotten |
"""

import json
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from elmokit.config import Tokenization
from elmokit.errors import ConfigError, DataError
from elmokit.files import as_json, locked, parsing, replacing_folder, writing
from elmokit.progress import SILENCE, Progress
from elmokit.shards import Shard
from elmokit.text.characters import most_frequent_characters
from elmokit.text.corpus import tokenizer_for
from elmokit.text.documents import BLOCK_BYTES, Document, Paths, iter_documents, open_texts, total_bytes
from elmokit.text.encodings import UTF8
from elmokit.text.languages import AUTO, check_language
from elmokit.text.layout import Lines
from elmokit.text.numbering import (
    BOS_ID,
    TRAIN,
    UNK_ID,
    VALID,
    NumberedText,
    Numberer,
    Piece,
    WordCounter,
    number_pieces,
    read_numbers,
    write_numbers,
)
from elmokit.text.packing import ending
from elmokit.text.vocabulary import BOS, EOS, UNK, Vocabulary, read_vocabulary, write_vocabulary

FORMAT = 2
OLDER, NEWER = (f"prepared by {age} version of elmokit" for age in ("an older", "a newer"))
WORDS, COUNTS, MANIFEST = "words.txt", "counts.npy", "manifest.json"
IDS = ("train.ids", "valid.ids")  # by part
CORPUS_FILES = frozenset((WORDS, COUNTS, MANIFEST, *IDS))
FIRST_WORD = UNK_ID + 1  # after <S>, </S> and <UNK>
PIECE_CHARACTERS = 100_000
MOST_TYPES = 2_000_000  # distinct words; beyond them the rarest are forgotten
FEWEST_BLOCKS = 4  # that a held-out part is gathered from, in a corpus too small for blocks of the full size
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
        return self.unknown / self.tokens if self.tokens else 0.0


@dataclass(frozen=True, eq=False)
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
        return len(self.words) - FIRST_WORD

    def characters(self, *, min_count: int = 1, limit: int | None = None) -> str:
        """The characters of the training text, most frequent first: a Unicode alphabet."""
        counts = dict(zip(self.words[FIRST_WORD:], self.counts[TRAIN, FIRST_WORD:].tolist(), strict=True))
        return most_frequent_characters(counts, min_count=min_count, limit=limit)


def prepare(
    paths: Paths,
    folder: Path,
    *,
    tokenizer: Tokenization = "auto",
    vocabulary: Vocabulary | None = None,
    vocab_size: int | None = None,
    min_count: int = 1,
    valid_paths: Paths = (),
    valid_share: float = 0.01,
    workers: int | None = None,
    lines: Lines = "auto",
    field: str = "text",
    encoding: str = UTF8,
    language: str = AUTO,
    max_types: int = MOST_TYPES,
    unchanged: bool = False,
    numbers: Sequence[Path] = (),
    progress: Progress = SILENCE,
) -> Corpus:
    """The corpus of these files, from the folder if it was made from the same, else made and kept there.

    A vocabulary that is given is taken as it is; without one it is the `vocab_size` most frequent words of those that
    occur `min_count` times in training. Files of `valid_paths` are held out instead of a share, and never trained on.
    A corpus that must be `unchanged` is not made anew from other text. `numbers` are the files of shards, all of them,
    that `CorpusSource.write_shard` wrote of the same text.
    """
    if vocab_size is not None and vocab_size < FIRST_WORD:
        raise ConfigError(f"a vocabulary of size {vocab_size} is too small: <S>, </S> and <UNK> alone are 3")
    source = open_source(
        paths,
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        valid_paths=valid_paths,
        valid_share=valid_share,
        lines=lines,
        field=field,
        encoding=encoding,
        language=language,
        max_types=max_types,
    )
    fingerprint = source.fingerprint()
    manifest = read_manifest(folder)
    if manifest is None or manifest.age or manifest.fingerprint != fingerprint:
        if manifest and unchanged:
            raise DataError(f"{folder}: made from other text, or with another vocabulary: name the same files again")
        if manifest and manifest.age:
            progress.message(f"{folder}: {manifest.age}, so it is prepared again")
        with locked(folder), replacing_folder(folder, files=CORPUS_FILES, overwrite=True) as partial, writing(folder):
            _write(partial, source, fingerprint, source.numbered(workers, numbers), progress)
    return read_corpus(folder, vocab_size=vocab_size, min_count=min_count)


def open_source(
    paths: Paths,
    *,
    tokenizer: Tokenization = "auto",
    vocabulary: Vocabulary | None = None,
    valid_paths: Paths = (),
    valid_share: float = 0.01,
    lines: Lines = "auto",
    field: str = "text",
    encoding: str = UTF8,
    language: str = AUTO,
    max_types: int = MOST_TYPES,
) -> "CorpusSource":
    """What `prepare` makes a corpus from, by the same arguments."""
    settings = {"tokenizer": tokenizer, "lines": lines, "field": field, "valid_share": valid_share}
    # Left out where they are as they always were, so that corpora of older versions are still found.
    settings |= {"encoding": encoding} if encoding != UTF8 else {}
    settings |= {"language": check_language(language)} if language != AUTO else {}
    return CorpusSource(paths, valid_paths, vocabulary, settings | {"max_types": max_types})


def read_corpus(folder: Path, *, vocab_size: int | None = None, min_count: int = 1, new_words: int = 0) -> Corpus:
    """A corpus that `prepare` wrote.

    Its vocabulary is the one it was given, or the most frequent words of the lexicon; and so many of the most frequent
    words that this one lacks.
    """
    manifest = read_manifest(folder)
    if manifest is None or manifest.age:
        found = manifest.age if manifest else "no prepared corpus, or a damaged one"
        raise DataError(f"{folder}: {found}: prepare it again")
    words = read_vocabulary(folder / WORDS).words
    with parsing(folder / COUNTS, "counts of words", kind=DataError):
        counts = np.load(folder / COUNTS)
    if counts.shape != (2, len(words)):
        raise DataError(f"{folder}: {len(words)} words but counts of shape {counts.shape}: prepare the corpus again")
    frequent = FIRST_WORD + int(np.count_nonzero(counts[TRAIN, FIRST_WORD:] >= max(1, min_count)))
    size = manifest.vocabulary or min(frequent, vocab_size or frequent)
    size += min(new_words, int(np.count_nonzero(counts[TRAIN, size:])))
    train, valid = (_read_part(folder, part, counts, size) for part in (TRAIN, VALID))
    return Corpus(folder, train, valid, words, counts, Vocabulary(words[:size]), manifest.forgotten)


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
    counts = corpus.counts[TRAIN, FIRST_WORD : len(corpus.vocabulary)]
    seen = np.flatnonzero(counts)
    logs = np.log(counts[seen])
    if len(seen) < FEWEST_FOR_TREND or np.ptp(logs) == 0 or np.corrcoef(seen, logs)[0, 1] < TREND:
        return
    early, late = np.array_split(seen, 2)
    ranks = early[counts[early].argmin()], late[counts[late].argmax()]
    found = [f"{corpus.words[rank + 3]!r} on line {rank + 4} occurs {counts[rank]} times" for rank in ranks]
    raise DataError(f"the vocabulary is not ordered by falling frequency: {found[0]}, {found[1]}: sort it by counts")


def _read_part(folder: Path, part: int, counts: NDArray[np.int64], vocab_size: int) -> Part:
    path = folder / IDS[part]
    return Part(
        # An empty file cannot be mapped.
        ids=np.memmap(path, dtype="<i4", mode="r") if path.stat().st_size else np.empty(0, dtype=np.int32),
        sentences=int(counts[part, BOS_ID]),
        tokens=int(counts[part, UNK_ID:].sum()),
        unknown=int(counts[part, UNK_ID] + counts[part, vocab_size:].sum()),
    )


class CorpusSource:
    """All that the ids of a corpus depend on; everything is checked that can be before reading."""

    def __init__(self, paths: Paths, valid: Paths, vocabulary: Vocabulary | None, settings: dict[str, Any]) -> None:
        """The settings are tokenizer, lines, field, valid_share and max_types; encoding and language if they matter."""
        if not 0 <= settings["valid_share"] < 1:
            raise ConfigError(f"valid_share is {settings['valid_share']}: the share held out goes from 0 to below 1")
        if vocabulary is not None:
            vocabulary.check_training_order()
        reading = {name: settings[name] for name in ("lines", "field", "encoding") if name in settings}
        self.valid, found = (open_texts(given, **reading) for given in (valid, paths))
        held_out = {file.path.resolve() for file in self.valid}
        self.train = [file for file in found if file.path.resolve() not in held_out]
        if not self.train:
            why = ": all of them are held out" if self.valid else ""
            raise DataError(f"no files to train on{why}: name some more")
        self.vocabulary, self.tokenizer = vocabulary, tokenizer_for(self.train, settings["tokenizer"])
        tokenizer = self.tokenizer if isinstance(self.tokenizer, str) else asdict(self.tokenizer)
        self.settings = settings | {"tokenizer": tokenizer} | ({"valid_share": 0.0} if self.valid else {})

    def fingerprint(self) -> str:
        """A hash of the files' contents, endings and order, and of every setting."""
        described = {
            "version": FORMAT,
            "settings": self.settings,
            "vocabulary": self.vocabulary and self.vocabulary.words,
            "train": [(ending(file.path), file.lines, file.digest()) for file in self.train],
            "valid": [(ending(file.path), file.lines, file.digest()) for file in self.valid],
        }
        return blake2b(json.dumps(described).encode(), digest_size=32).hexdigest()

    @property
    def numberer(self) -> Numberer:
        split, language = self.settings["lines"] != "sentences", self.settings.get("language", AUTO)
        return Numberer(self.tokenizer, split, language)

    def numbered(self, workers: int | None, shards: Sequence[Path] = ()) -> Generator[tuple[Piece, NumberedText]]:
        """All text in pieces, each with the numbers of its words: from shards, or made by so many processes."""
        if shards:
            return read_numbers(self.pieces(), shards)
        total = total_bytes([*self.train, *self.valid])
        return number_pieces(self.pieces(), self.numberer, workers=workers, size=total)

    def write_shard(self, path: Path, shard: Shard) -> None:
        """Number the words of a shard's pieces."""
        write_numbers(path, self.pieces(), self.numberer, shard)

    def pieces(self) -> Iterator[Piece]:
        """The documents of each part put together until there is enough text for a process to work on."""
        waiting: tuple[list[str], list[str]] = ([], [])
        sizes = [0, 0]
        position = 0
        for (text, _, position), part in self._documents():
            waiting[part].append(text)
            sizes[part] += len(text)
            if sizes[part] >= PIECE_CHARACTERS:
                yield Piece("\n".join(waiting[part]), part, position)
                waiting[part].clear()
                sizes[part] = 0
        for part in (TRAIN, VALID):
            yield Piece("\n".join(waiting[part]), part, position)

    def _documents(self) -> Iterator[tuple[Document, int]]:
        share, trained = self.settings["valid_share"], total_bytes(self.train)
        block = min(BLOCK_BYTES, int(trained * share / FEWEST_BLOCKS)) if share else BLOCK_BYTES
        yield from _divided(iter_documents(self.train, block_bytes=block), share)
        for text, name, position in iter_documents(self.valid):
            yield Document(text, name, trained + position), VALID

    def check_not_empty(self, sizes: NDArray[np.int64]) -> None:
        """Refuse parts, (2,) by their tokens, without any words."""
        where = ", ".join(file.name for file in self.train[:3]) + (" …" if len(self.train) > 3 else "")
        if not sizes.any():
            raise DataError(f"{where}: no words in the whole corpus: is it the right text?")
        if not sizes[TRAIN] and not self.valid:
            raise DataError(f"{where}: one paragraph only, and it is held out: add text, or set valid_share to 0")
        if not sizes[TRAIN]:
            raise DataError(f"{where}: no words to train on: is it the right text?")
        if not sizes[VALID] and self.valid:
            raise DataError(f"{self.valid[0].name}: no words in the held-out text: is it the right text?")


def _divided(documents: Iterable[Document], share: float) -> Iterator[tuple[Document, int]]:
    """Hold out a document when the share has fallen behind by half of it, and the last if none was until then."""
    read = held = 0
    last = None
    for document in documents:
        if last is not None:
            size = len(last.text)
            read += size
            due = share > 0 and read * share - held >= size / 2
            held += size if due else 0
            yield last, VALID if due else TRAIN
        last = document
    if last is not None:
        yield last, VALID if share and not held else TRAIN


def _write(
    folder: Path,
    source: CorpusSource,
    fingerprint: str,
    numbered: Generator[tuple[Piece, NumberedText]],
    progress: Progress,
) -> None:
    """Tokenize all text and write the ids of its words: numbers as they come first, then their ids by frequency."""
    total = total_bytes([*source.train, *source.valid])
    vocabulary = source.vocabulary
    counter = WordCounter(vocabulary.words if vocabulary else (BOS, EOS, UNK), limit=source.settings["max_types"])
    with ExitStack() as stack:
        files = [stack.enter_context((folder / name).open("wb")) for name in IDS]
        stack.enter_context(closing(numbered))
        for piece, (words, ids) in numbered:
            files[piece.part].write(counter.add(words, ids, piece.part).astype("<i4").tobytes())
            progress.update("reading", piece.position, total, unit="bytes")
    progress.message(f"read {total / 1e6:,.1f} MB of text")
    ranked = counter.ranked()
    source.check_not_empty(ranked.counts.sum(axis=1))
    for name in IDS:
        with (folder / name).open("r+b") as file:
            while chunk := file.read(1 << 20):
                file.seek(-len(chunk), os.SEEK_CUR)
                file.write(ranked.ids[np.frombuffer(chunk, dtype="<i4")].astype("<i4").tobytes())
    write_vocabulary(folder / WORDS, Vocabulary(ranked.words))
    np.save(folder / COUNTS, ranked.counts)
    manifest = Manifest(
        format=FORMAT,
        fingerprint=fingerprint,
        bytes={file.name: file.stat().st_size for file in sorted(folder.iterdir())},
        vocabulary=len(vocabulary) if vocabulary else None,
        forgotten=ranked.forgotten,
        settings=source.settings,
        files={"train": [file.name for file in source.train], "valid": [file.name for file in source.valid]},
    )
    (folder / MANIFEST).write_bytes(as_json(manifest))
