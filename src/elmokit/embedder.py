"""The one thing that tasks and studies ask of vectors, whatever they come from."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Layers = Literal["average", "top", "all"] | int
Sentence = str | Sequence[str]


class Embedder(Protocol):
    """Tokens → layers (L, T, D). A static vector is one layer."""

    @property
    def width(self) -> int:
        """Width D of a vector."""

    @property
    def layer_count(self) -> int:
        """Layers L; 1 for static vectors."""

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """An array a sentence: (T, D), or (L, T, D) for `layers="all"`."""
