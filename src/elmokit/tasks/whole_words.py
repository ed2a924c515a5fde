"""Characters read as parts of words: what a model of words has for data that is cut into single characters."""

import math
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from elmokit.elmo import Elmo
from elmokit.embedder import Embedder, Layers, Sentence, Vectors, choose_layers
from elmokit.text.tokenizers import Token, is_mostly_han

SEEN = 200  # sentences by which data is judged
SINGLE = 0.95  # the least share of tokens that are one character, in data that is cut into them
JOINED = 0.9  # at most so many words for each of them, if the model has words of several
PLACES = 4  # in a word: within, last, first, or all of it


class WholeWords:
    """Each token's own vectors, those of the word that it is part of, and its place in the word.

    The tokens are joined to a text, and that is split by the model's own tokenizer.
    """

    def __init__(self, elmo: Elmo) -> None:
        self.elmo = elmo
        self.layer_count, self.width = elmo.layer_count, 2 * elmo.width + PLACES

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """An array a sentence: (T, D), or (L, T, D) for `layers="all"`."""
        tokens = self.elmo.tokenize(sentences)
        words = [list(self.elmo.tokenizer("".join(sentence))) for sentence in tokens]
        own = self.elmo.embed(tokens, layers="all")  # each (L, T, D)
        whole = self.elmo.embed([[word.text for word in sentence] for sentence in words], layers="all")
        joined = (self._joined(*parts) for parts in zip(tokens, words, own, whole, strict=True))
        return [choose_layers(vectors, layers) for vectors in joined]

    def _joined(self, tokens: Sequence[str], words: Sequence[Token], own: Vectors, whole: Vectors) -> Vectors:
        lengths = np.array([len(token) for token in tokens], dtype=int)
        ends = lengths.cumsum()
        starts = ends - lengths
        word_at = np.full(ends[-1] if tokens else 0, len(words))  # for each character; there is none of that number
        for number, word in enumerate(words):
            word_at[word.start : word.end] = number
        rows = word_at[starts]  # (T,)
        bounds = np.array([(word.start, word.end) for word in words] + [(-1, math.inf)])  # (W + 1, 2)
        kinds = 2 * (starts == bounds[rows, 0]) + (ends >= bounds[rows, 1])
        places = np.eye(PLACES, dtype=np.float32)[kinds] * (rows < len(words))[:, None]  # (T, PLACES)
        none = np.zeros((len(whole), 1, self.elmo.width), np.float32)
        of_words = np.concatenate([whole, none], axis=1)[:, rows]  # (L, T, D)
        return np.concatenate([own, of_words, np.broadcast_to(places, (len(whole), *places.shape))], axis=2)


def are_characters_of_words(sentences: Iterable[Sequence[str]], models: Iterable[Embedder]) -> bool:
    """Whether sentences are cut into single Chinese characters, and some model reads words of several."""
    seen = list(islice(sentences, SEEN))
    tokens = [token for sentence in seen for token in sentence]
    if sum(len(token) == 1 for token in tokens) < SINGLE * max(1, len(tokens)) or not is_mostly_han("".join(tokens)):
        return False
    return any(
        isinstance(model, Elmo) and sum(len(model.tokenizer("".join(one))) for one in seen) <= JOINED * len(tokens)
        for model in models
    )
