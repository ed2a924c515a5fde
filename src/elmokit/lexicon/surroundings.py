"""A word as its surroundings expect it, itself unread: what tells one sense of a word from another best."""

from collections.abc import Iterable

import numpy as np

from elmokit.elmo import BOUNDS, Elmo
from elmokit.embedder import Layers, Sentence, Vectors
from elmokit.text.inputs import batch_by_tokens, in_original_order
from elmokit.text.vocabulary import BOS, EOS


class Surroundings:
    """An embedder: for each token the forward state before it and the backward state after it, side by side.

    These are what the model predicts the token from. A token's own vectors have read it, and much of them is the same
    wherever it stands.
    """

    def __init__(self, elmo: Elmo) -> None:
        self.elmo, self.width, self.layer_count = elmo, elmo.width, elmo.layer_count

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """An array a sentence: (T, D), or (L, T, D) for `layers="all"`; layer 0 is that of the words beside it."""
        self.elmo.embed([], layers=layers)  # refuses a layer that there is not
        bounded = [[BOS, *tokens, EOS] for tokens in self.elmo.tokenize(sentences)]
        batches = batch_by_tokens([len(tokens) for tokens in bounded], self.elmo.batch_tokens)
        return in_original_order(batches, (self._batch([bounded[i] for i in batch], layers) for batch in batches))

    def _batch(self, bounded: list[list[str]], layers: Layers) -> list[Vectors]:
        """The vectors of sentences sorted by falling length."""
        outputs = self.elmo.run(bounded, gradients=False).cpu().numpy()  # (L, N, 2P)
        ends = np.cumsum([len(tokens) for tokens in bounded])[:-1]
        return [_chosen(_around(part), layers) for part in np.split(outputs, ends, axis=1)]


def _around(bounded: Vectors) -> Vectors:
    """Of a sentence with its bounds, (L, T + 2, 2P), what stands before and after each token of it, (L, T, 2P)."""
    ahead, back = np.split(bounded, 2, axis=-1)
    return np.concatenate([ahead[:, :-BOUNDS], back[:, BOUNDS:]], axis=-1)


def _chosen(vectors: Vectors, layers: Layers) -> Vectors:
    if layers == "all":
        return vectors
    chosen: Vectors = vectors.mean(axis=0) if layers == "average" else vectors[-1 if layers == "top" else layers]
    return chosen
