"""The layers of sentences on disk: computed once, read back as often as training wants them."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Embedder
from elmokit.errors import OutputError
from elmokit.files import replacing
from elmokit.tasks.task import Tokens
from elmokit.text.inputs import in_chunks

CHUNK_TOKENS = 16_384  # embedded and written at a time: what memory has to hold
Progress = Callable[[int, int], None]


class LayerCache:
    """The layers of all tokens of some sentences, (N, L, D), in a file that is mapped into memory."""

    def __init__(self, path: Path, embedder: Embedder, sentences: Sequence[Tokens], *, dtype: str) -> None:
        tokens = sum(map(len, sentences))
        shape = (tokens, embedder.layer_count, embedder.width)
        self.layers: NDArray[np.floating] = np.memmap(path, dtype, "r", shape=shape) if tokens else np.zeros(shape)
        self.starts: dict[Tokens, int] = {}
        end = 0
        for sentence in sentences:
            self.starts[sentence] = end
            end += len(sentence)

    def __contains__(self, sentence: Tokens) -> bool:
        return sentence in self.starts

    def read(self, sentences: Sequence[Tokens]) -> NDArray[np.float32]:
        """The layers of sentences, end to end, (L, N, D)."""
        parts = [self.layers[(start := self.starts[tokens]) : start + len(tokens)] for tokens in sentences]
        return np.concatenate(parts, dtype=np.float32, casting="same_kind").swapaxes(0, 1)


def open_cache(
    folder: Path,
    embedder: Embedder,
    sentences: Iterable[Tokens],
    *,
    identity: str,
    dtype: str,
    progress: Progress,
) -> LayerCache:
    """The cache of an embedder's layers of these sentences; `identity` tells the embedder from others."""
    distinct = list(dict.fromkeys(sentences))
    path = cache_path(folder, distinct, identity=identity, dtype=dtype)
    try:
        if not path.exists() or path.stat().st_size != cache_bytes(embedder, distinct, dtype=dtype):
            folder.mkdir(parents=True, exist_ok=True)
            _write(path, embedder, distinct, dtype=dtype, progress=progress)
        return LayerCache(path, embedder, distinct, dtype=dtype)
    except OSError as error:
        raise OutputError(f"{path}: the layers cannot be kept here: {error.strerror or error}") from error


def cache_path(folder: Path, sentences: Iterable[Tokens], *, identity: str, dtype: str) -> Path:
    """Where the layers of these sentences are kept."""
    hashed = blake2b(repr((identity, dtype)).encode(), digest_size=16)
    for sentence in dict.fromkeys(sentences):
        hashed.update(repr(sentence).encode("utf-8", "surrogatepass"))
    return folder / f"{hashed.hexdigest()}.{dtype}"


def cache_bytes(embedder: Embedder, sentences: Iterable[Tokens], *, dtype: str) -> int:
    """What a cache takes of the disk."""
    return sum(map(len, set(sentences))) * embedder.layer_count * embedder.width * np.dtype(dtype).itemsize


def fits(folder: Path, size: int) -> bool:
    """Whether a disk has room for so many bytes, and as much again to spare."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free > 2 * size


def _write(path: Path, embedder: Embedder, sentences: list[Tokens], *, dtype: str, progress: Progress) -> None:
    done, total = 0, sum(map(len, sentences))
    with replacing(path) as partial, partial.open("wb") as file:
        for chunk in in_chunks(map(list, sentences), CHUNK_TOKENS):
            for layers in embedder.embed(chunk, layers="all"):  # (L, T, D)
                file.write(layers.swapaxes(0, 1).astype(dtype).tobytes())
            done += sum(map(len, chunk))
            progress(done, total)
