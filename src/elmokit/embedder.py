"""What goes into a model and what comes out of it; and the one thing that tasks and studies ask of vectors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from elmokit.answers import html_table
from elmokit.errors import ConfigError, MissingExtraError

Vectors = NDArray[np.float32]
Layers = Literal["average", "top", "all"] | int
Pooling = Literal["mean", "max"]
Sentence = str | Sequence[str]


def choose_layers(everything: Any, layers: Layers) -> Any:
    """Of all layers, (L, …), an array or a tensor, those that `layers` names: (…), or (L, …) for "all"."""
    if layers == "all":
        return everything
    return everything.mean(axis=0) if layers == "average" else everything[-1 if layers == "top" else layers]


def pooled(arrays: Iterable[Vectors], pooling: Pooling, width: int) -> Vectors:
    """One vector per sentence, (sentences, width): the mean or maximum of its tokens; zeros for an empty one."""
    if pooling not in get_args(Pooling):
        raise ConfigError(f"unknown pooling {pooling!r}: known are {', '.join(get_args(Pooling))}")
    pool, empty = np.mean if pooling == "mean" else np.max, np.zeros(width, np.float32)
    found = [pool(part, axis=0) if len(part) else empty for part in arrays]
    return np.stack(found) if found else np.zeros((0, width), np.float32)


SHOWN_NUMBERS = 6  # of a vector, in a notebook


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """The tokens of a sentence with their vectors: an array to numpy, a table to pandas and to a notebook."""

    tokens: list[str]
    vectors: Vectors
    """(T, D), or (L, T, D) for all layers"""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.vectors.shape

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, index: Any) -> Any:
        return self.vectors[index]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.vectors, dtype=dtype, copy=copy)

    def to_dataframe(self) -> Any:
        """A row per token, by its name, or by layer and token; a column per number."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("a data frame needs pandas", "pandas") from None
        *layers, _, width = self.vectors.shape
        rows = pandas.Index(self.tokens, dtype=object, name="token")
        if layers:
            rows = pandas.MultiIndex.from_product([range(*layers), rows], names=["layer", "token"])
        return pandas.DataFrame(self.vectors.reshape(-1, width), index=rows)

    def __repr__(self) -> str:
        return f"TokenVectors({self.tokens!r}, shape={self.shape})"

    def _repr_html_(self) -> str:
        one_layer = self.vectors.ndim == 2
        top = self.vectors if one_layer else self.vectors[-1]
        numbers = ([f"{number:.3f}" for number in vector[:SHOWN_NUMBERS]] for vector in top)
        rows = ((token, *row, "…") for token, row in zip(self.tokens, numbers, strict=True))
        return html_table(rows, caption=" × ".join(map(str, self.shape)) + ("" if one_layer else ", the top layer"))


class Predictions(NamedTuple):
    """The words that could stand in the place of each token; column v is word v of the vocabulary."""

    tokens: list[str]
    forward: Vectors  # (T, V) log p(word | the words before)
    backward: Vectors  # (T, V) log p(word | the words after)


class LogLikelihoods(NamedTuple):
    """How probable the tokens of a sentence and its bounds are, in nats."""

    tokens: list[str]
    forward: Vectors  # (T + 1,) log p(token | the words before), then that of </S>
    backward: Vectors  # (T + 1,) that of <S>, then log p(token | the words after)
    forward_entropy: Vectors | None = None  # (T + 1,) that of all words before each of these is read, if asked for
    backward_entropy: Vectors | None = None


class Embedder(Protocol):
    """Tokens → layers (L, T, D). A static vector is one layer."""

    @property
    def width(self) -> int: ...

    @property
    def layer_count(self) -> int: ...

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """An array a sentence: (T, D), or (L, T, D) for `layers="all"`."""
