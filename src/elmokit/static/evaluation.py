"""How well vectors agree with people: word similarity, in context too, and analogies.

Sets are read in the formats they are handed around in, told apart by what is in them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from elmokit.embedder import Embedder, Vectors
from elmokit.errors import DataError
from elmokit.static.embedders import StaticVectors

T = TypeVar("T")
Numbers = NDArray[np.float64]
Method = Literal["add", "mul"]
SCORES_AT_A_TIME = 1 << 24
PAIRS_AT_A_TIME = 100
Question = tuple[str, ...]
"""Four words: a is to b as c is to d."""


class WordInContext(NamedTuple):
    """A text with one of its words between <b> and </b>: tokens[start:end]."""

    tokens: list[str]
    start: int
    end: int


class Pair(NamedTuple, Generic[T]):
    """Two words, alone or each in a text, and how similar people find them."""

    first: T
    second: T
    score: float


@dataclass(frozen=True)
class Dataset:
    """One file; only one of its lists has anything in it."""

    name: str
    """The file's, without its ending."""
    pairs: tuple[Pair[str], ...] = ()
    """WordSim-353, SimLex-999, MEN, 240 and 297 and others: two words, then a number among the other columns."""
    questions: tuple[tuple[str, tuple[Question, ...]], ...] = ()
    """questions-words, CA8: ": group", then four words per line."""
    in_context: tuple[Pair[WordInContext], ...] = ()
    """SCWS: tab-separated, with the words between <b> and </b>."""


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


def read_dataset(path: Path) -> Dataset:
    """Read a file of any of these formats."""
    lines = list(_read_lines(path))
    if not lines:
        raise DataError(f"{path}: an empty file")
    first = lines[0][1]
    if "<b>" in first:
        return Dataset(path.stem, in_context=tuple(_each(path, lines, _pair_in_context)))
    if first.startswith(":"):
        return Dataset(path.stem, questions=tuple(_groups(path, lines)))
    if _pair(first) is None:
        del lines[0]  # names of the columns
    return Dataset(path.stem, pairs=tuple(_each(path, lines, _pair)))


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are neither blank nor remarks, with their numbers."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig").rstrip("\r")
        except UnicodeDecodeError:
            raise DataError(f"{path}, line {number}: not UTF-8: save the file as UTF-8") from None
        if text.strip() and not text.startswith("#"):
            yield number, text


def _each(path: Path, lines: list[tuple[int, str]], parse: Callable[[str], T | None]) -> Iterator[T]:
    for number, line in lines:
        item = parse(line)
        if item is None:
            raise DataError(
                f"{path}, line {number}: found {line[:60]!r}; expected two words and a number, or the format of "
                "questions-words (': group', then four words per line) or of SCWS (words between <b> and </b>)"
            )
        yield item


def _pair(line: str) -> Pair[str] | None:
    """The first two columns and the first number after them."""
    separator = next((mark for mark in ("\t", ",", ";") if mark in line), None)
    fields = [field.strip() for field in line.split(separator)]
    score = next((score for score in map(_number, fields[2:]) if score is not None), None)
    return None if score is None or not fields[0] or not fields[1] else Pair(fields[0], fields[1], score)


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None


def _groups(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[str, tuple[Question, ...]]]:
    starts = [index for index, (_, line) in enumerate(lines) if line.startswith(":")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start][1].removeprefix(":").strip(), tuple(_each(path, lines[start + 1 : end], _question))


def _question(line: str) -> Question | None:
    words = tuple(line.split())
    return words if len(words) == 4 else None


def _pair_in_context(line: str) -> Pair[WordInContext] | None:
    """Number, word, part of speech, word, part of speech, text, text, mean score, single scores."""
    fields = line.split("\t")
    found = [word for word in map(_word_in_context, fields) if word is not None]
    score = _number(fields[7]) if len(fields) > 7 else None
    return Pair(found[0], found[1], score) if len(found) == 2 and score is not None else None


def _word_in_context(text: str) -> WordInContext | None:
    before, opened, rest = text.partition("<b>")
    word, closed, after = rest.partition("</b>")
    if not opened or not closed or not word.strip():
        return None
    start, end = len(before.split()), len(before.split()) + len(word.split())
    return WordInContext([*before.split(), *word.split(), *after.split()], start, end)


def evaluate(
    vectors: StaticVectors, dataset: Dataset, *, method: Method = "add", limit: int | None = None
) -> list[DatasetScore]:
    """The scores of static vectors on a set of any kind; answers are sought among the first `limit` words."""
    if dataset.in_context:
        return evaluate_in_context(vectors, dataset)
    if not dataset.pairs:
        return list(_analogies(vectors, dataset, method, limit))
    rows = np.array([vectors.rows(pair[:2]) for pair in dataset.pairs])  # (N, 2)
    cosines = _cosines(*vectors.vectors[rows.T])
    cosines[(rows < 0).any(axis=1)] = np.nan
    return [_correlation(dataset.name, "all", cosines, np.array([pair.score for pair in dataset.pairs]))]


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
    names = [*(f"layer {number}" for number in range(embedder.layer_count)), "average"][: len(by_layer)]
    return [_correlation(dataset.name, *of_layer, people) for of_layer in zip(names, by_layer, strict=True)]


def spearman(first: Numbers, second: Numbers) -> float | None:
    """The correlation of the ranks; ties share their mean rank."""
    if any(len(np.unique(numbers)) < 2 for numbers in (first, second)):
        return None
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(numbers: Numbers) -> Numbers:
    _, indices, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[indices]


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
    pairs = zip(embedded, words, strict=True)
    layers = np.stack([vectors[:, word.start : word.end].mean(axis=1) for vectors, word in pairs])  # (N, L, D)
    return np.concatenate([layers, layers.mean(axis=1, keepdims=True)], axis=1) if layers.shape[1] > 1 else layers


def _analogies(vectors: StaticVectors, dataset: Dataset, method: Method, limit: int | None) -> Iterator[DatasetScore]:
    """Accuracy by group, then over all."""
    some = vectors.vectors[:limit]
    norms = np.linalg.norm(some, axis=1, keepdims=True)
    units = np.divide(some, norms, out=np.zeros_like(some), where=norms > 0)
    correct = found = total = 0
    for group, questions in dataset.questions:
        rows = np.array([vectors.rows(question) for question in questions]).reshape(-1, 4)
        rows = rows[((rows >= 0) & (rows < len(units))).all(axis=1)]  # (N, 4)
        right = _count_right(units, rows, method)
        yield _accuracy(dataset.name, group, right, len(rows), len(questions))
        correct, found, total = correct + right, found + len(rows), total + len(questions)
    yield _accuracy(dataset.name, "all", correct, found, total)


def _accuracy(name: str, part: str, correct: int, found: int, total: int) -> DatasetScore:
    return DatasetScore(name, part, "accuracy", correct / found if found else None, found, total)


def _count_right(units: Vectors, rows: NDArray[np.int64], method: Method) -> int:
    """How many fourth words are the best answer, the three of the question aside."""
    size = max(1, SCORES_AT_A_TIME // len(units))
    right = 0
    for start in range(0, len(rows), size):
        asked, answers = rows[start : start + size, :3], rows[start : start + size, 3]
        a, b, c = (units[words] for words in asked.T)  # (n, D)
        if method == "add":  # 3CosAdd: cos(d, b − a + c)
            scores = (b - a + c) @ units.T  # (n, V)
        else:  # 3CosMul: cos(d, b) cos(d, c) / cos(d, a), cosines moved to 0…1
            to_a, to_b, to_c = ((vectors @ units.T + 1) / 2 for vectors in (a, b, c))
            scores = to_b * to_c / (to_a + np.float32(0.001))
        np.put_along_axis(scores, asked, -np.inf, axis=1)
        right += int((scores.argmax(axis=1) == answers).sum())
    return right
