"""simple_elmo's `ElmoModel`. Every sentence is read from a zero state: there is nothing to warm up, and no session."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmokit.elmo import Elmo, load
from elmokit.embedder import Layers, Sentence, Vectors
from elmokit.errors import ConfigError
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.text.vocabulary import BOS, EOS


class ElmoModel:
    """Sentences, each a list of tokens → one padded array of all."""

    def __init__(self) -> None:
        self._elmo: Elmo | None = None

    def load(self, directory: str | Path, max_batch_size: int = 32, limit: int = 100, full: bool = False) -> None:  # noqa: ARG002
        """Load a model of any format; batches, a list of words to remember and a softmax are seen to without asking."""
        self._elmo = load(directory)

    @property
    def elmo(self) -> Elmo:
        """What does the work."""
        if self._elmo is None:
            raise ConfigError("no model is loaded: call load with the path of one first")
        return self._elmo

    @property
    def vector_size(self) -> int:
        return self.elmo.width

    @property
    def n_layers(self) -> int:
        return self.elmo.layer_count

    def get_elmo_vectors(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,  # noqa: ARG002
        layers: Layers = "average",
        session: Any = None,  # noqa: ARG002
    ) -> Vectors:
        """(sentences, T, D), or (sentences, L, T, D) for `layers="all"`, with zeros after the end of a sentence."""
        arrays = self.elmo.embed(texts, layers=layers)
        longest = max((vectors.shape[-2] for vectors in arrays), default=0)
        shape = (self.n_layers, longest, self.vector_size) if layers == "all" else (longest, self.vector_size)
        padded = np.zeros((len(arrays), *shape), np.float32)
        for row, vectors in zip(padded, arrays, strict=True):
            row[..., : vectors.shape[-2], :] = vectors
        return padded

    def get_elmo_vector_average(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: Layers = "average",
        session: Any = None,
    ) -> Vectors:
        """The mean of a sentence's vectors at unit length, (sentences, D), or (sentences, L, D) for `layers="all"`."""
        return unit_vectors(self.get_elmo_vectors(texts, warmup, layers, session).sum(axis=-2))

    def get_elmo_substitutes(
        self, data: Sequence[Sentence], topn: int = 3, nodelimiters: bool = True
    ) -> list[list[dict[str, Any]]]:
        """What each direction expects in the place of each word, best first; `nodelimiters` leaves out <S> and </S>."""
        return [self._substitutes(sentence, topn, nodelimiters) for sentence in data]

    def _substitutes(self, sentence: Sentence, topn: int, nodelimiters: bool) -> list[dict[str, Any]]:
        found = self.elmo.predictions(sentence.split() if isinstance(sentence, str) else sentence)
        forward, backward = (self._best(part, topn, nodelimiters) for part in (found.forward, found.backward))
        rows = zip(found.tokens, forward, backward, strict=True)
        return [{"word": word, "forward": before, "backward": after} for word, before, after in rows]

    def _best(self, log_probabilities: Vectors, topn: int, nodelimiters: bool) -> list[dict[str, Any]]:
        """Of each token's row, (T, V), the words that are most probable."""
        _, vocabulary = self.elmo.output_layer()
        rows = torch.tensor(log_probabilities)
        if nodelimiters:
            rows[:, vocabulary.encode([BOS, EOS])] = -torch.inf
        values, ids = rows.topk(min(topn, rows.shape[1]))
        best = zip(ids.tolist(), values.tolist(), strict=True)
        return [
            {"candidates": numbers, "candidate_words": [vocabulary.words[number] for number in numbers], "logp": logp}
            for numbers, logp in best
        ]
