"""scikit-learn: texts as rows of features, and words in their sentences."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.elmo import Elmo, load
from elmokit.embedder import Layers, Pooling, Vectors, pooled
from elmokit.errors import CheckpointError, ConfigError, DataError, MissingExtraError
from elmokit.model.linear import Precision
from elmokit.text.brackets import read_brackets

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingExtraError("vectorizers for scikit-learn need it", "sklearn") from None

Word = str | tuple[Sequence[str], int]
"""A sentence with the word in brackets, or the tokens of a sentence and the word's position."""


class _Vectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both share: the model, which is loaded by `fit` and pickled as its name and digest."""

    model: str | Path
    layers: Layers
    precision: Precision
    elmo_: Elmo

    def fit(self, samples: Any = (), y: Any = None) -> Any:  # noqa: ARG002  (scikit-learn's signature)
        """Load the model and check the settings; nothing is learned."""
        if not isinstance(self.model, str | Path):
            raise ConfigError(
                f"model is {self.model!r}: expected a name or path, for estimators are copied and pickled"
            )
        if self.layers == "all":
            raise ConfigError("a row of features is made of one layer or mix: 'all' is not one")
        check_column(samples)
        self.elmo_ = load(self.model, precision=self.precision)
        self._check(self.elmo_)
        return self

    def _check(self, elmo: Elmo) -> None:
        elmo.embed([], layers=self.layers)  # says if there are no such layers

    def _fitted(self) -> Elmo:
        check_is_fitted(self, "elmo_")
        return self.elmo_

    @property
    def _n_features_out(self) -> int:
        return self.elmo_.width

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | ({"elmo_": self.elmo_.digest} if "elmo_" in state else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "elmo_" in state:
            self.elmo_ = load(self.model, precision=self.precision)
            if self.elmo_.digest != state["elmo_"]:
                found = f"its weights have the digest {self.elmo_.digest[:12]}…, not {state['elmo_'][:12]}…"
                raise CheckpointError(f"{self.model}: not the model that this was fitted with: {found}. Fit it again")


class ElmoVectorizer(_Vectorizer):
    """Texts → a vector each, (texts, width): the mean or maximum of the vectors of its tokens.

    A text is a str, which the model's tokenizer splits, or a list of tokens. `model` is a bundled name or a path.
    """

    def __init__(
        self,
        model: str | Path = "en",
        *,
        layers: Layers = "average",
        pooling: Pooling = "mean",
        precision: Precision = "fp32",
    ) -> None:
        self.model, self.layers, self.pooling, self.precision = model, layers, pooling, precision

    def _check(self, elmo: Elmo) -> None:
        super()._check(elmo)
        pooled([], self.pooling, elmo.width)

    def transform(self, texts: Iterable[str | Sequence[str]]) -> Vectors:
        """One vector per text; zeros for an empty one."""
        elmo = self._fitted()
        return elmo.sentence_vectors(check_column(texts), pooling=self.pooling, layers=self.layers)


class ElmoTokenVectorizer(_Vectorizer):
    """Words in their sentences → a vector each, (words, width): a row per word, for tagging or telling senses apart.

    A word is a sentence with it in brackets, "on the [bank] of it", or a pair of the sentence's tokens and its
    position; `token_samples` makes these of every token. A sentence is embedded once for all of its words.
    """

    def __init__(self, model: str | Path = "en", *, layers: Layers = "average", precision: Precision = "fp32") -> None:
        self.model, self.layers, self.precision = model, layers, precision

    def transform(self, words: Iterable[Word]) -> Vectors:
        """One vector per word."""
        elmo = self._fitted()
        samples = [_tokens_and_position(word, number, elmo) for number, word in enumerate(check_column(words))]
        rows: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for row, (tokens, position) in enumerate(samples):
            rows[tokens].append((row, position))
        found = np.empty((len(samples), elmo.width), dtype=np.float32)
        for wanted, vectors in zip(rows.values(), elmo.embed_stream(list(rows), layers=self.layers), strict=True):
            for row, position in wanted:
                found[row] = vectors[position]
        return found


def token_samples(sentences: Iterable[Sequence[str]]) -> list[tuple[Sequence[str], int]]:
    """Every token of tokenized sentences as a sample of its own: the sentence and the token's position."""
    return [(sentence, position) for sentence in sentences for position in range(len(sentence))]


def check_column(samples: Any) -> Any:
    """The samples, if they are a column of them; a single text or a table is refused."""
    if isinstance(samples, str) or not hasattr(samples, "__iter__") or len(getattr(samples, "shape", (0,))) != 1:
        shape = f" of shape {samples.shape}" if hasattr(samples, "shape") else ""
        found = f"{type(samples).__name__}{shape}"
        raise DataError(f"expected a column of texts, found {found}: pass a list, or one column by its name")
    return samples


def _tokens_and_position(word: Any, number: int, elmo: Elmo) -> tuple[tuple[str, ...], int]:
    if isinstance(word, str):
        found = read_brackets(word, elmo.tokenizer)
        return tuple(found.context.words), found.position
    try:
        tokens, position = word
    except (TypeError, ValueError):
        raise DataError(f"sample {number} is {word!r}: expected a word in brackets, or (tokens, position)") from None
    if isinstance(tokens, str) or position not in range(len(tokens)):
        raise DataError(f"sample {number} is {word!r}: expected a list of tokens and the position of one of them")
    return tuple(tokens), int(position)
