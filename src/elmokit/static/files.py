"""Static vectors ↔ files: words and their vectors, one after another.

| ending | layout |
|---|---|
| .txt, .vec, .txt.gz, .vec.gz | text, a word a line: word2vec's and fastText's with a first line, GloVe's without |
| .bin, .bin.gz | word2vec's binary |
| .safetensors | `vectors` and `words` |
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from elmokit.embedder import Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.files import replacing, writing
from elmokit.static.formats import binary, tensors, text
from elmokit.static.formats.block import Block

Reader = Callable[[Path], Iterator[Block]]
Writer = Callable[[Path, Sequence[bytes], Vectors | None], None]
READERS: dict[str, Reader] = {
    ".txt": text.read,
    ".vec": text.read,
    ".txt.gz": text.read,
    ".vec.gz": text.read,
    ".bin": binary.read,
    ".bin.gz": binary.read,
    ".safetensors": tensors.read,
}


def read_vectors(path: Path) -> Block:
    """All words of a file, with their vectors in one array."""
    words: list[str] = []
    vectors = np.empty((0, 0), dtype=np.float32)
    for block in read_blocks(path):
        end = len(words) + len(block.words)
        if end > len(vectors):  # grown in place: there are never two arrays of the full size
            vectors.resize((max(end, 2 * len(vectors)), block.vectors.shape[1]), refcheck=False)
        vectors[len(words) : end] = block.vectors
        words += block.words
    vectors.resize((len(words), vectors.shape[1]), refcheck=False)
    return Block(words, vectors)


def read_blocks(path: Path) -> Iterator[Block]:
    """The words of a file in order, at least one, some at a time."""
    reader = READERS[_ending(path)]
    empty = True
    try:
        for block in reader(path):
            empty = False
            yield block
    except (OSError, EOFError, zlib.error, SafetensorError) as error:
        raise DataError(f"{path}: cannot be read as vectors: {getattr(error, 'strerror', None) or error}") from None
    if empty:
        raise DataError(f"{path}: there are no vectors in it")


def write_vectors(path: Path, words: Sequence[str], vectors: Vectors | None, *, header: bool = True) -> None:
    """Write words and their vectors in the format of the ending; None stands for one-hot vectors.

    Text without `header` is GloVe's. The file appears when it is complete.
    """
    ending = _ending(path)
    writers: dict[Reader, Writer] = {
        text.read: partial(text.write, header=header),
        binary.read: binary.write,
        tensors.read: tensors.write,
    }
    encoded = [_encoded(path, word, blanks=not ending.startswith(".bin")) for word in words]
    with replacing(path) as new, writing(path, (OSError, SafetensorError)):
        writers[READERS[ending]](new, encoded, vectors)


def check_output(path: Path) -> None:
    """Raise at once what `write_vectors` would raise in the end: a wrong ending, no permission, a missing folder."""
    _ending(path)
    with replacing(path, keep=False):
        pass


def _ending(path: Path) -> str:
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if ending not in READERS:
        raise ConfigError(f"{path}: unknown ending {ending!r}: vectors of words are kept in {', '.join(READERS)}")
    return ending


def _encoded(path: Path, word: str, *, blanks: bool) -> bytes:
    if not word or "\n" in word or (" " in word and not blanks):
        raise DataError(f"{path}: the word {word!r} cannot be told from others in this format: remove it")
    try:
        return word.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{path}: the word {word!r} holds half a character: remove it") from None
