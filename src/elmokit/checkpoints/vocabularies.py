"""The vocabulary that lies beside a model's weights."""

import gzip
import zlib
from contextlib import suppress
from pathlib import Path

from elmokit.config import ModelConfig
from elmokit.errors import CheckpointError
from elmokit.text.vocabulary import BOS, EOS, Vocabulary, read_vocabulary

NAMES = ("vocab.txt", "vocab.txt.gz")
MOST_COMPRESSION = 100
PATTERNS = ("*vocab*.txt", "*vocab*.txt.gz")


def vocabulary_in(folder: Path, config: ModelConfig) -> Vocabulary | None:
    """The vocabulary in a folder; that of a model with word vectors or a softmax must fit them."""
    size = config.words.size if config.words else config.softmax.size if config.softmax else None
    path = _find(folder)
    if path is None:
        if config.words:
            raise CheckpointError(f"{folder}: the model reads words, but their list, {NAMES[0]}, is not here")
        return None
    _check_unpacked_size(path)
    vocabulary = read_vocabulary(path)
    if size is not None and len(vocabulary) != size:
        raise CheckpointError(f"{path}: {len(vocabulary)} words, but the model has {size}. Is it another model's?")
    if config.words and not (BOS in vocabulary and EOS in vocabulary):
        raise CheckpointError(f"{path}: {BOS} and {EOS}, the bounds of every sentence, are not among the words")
    return vocabulary


def _check_unpacked_size(path: Path) -> None:
    """Refuse a file made to exhaust memory; one that is damaged is told of by whoever reads it."""
    if path.suffix != ".gz":
        return
    left = MOST_COMPRESSION * path.stat().st_size
    with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        while left >= 0 and (part := file.read(1 << 20)):
            left -= len(part)
    if left < 0:
        raise CheckpointError(f"{path}: unpacks to more than {MOST_COMPRESSION} times its size, so it is not read")


def _find(folder: Path) -> Path | None:
    """The file of the usual name, or the only one with a name like it."""
    for name in NAMES:
        if (path := folder / name).exists():
            return path
    others = [path for pattern in PATTERNS for path in folder.glob(pattern)]
    return others[0] if len(others) == 1 else None
