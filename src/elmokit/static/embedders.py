"""Static vectors as embedders: a word has the same vector wherever it stands."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmokit.config import Tokenization
from elmokit.embedder import Layers, Sentence, Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.static.files import Identity, read_blocks, read_vectors, write_vectors
from elmokit.text.inputs import tokenized
from elmokit.text.tokenizers import get_tokenizer


class StaticEmbedder:
    """Words with a row each; a repeated word keeps its first. A word that is not among them has a vector of zeros.

    With `lower_case` a word that is not among them has the vector of its lower-case form.
    """

    layer_count = 1

    def __init__(
        self,
        words: Sequence[str],
        vectors: Vectors | Identity,
        *,
        lower_case: bool = False,
        tokenizer: Tokenization = "auto",
    ) -> None:
        self.words, self.vectors, self.lower_case = tuple(words), vectors, lower_case
        self.width = int(vectors.shape[1])
        self.tokenizer = get_tokenizer(tokenizer)
        self._rows: dict[str, int] = {}
        for row, word in enumerate(self.words):
            self._rows.setdefault(word, row)

    def __contains__(self, word: str) -> bool:
        return bool(self.rows([word])[0] >= 0)

    def rows(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The row of each word, or of its lower-case form if that is asked for; −1 if there is none."""
        others = self._rows if self.lower_case else {}
        found = [self._rows.get(word, others.get(word.lower(), -1)) for word in words]
        return np.array(found, dtype=np.int64)

    def vectors_of(self, words: Sequence[str]) -> Vectors:
        """One vector per word, (words, width); zeros for a word that is not among ours."""
        rows = self.rows(words)
        found = np.zeros((len(rows), self.width), dtype=np.float32)  # (T, D)
        found[rows >= 0] = self.vectors[rows[rows >= 0]]
        return found

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """One array per sentence, (tokens, width), or (1, tokens, width) for `layers="all"`."""
        if isinstance(layers, bool) or layers not in ("average", "top", "all", 0):
            known = "static vectors have 'average', 'top', 'all' and 0, all the same"
            raise ConfigError(f"unknown layers {layers!r}: {known}")
        found = [self.vectors_of(tokens) for tokens in tokenized(sentences, self.tokenizer)]
        return [vectors[None] for vectors in found] if layers == "all" else found


class StaticVectors(StaticEmbedder):
    """Words and a vector for each: skip-gram's, GloVe's, or any file's."""

    def __init__(
        self, words: Sequence[str], vectors: Vectors, *, lower_case: bool = False, tokenizer: Tokenization = "auto"
    ) -> None:
        if vectors.ndim != 2 or len(vectors) != len(words):
            raise DataError(f"{len(words):,} words, but vectors of shape {vectors.shape}: expected a row for each word")
        super().__init__(words, vectors, lower_case=lower_case, tokenizer=tokenizer)
        self.vectors: Vectors = np.ascontiguousarray(vectors, dtype=np.float32)  # (V, D)

    @classmethod
    def load(cls, path: str | Path, *, lower_case: bool = False, tokenizer: Tokenization = "auto") -> "StaticVectors":
        """Vectors from word2vec's, fastText's or GloVe's text, word2vec's binary or safetensors."""
        return cls(*read_vectors(Path(path).expanduser()), lower_case=lower_case, tokenizer=tokenizer)

    def save(self, path: str | Path, *, header: bool = True) -> None:
        """Write a file in the format of its ending; text without `header` is GloVe's."""
        write_vectors(Path(path), self.words, self.vectors, header=header)


class OneHot(StaticEmbedder):
    """A vector as wide as the vocabulary with a 1 at the word's index.

    It is kept as the indices alone; `embed` writes the vectors out, `indices` does not.
    """

    def __init__(self, words: Sequence[str], *, lower_case: bool = False, tokenizer: Tokenization = "auto") -> None:
        super().__init__(words, Identity(len(words)), lower_case=lower_case, tokenizer=tokenizer)

    @classmethod
    def load(cls, path: str | Path, *, lower_case: bool = False, tokenizer: Tokenization = "auto") -> "OneHot":
        """The vocabulary of a file whose vectors are one-hot."""
        words: list[str] = []
        width = 0
        for block in read_blocks(Path(path).expanduser()):
            # The rows of the identity from here on.
            ones = (np.diagonal(block.vectors, len(words)) == 1).sum()
            if not ones == len(block.vectors) == np.count_nonzero(block.vectors):
                raise DataError(f"{path}: the vectors from the word {block.words[0]!r} on are not one-hot")
            words += block.words
            width = block.vectors.shape[1]
        if width != len(words):
            raise DataError(f"{path}: {len(words):,} words, but one-hot vectors of width {width:,}")
        return cls(words, lower_case=lower_case, tokenizer=tokenizer)

    def save(self, path: str | Path, *, header: bool = True) -> None:
        """Write a file in the format of its ending; all but .safetensors write every zero."""
        write_vectors(Path(path), self.words, self.vectors, header=header)

    def indices(self, sentences: Iterable[Sentence]) -> list[NDArray[np.int64]]:
        """Where the 1 stands, one array per sentence, (tokens,); −1 for a word that is not in the vocabulary."""
        return [self.rows(tokens) for tokens in tokenized(sentences, self.tokenizer)]


load = StaticVectors.load
