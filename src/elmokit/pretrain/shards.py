"""Text files → a prepared corpus: cut once, kept as long as neither the files nor the settings change."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import DataError, OutputError
from elmokit.files import _move_folder
from elmokit.pretrain.corpus import (
    CORPUS_FILES,
    COUNTS,
    FORMAT,
    IDS,
    MANIFEST,
    WORDS,
    Corpus,
    check_vocab_size,
    read_corpus,
    read_manifest,
)
from elmokit.pretrain.inputs import Inputs, Settings, find_inputs, fingerprint, iter_pieces
from elmokit.text.layout import Lines
from elmokit.text.numbering import Numberer, number_pieces
from elmokit.text.vocabulary import BOS, EOS, UNK, Vocabulary, write_vocabulary
from elmokit.text.word_counts import TRAIN, VALID, RankedWords, WordCounter

Progress = Callable[[int, int], None]


def prepare(
    paths: Sequence[Path],
    folder: Path,
    *,
    tokenizer: str = "words",
    vocabulary: Vocabulary | None = None,
    vocab_size: int | None = None,
    min_count: int = 1,
    valid_paths: Sequence[Path] = (),
    valid_share: float = 0.01,
    workers: int | None = None,
    progress: Progress | None = None,
    lines: Lines = "auto",
    field: str = "text",
    max_types: int = 2_000_000,
    unchanged: bool = False,
) -> Corpus:
    """The corpus of these files, from the folder if it was made from the same, else made and kept there.

    A vocabulary that is given is taken as it is; without one it is the `vocab_size` most frequent words of those that
    occur `min_count` times in training. Files of `valid_paths` are held out instead of a share, and never trained on.
    `lines` says what a line is. `progress` is told the bytes done and the bytes in all. A corpus that must
    be `unchanged` is not made anew from other text.
    """
    check_vocab_size(vocab_size)
    numberer = Numberer(tokenizer, split=lines != "sentences")
    settings = Settings(tokenizer, lines, field, 0.0 if valid_paths else valid_share, max_types)
    inputs = find_inputs(paths, valid_paths, vocabulary, settings)
    made_from = fingerprint(inputs, version=FORMAT)
    manifest = read_manifest(folder)
    if manifest is None or manifest["fingerprint"] != made_from:
        if manifest and unchanged:
            raise DataError(f"{folder}: made from other text, or with another vocabulary: name the same files again")
        with _new_folder(folder) as partial:
            ranked = _write_ids(partial, inputs, numberer, workers=workers, progress=progress)
            _write_lexicon(partial, ranked)
            _write_manifest(partial, inputs, made_from, ranked.forgotten)
    return read_corpus(folder, vocab_size=vocab_size, min_count=min_count)


def _write_ids(
    folder: Path, inputs: Inputs, numberer: Numberer, *, workers: int | None, progress: Progress | None
) -> RankedWords:
    """Cut all text and write the ids of its words: numbers as they come first, then their ids by frequency."""
    total = inputs.bytes
    first = inputs.vocabulary.words if inputs.vocabulary else (BOS, EOS, UNK)
    lexicon = WordCounter(first, limit=inputs.settings.max_types)
    cuts = number_pieces(iter_pieces(inputs), numberer, workers=workers, size=total)
    with ExitStack() as stack:
        files = [stack.enter_context((folder / name).open("wb")) for name in IDS]
        stack.enter_context(closing(cuts))
        for task, cut in cuts:
            files[task.part].write(lexicon.add(cut.words, cut.ids, task.part).astype("<i4").tobytes())
            if progress:
                progress(task.position, total)
    ranked = lexicon.ranked()
    _check_not_empty(ranked.counts.sum(axis=1), inputs)
    for name in IDS:
        _renumber(folder / name, ranked.ids)
    return ranked


def _check_not_empty(sizes: NDArray[np.int64], inputs: Inputs) -> None:
    where = ", ".join(file.name for file in inputs.train[:3]) + (" …" if len(inputs.train) > 3 else "")
    if not sizes.any():
        raise DataError(f"{where}: no words in the whole corpus: is it the right text?")
    if not sizes[TRAIN] and not inputs.valid:
        raise DataError(f"{where}: one paragraph only, and it is held out: add text, or set valid_share to 0")
    if not sizes[TRAIN]:
        raise DataError(f"{where}: no words to train on: is it the right text?")
    if not sizes[VALID] and inputs.valid:
        raise DataError(f"{inputs.valid[0].name}: no words in the held-out text: is it the right text?")


def _renumber(path: Path, ids: NDArray[np.int32]) -> None:
    with path.open("r+b") as file:
        while chunk := file.read(1 << 20):
            file.seek(-len(chunk), os.SEEK_CUR)
            file.write(ids[np.frombuffer(chunk, dtype="<i4")].astype("<i4").tobytes())


def _write_lexicon(folder: Path, ranked: RankedWords) -> None:
    write_vocabulary(folder / WORDS, Vocabulary(ranked.words))
    np.save(folder / COUNTS, ranked.counts)


def _write_manifest(folder: Path, inputs: Inputs, made_from: str, forgotten: int) -> None:
    manifest = {
        "format": FORMAT,
        "fingerprint": made_from,
        "settings": asdict(inputs.settings),
        "files": {"train": [file.name for file in inputs.train], "valid": [file.name for file in inputs.valid]},
        "vocabulary": inputs.vocabulary and len(inputs.vocabulary),
        "forgotten": forgotten,
        "bytes": {name: (folder / name).stat().st_size for name in sorted(CORPUS_FILES - {MANIFEST})},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into that takes its name when all went well, and else leaves nothing behind."""
    path = path.resolve()
    _check_ours(path)
    _remove_leftovers(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        yield partial
        _move_folder(partial, path)
    except OSError as error:
        raise OutputError(f"{path}: the corpus cannot be written here: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_ours(path: Path) -> None:
    if path.is_dir():
        foreign = sorted({file.name for file in path.iterdir()} - CORPUS_FILES)
        if foreign:
            raise OutputError(f"{path} holds more than a corpus ({foreign[0]!r}), so it is not overwritten")
    elif path.exists():
        raise OutputError(f"{path} is a file: a corpus is written as a folder")


def _remove_leftovers(path: Path) -> None:
    """What runs that were killed have left behind."""
    name = re.compile(rf"\.{re.escape(path.name)}\.(\d+)\.(partial|old)")
    for other in path.parent.iterdir() if path.parent.is_dir() else ():
        match = name.fullmatch(other.name)
        if match and not _is_running_elsewhere(int(match[1])):
            shutil.rmtree(other, ignore_errors=True)


def _is_running_elsewhere(pid: int) -> bool:
    if os.name != "posix":
        return True  # there is no harmless way to ask
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return pid != os.getpid()
