"""How well vectors agree with people: word similarity, in context too, and analogies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Embedder, Vectors
from elmokit.errors import DataError
from elmokit.static.datasets import Dataset, Pair, WordInContext
from elmokit.static.embedders import StaticVectors

Numbers = NDArray[np.float64]
Method = Literal["add", "mul"]
SCORES_AT_A_TIME = 1 << 24
PAIRS_AT_A_TIME = 100


@dataclass(frozen=True)
class DatasetScore:
    """A score, and on how much of the set it rests."""

    dataset: str
    part: str
    """The layer, or the group of questions; "all" for everything together."""
    measure: Literal["spearman", "accuracy"]
    value: float | None
    """None where there is too little to compute it from."""
    found: int
    """Pairs or questions whose words all have vectors."""
    total: int
    """Pairs or questions."""


def evaluate(
    vectors: StaticVectors, dataset: Dataset, *, method: Method = "add", limit: int | None = None
) -> list[DatasetScore]:
    """The scores of static vectors on a set of any kind; answers are sought among the first `limit` words."""
    if dataset.in_context:
        return evaluate_in_context(vectors, dataset)
    if dataset.pairs:
        return [_similarity(vectors, dataset.name, dataset.pairs)]
    return list(_analogies(vectors, dataset, method, limit))


def evaluate_in_context(embedder: Embedder, dataset: Dataset) -> list[DatasetScore]:
    """The scores of every layer, and of their average, on a set of words in context."""
    if not dataset.in_context:
        raise DataError(f"{dataset.name}: its words stand in no context: it is a set for static vectors")
    pairs, cosines = dataset.in_context, []
    for start in range(0, len(pairs), PAIRS_AT_A_TIME):
        some = pairs[start : start + PAIRS_AT_A_TIME]
        first, second = [pair.first for pair in some], [pair.second for pair in some]
        cosines.append(_cosines(_vectors_in_context(embedder, first), _vectors_in_context(embedder, second)))
    by_layer = np.concatenate(cosines).T  # (L, N)
    people = np.array([pair.score for pair in pairs])
    names = [*(f"layer {number}" for number in range(embedder.layer_count)), "average"]
    return [
        _correlation(dataset.name, name, by_model, people)
        for name, by_model in zip(names[: len(by_layer)], by_layer, strict=True)
    ]


def spearman(first: Numbers, second: Numbers) -> float | None:
    """The correlation of the ranks; ties share their mean rank."""
    if any(len(np.unique(numbers)) < 2 for numbers in (first, second)):
        return None
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(numbers: Numbers) -> Numbers:
    _, indices, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[indices]


def _similarity(vectors: StaticVectors, name: str, pairs: Sequence[Pair]) -> DatasetScore:
    rows = np.array([vectors.lookup.rows(pair[:2]) for pair in pairs])  # (N, 2)
    cosines = _cosines(*vectors.vectors[rows.T])
    cosines[(rows < 0).any(axis=1)] = np.nan
    return _correlation(name, "all", cosines, np.array([pair.score for pair in pairs]))


def _correlation(name: str, part: str, by_model: Numbers, by_people: Numbers) -> DatasetScore:
    """Over the pairs for which the model has a number."""
    found = ~np.isnan(by_model)
    value = spearman(by_model[found], by_people[found])
    return DatasetScore(name, part, "spearman", value, int(found.sum()), len(found))


def _cosines(first: Vectors, second: Vectors) -> Numbers:
    """Along the last axis; NaN where one has no length."""
    norms = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    products = np.einsum("...d,...d->...", first, second)
    cosines: Numbers = np.divide(products, norms, out=np.full(norms.shape, np.nan), where=norms > 0)
    return cosines


def _vectors_in_context(embedder: Embedder, words: Sequence[WordInContext]) -> Vectors:
    """The mean vector of each word's tokens, by layer, and of all layers if there are several, (N, L, D)."""
    embedded = embedder.embed([word.tokens for word in words], layers="all")
    layers = np.stack(
        [vectors[:, word.start : word.end].mean(axis=1) for vectors, word in zip(embedded, words, strict=True)]
    )  # (N, L, D)
    return np.concatenate([layers, layers.mean(axis=1, keepdims=True)], axis=1) if layers.shape[1] > 1 else layers


def _analogies(vectors: StaticVectors, dataset: Dataset, method: Method, limit: int | None) -> Iterator[DatasetScore]:
    """Accuracy by group, then over all."""
    units = _units(vectors.vectors[:limit])
    correct = found = total = 0
    for group, questions in dataset.questions:
        rows = np.array([vectors.lookup.rows(question) for question in questions]).reshape(-1, 4)
        rows = rows[((rows >= 0) & (rows < len(units))).all(axis=1)]  # (N, 4)
        right = _count_right(units, rows, method)
        yield _accuracy(dataset.name, group, right, len(rows), len(questions))
        correct, found, total = correct + right, found + len(rows), total + len(questions)
    yield _accuracy(dataset.name, "all", correct, found, total)


def _accuracy(name: str, part: str, correct: int, found: int, total: int) -> DatasetScore:
    return DatasetScore(name, part, "accuracy", correct / found if found else None, found, total)


def _units(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return units


def _count_right(units: Vectors, rows: NDArray[np.int64], method: Method) -> int:
    """How many fourth words are the best answer, the three of the question aside."""
    size = max(1, SCORES_AT_A_TIME // len(units))
    right = 0
    for start in range(0, len(rows), size):
        asked, answers = rows[start : start + size, :3], rows[start : start + size, 3]
        scores = _scores(units, *asked.T, method=method)  # (n, V)
        np.put_along_axis(scores, asked, -np.inf, axis=1)
        right += int((scores.argmax(axis=1) == answers).sum())
    return right


def _scores(
    units: Vectors, a: NDArray[np.int64], b: NDArray[np.int64], c: NDArray[np.int64], *, method: Method
) -> Vectors:
    """3CosAdd: cos(d, b − a + c). 3CosMul: cos(d, b) cos(d, c) / cos(d, a), cosines moved to 0…1."""
    if method == "add":
        return np.asarray((units[b] - units[a] + units[c]) @ units.T, dtype=np.float32)
    to_a, to_b, to_c = ((units[word] @ units.T + 1) / 2 for word in (a, b, c))
    return np.asarray(to_b * to_c / (to_a + np.float32(0.001)), dtype=np.float32)
