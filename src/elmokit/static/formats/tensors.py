"""safetensors: `vectors` (V, D), and `words` as UTF-8 with a line feed after each; one-hot vectors are left out."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from elmokit.embedder import Vectors
from elmokit.errors import DataError
from elmokit.static.formats.block import ROWS_A_BLOCK, Block, decoded, one_hot


def read(path: Path) -> Iterator[Block]:
    """The words in order."""
    with safe_open(path, framework="np") as file:
        names = set(file.keys())
        if "words" not in names:
            raise DataError(f"{path}: no vectors of words, for 'words' is missing: found {', '.join(sorted(names))}")
        words = decoded(file.get_tensor("words").tobytes(), f"{path}, 'words'").split("\n")[:-1]
        vectors = file.get_slice("vectors") if "vectors" in names else None
        if vectors is not None and (len(vectors.get_shape()) != 2 or vectors.get_shape()[0] != len(words)):
            raise DataError(f"{path}: {len(words):,} words, but 'vectors' is {vectors.get_shape()}")
        for start in range(0, len(words), ROWS_A_BLOCK):
            end = min(start + ROWS_A_BLOCK, len(words))
            block = one_hot(start, end, len(words)) if vectors is None else vectors[start:end]
            if not np.isfinite(block).all():
                raise DataError(f"{path}: not all numbers of the words {start + 1} to {end} are finite")
            yield Block(words[start:end], block)


def write(path: Path, words: Sequence[bytes], vectors: Vectors | None) -> None:
    """One file with both."""
    tensors = {"words": np.frombuffer(b"".join(word + b"\n" for word in words), dtype=np.uint8)}
    save_file(tensors if vectors is None else tensors | {"vectors": np.ascontiguousarray(vectors)}, path)
