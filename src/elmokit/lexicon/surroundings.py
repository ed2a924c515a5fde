"""What stands around a word: what a language model predicts it from, the word itself unread."""

from collections.abc import Iterable

import numpy as np

from elmokit.elmo import BOUNDS, Elmo
from elmokit.embedder import Layers, Sentence, Vectors, choose_layers
from elmokit.text.inputs import batch_by_tokens, in_original_order
from elmokit.text.vocabulary import BOS, EOS


class Surroundings:
    """An embedder: for each token the forward state before it and the backward state after it, side by side.

    These are what the model predicts the token from, itself unread, and tell its senses apart best. A token's own
    vectors have read it, and much of them is the same wherever it stands.
    """

    def __init__(self, elmo: Elmo) -> None:
        self.elmo, self.width, self.layer_count = elmo, elmo.width, elmo.layer_count

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """One array per sentence: (T, D), or (L, T, D) for `layers="all"`; layer 0 is that of the words beside it."""
        self.elmo.embed([], layers=layers)  # refuses a layer that there is not
        bounded = [[BOS, *tokens, EOS] for tokens in self.elmo.tokenize(sentences)]
        batches = batch_by_tokens([len(tokens) for tokens in bounded], self.elmo.batch_tokens)
        return in_original_order(batches, (self._batch([bounded[i] for i in batch], layers) for batch in batches))

    def _batch(self, bounded: list[list[str]], layers: Layers) -> list[Vectors]:
        """The vectors of sentences with their bounds, sorted by falling length."""
        outputs, vectors = self.elmo.run(bounded, gradients=False).cpu().numpy(), []  # (L, N, 2P)
        for sentence in np.split(outputs, np.cumsum([len(tokens) for tokens in bounded])[:-1], axis=1):
            forward, backward = np.split(sentence, 2, axis=-1)  # (L, T + 2, P) each
            around = np.concatenate([forward[:, :-BOUNDS], backward[:, BOUNDS:]], axis=-1)  # (L, T, 2P)
            vectors.append(choose_layers(around, layers))
        return vectors
