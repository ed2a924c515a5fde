"""Static vectors of the words around a token: what context without a model has to say."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Layers, Sentence, Vectors
from elmokit.static.embedders import StaticEmbedder

WINDOW = 10  # tokens on either side


class StaticSurroundings:
    """An embedder: for each token the mean of the static vectors of the words around it, itself left out.

    A static vector of the token itself is the same in all its senses; those of its neighbours tell some apart, in no
    order and without syntax (Schütze, 1998). This is what a contextual model has to beat.
    """

    layer_count = 1

    def __init__(self, vectors: StaticEmbedder, *, window: int = WINDOW) -> None:
        self.vectors, self.window, self.width = vectors, window, vectors.width
        self.tokenizer = vectors.tokenizer

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """One array per sentence, (tokens, width), or (1, tokens, width) for "all"; zeros for a token by itself."""
        return [self._around(array) for array in self.vectors.embed(sentences, layers=layers)]

    def _around(self, vectors: Vectors) -> Vectors:
        """The means of the rows within the window, (…, T, D); words without a vector do not count."""
        known = np.asarray(vectors.any(axis=-1, keepdims=True))  # (…, T, 1)
        sums, counts = (self._window_sums(part.astype(np.float64)) for part in (vectors, known))
        return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0.5).astype(np.float32)

    def _window_sums(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each row's neighbours within the window, (…, T, D), by differences of running sums."""
        length = rows.shape[-2]
        running = np.concatenate([np.zeros_like(rows[..., :1, :]), rows.cumsum(axis=-2)], axis=-2)  # (…, T + 1, D)
        at = np.arange(length)
        ends, starts = np.minimum(at + self.window + 1, length), np.maximum(at - self.window, 0)
        return np.asarray(running[..., ends, :] - running[..., starts, :] - rows)
