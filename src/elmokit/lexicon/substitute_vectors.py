"""What could stand in the place of each occurrence of a word, as vectors over words (Amrami and Goldberg, 2019)."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from elmokit.elmo import Elmo
from elmokit.embedder import Layers, Sentence, Vectors
from elmokit.lexicon.function_words import is_function_word
from elmokit.lexicon.occurrences import is_wordlike, unit_vectors
from elmokit.lexicon.predictions import gap_scores
from elmokit.lexicon.surroundings import Surroundings
from elmokit.text.vocabulary import BOS, EOS, UNK

MOST = 100  # substitutes of an occurrence, or a quarter of the words; with 10 or 30 pseudo-words are told apart less
ROWS = 256  # occurrences whose predictions, (ROWS, V), exist at once


class Replacements(NamedTuple):
    """The words most probable in the place of each occurrence, and their probabilities, which sum to 1: (N, K) each."""

    ids: NDArray[np.int64]
    probabilities: NDArray[np.float32]

    @property
    def words(self) -> NDArray[np.int64]:
        """The ids that occur, each once, in order: (W,)."""
        return np.unique(self.ids)

    def over(self, words: NDArray[np.int64]) -> NDArray[np.float32]:
        """The probabilities as rows over these words, which hold all ids: (N, W)."""
        rows = np.zeros((len(self.ids), len(words)), np.float32)
        np.put_along_axis(rows, np.searchsorted(words, self.ids), self.probabilities, axis=1)
        return rows


class SubstituteVectors:
    """An embedder as `Surroundings` is, by the top layer, from which it tells what could stand in a word's place."""

    def __init__(self, elmo: Elmo) -> None:
        _, self.vocabulary = elmo.output_layer()
        self.elmo, self.around = elmo, Surroundings(elmo)
        self.width, self.layer_count = elmo.width, 1

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "top") -> list[Vectors]:  # noqa: ARG002
        """What is around each token, one array per sentence: (T, D); only the top layer predicts."""
        return self.around.embed(sentences, layers="top")

    def compare(self, word: str, vectors: Vectors) -> Vectors:
        """For each occurrence, by its vector, sqrt(p) * idf of its substitutes at length 1: (N, W).

        Words that fit in the place of most occurrences say little of any: idf is log(N / occurrences they fit).
        """
        found = self.replacements(word, vectors)
        probabilities = found.over(found.words)
        fits = (probabilities > 0).sum(axis=0)  # (W,)
        return unit_vectors(np.sqrt(probabilities) * np.log(len(vectors) / fits).astype(np.float32))

    def replacements(self, word: str, vectors: Vectors) -> Replacements:
        """The content words most probable in the place of a word, not itself however cased, by its vectors, (N, D).

        Their probabilities are those that `LanguageModel.gap_scores` gives.
        """
        barred = self._barred.clone()
        barred[self.vocabulary.encode([word, word.lower(), word.capitalize()])] = True
        parts = list(self._best(vectors, barred))
        ids, scores = (torch.cat(part) for part in zip(*parts, strict=True))
        return Replacements(ids.numpy(), scores.softmax(dim=1).numpy())

    def _best(self, vectors: Vectors, barred: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The ids of the best words and their log odds, (rows, K) each, some rows at a time."""
        for rows in torch.from_numpy(vectors).to(self.elmo.device).split(ROWS):
            with torch.inference_mode():
                scores = gap_scores(self.elmo, rows)  # (rows, V)
                scores[:, barred] = -torch.inf
                best = scores.topk(max(1, min(MOST, int((~barred).sum()) // 4)))
            yield best.indices.cpu(), best.values.cpu()

    @cached_property
    def _barred(self) -> torch.Tensor:
        """(V,): which words are no substitutes."""
        words = self.vocabulary.words
        return torch.tensor([w in (BOS, EOS, UNK) or is_function_word(w) or not is_wordlike(w) for w in words])
