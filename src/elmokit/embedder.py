"""What goes into a model and what comes out of it; and the one thing that tasks and studies ask of vectors."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Layers = Literal["average", "top", "all"] | int
Sentence = str | Sequence[str]


def choose_layers(everything: Any, layers: Layers) -> Any:
    """Of all layers, (L, …), an array or a tensor, those that `layers` names: (…), or (L, …) for "all"."""
    if layers == "all":
        return everything
    return everything.mean(axis=0) if layers == "average" else everything[-1 if layers == "top" else layers]


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
