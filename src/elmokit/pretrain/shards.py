"""Text files → a prepared corpus: tokenized once, kept as long as neither the files nor the settings change."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ConfigError, DataError
from elmokit.files import as_json, locked, replacing_folder, writing
from elmokit.pretrain.corpus import (
    CORPUS_FILES,
    COUNTS,
    FORMAT,
    IDS,
    MANIFEST,
    WORDS,
    Corpus,
    Manifest,
    read_corpus,
    read_manifest,
)
from elmokit.progress import SILENCE, Progress
from elmokit.text.documents import BLOCK_BYTES, Document, TextFile, ending, iter_documents, open_texts, total_bytes
from elmokit.text.layout import Lines
from elmokit.text.numbering import SPECIAL_IDS, TRAIN, VALID, Numberer, Piece, RankedWords, WordCounter, number_pieces
from elmokit.text.vocabulary import BOS, EOS, UNK, Vocabulary, write_vocabulary

PIECE_CHARACTERS = 100_000
FEWEST_BLOCKS = 4  # that a held-out part is gathered from, in a corpus too small for blocks of the full size


@dataclass(frozen=True)
class CorpusSource:
    """All that the ids of a corpus depend on."""

    train: Sequence[TextFile]
    valid: Sequence[TextFile]
    vocabulary: Vocabulary | None
    settings: dict[str, Any]
    """tokenizer, lines, field, valid_share and max_types."""

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


def prepare(
    paths: Iterable[Path | str],
    folder: Path,
    *,
    tokenizer: str = "words",
    vocabulary: Vocabulary | None = None,
    vocab_size: int | None = None,
    min_count: int = 1,
    valid_paths: Iterable[Path | str] = (),
    valid_share: float = 0.01,
    workers: int | None = None,
    lines: Lines = "auto",
    field: str = "text",
    max_types: int = 2_000_000,
    unchanged: bool = False,
    progress: Progress = SILENCE,
) -> Corpus:
    """The corpus of these files, from the folder if it was made from the same, else made and kept there.

    A vocabulary that is given is taken as it is; without one it is the `vocab_size` most frequent words of those that
    occur `min_count` times in training. Files of `valid_paths` are held out instead of a share, and never trained on.
    A corpus that must be `unchanged` is not made anew from other text.
    """
    if vocab_size is not None and vocab_size < len(SPECIAL_IDS):
        raise ConfigError(f"a vocabulary of size {vocab_size} is too small: <S>, </S> and <UNK> alone are 3")
    settings = {"tokenizer": tokenizer, "lines": lines, "field": field, "valid_share": valid_share}
    source = find_source(paths, valid_paths, vocabulary, settings | {"max_types": max_types})
    fingerprint = source.fingerprint()
    manifest = read_manifest(folder)
    if manifest is None or manifest.age or manifest.fingerprint != fingerprint:
        if manifest and unchanged:
            raise DataError(f"{folder}: made from other text, or with another vocabulary: name the same files again")
        if manifest and manifest.age:
            progress.message(f"{folder}: {manifest.age}, so it is prepared again")
        with locked(folder), replacing_folder(folder, files=CORPUS_FILES, overwrite=True) as partial, writing(folder):
            ranked = _write_ids(partial, source, workers=workers, progress=progress)
            write_vocabulary(partial / WORDS, Vocabulary(ranked.words))
            np.save(partial / COUNTS, ranked.counts)
            _write_manifest(partial, source, fingerprint, ranked.forgotten)
    return read_corpus(folder, vocab_size=vocab_size, min_count=min_count)


def find_source(
    paths: Iterable[Path | str],
    valid_paths: Iterable[Path | str],
    vocabulary: Vocabulary | None,
    settings: dict[str, Any],
) -> CorpusSource:
    """The files under the paths, without those to hold out; everything checked that can be before reading."""
    if not 0 <= settings["valid_share"] < 1:
        raise ConfigError(f"valid_share is {settings['valid_share']}: the share held out goes from 0 to below 1")
    if vocabulary is not None:
        vocabulary.check_training_order()
    valid, found = (
        open_texts(given, lines=settings["lines"], field=settings["field"]) for given in (valid_paths, paths)
    )
    held_out = {file.path.resolve() for file in valid}
    train = [file for file in found if file.path.resolve() not in held_out]
    if not train:
        raise DataError(f"no files to train on{': all of them are held out' if valid else ''}: name some more")
    return CorpusSource(train, valid, vocabulary, settings | ({"valid_share": 0.0} if valid else {}))


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


def _write_ids(folder: Path, source: CorpusSource, *, workers: int | None, progress: Progress) -> RankedWords:
    """Tokenize all text and write the ids of its words: numbers as they come first, then their ids by frequency."""
    total = total_bytes([*source.train, *source.valid])
    first = source.vocabulary.words if source.vocabulary else (BOS, EOS, UNK)
    counter = WordCounter(first, limit=source.settings["max_types"])
    numberer = Numberer(source.settings["tokenizer"], split=source.settings["lines"] != "sentences")
    numbered = number_pieces(source.pieces(), numberer, workers=workers, size=total)
    with ExitStack() as stack:
        files = [stack.enter_context((folder / name).open("wb")) for name in IDS]
        stack.enter_context(closing(numbered))
        for piece, (words, ids) in numbered:
            files[piece.part].write(counter.add(words, ids, piece.part).astype("<i4").tobytes())
            progress.update("reading", piece.position, total, unit="bytes")
    progress.message(f"read {total / 1e6:,.1f} MB of text")
    ranked = counter.ranked()
    _check_not_empty(ranked.counts.sum(axis=1), source)
    for name in IDS:
        _renumber(folder / name, ranked.ids)
    return ranked


def _check_not_empty(sizes: NDArray[np.int64], source: CorpusSource) -> None:
    where = ", ".join(file.name for file in source.train[:3]) + (" …" if len(source.train) > 3 else "")
    if not sizes.any():
        raise DataError(f"{where}: no words in the whole corpus: is it the right text?")
    if not sizes[TRAIN] and not source.valid:
        raise DataError(f"{where}: one paragraph only, and it is held out: add text, or set valid_share to 0")
    if not sizes[TRAIN]:
        raise DataError(f"{where}: no words to train on: is it the right text?")
    if not sizes[VALID] and source.valid:
        raise DataError(f"{source.valid[0].name}: no words in the held-out text: is it the right text?")


def _renumber(path: Path, ids: NDArray[np.int32]) -> None:
    with path.open("r+b") as file:
        while chunk := file.read(1 << 20):
            file.seek(-len(chunk), os.SEEK_CUR)
            file.write(ids[np.frombuffer(chunk, dtype="<i4")].astype("<i4").tobytes())


def _write_manifest(folder: Path, source: CorpusSource, fingerprint: str, forgotten: int) -> None:
    manifest = Manifest(
        format=FORMAT,
        fingerprint=fingerprint,
        bytes={name: (folder / name).stat().st_size for name in sorted(CORPUS_FILES - {MANIFEST})},
        vocabulary=len(source.vocabulary) if source.vocabulary else None,
        forgotten=forgotten,
        settings=source.settings,
        files={"train": [file.name for file in source.train], "valid": [file.name for file in source.valid]},
    )
    (folder / MANIFEST).write_bytes(as_json(manifest))
