"""Words whose use differs between slices of time, or between any corpora, by one model.

By vectors (Kutuzov and Giulianelli, 2020), by what could stand in their place (Card, 2023), and, as a baseline, by
static vectors of each slice in one space (Hamilton et al., 2016).
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elmokit.elmo import Elmo
from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.lexicon.aligned import aligned_distances, train_slice
from elmokit.lexicon.distances import MEASURES, adjusted, divergence_terms, permutation_test
from elmokit.lexicon.function_words import is_function_word
from elmokit.lexicon.occurrences import Occurrence, embed_words, find_occurrences, lowest, survey, unit_vectors
from elmokit.lexicon.settings import Measure, ShiftSettings
from elmokit.lexicon.substitute_vectors import Replacements, SubstituteVectors
from elmokit.progress import SILENCE, Progress
from elmokit.static.embedders import StaticVectors
from elmokit.text.corpus import Context
from elmokit.text.inputs import in_chunks

DEFAULTS = ShiftSettings()
VECTORS_AT_ONCE = 1 << 26  # numbers: the vectors of as many words are looked at together
SUBSTITUTES = 8  # shown of a slice
Slices = Mapping[str, Iterable[Context]]
"""What is compared, in order of time, by name; each is read more than once."""


class Distances(NamedTuple):
    """How far apart the uses of a word in two slices are."""

    first: str
    last: str
    apd: float
    """Average pairwise distance: the mean of 1 - cosine over all pairs of an occurrence here and one there."""
    excess: float
    """By how much that exceeds the mean of 1 - cosine over any two occurrences, wherever they are."""
    prt: float
    """Prototype distance: 1 - cosine of the mean vectors."""
    jsd: float | None
    """Jensen–Shannon divergence of the pooled substitutes, in bits; none by a model that predicts no words."""
    static: float | None
    """1 - cosine of static vectors of either slice, aligned; none unless asked for, or if a slice has too few."""
    p: float | None
    """By the permutation test of the measure that words are ranked by; none without rounds, and for static vectors."""


@dataclass(frozen=True)
class Change:
    """How the use of a word changes over slices, two or more."""

    word: str
    slices: tuple[str, ...]
    counts: tuple[int, ...]  # occurrences in each slice
    by: Measure  # what words are ranked by
    distances: tuple[Distances, ...]
    """Of the first slice and the last; with more than two, then of each slice and the next, and of the first slice and
    each later one."""
    q: float | None
    """The p of first and last, adjusted for as many words as were compared (Benjamini and Hochberg, 1995)."""
    substitutes: tuple[tuple[str, ...], ...]
    """For each slice, what fits in the place of the word there more than elsewhere, the most telling first; none by a
    model that predicts no words."""
    examples: tuple[tuple[Occurrence, ...], ...]
    """From each slice, those that are farthest on average from all occurrences in the others."""

    @property
    def overall(self) -> Distances:
        """The distances of the first slice and the last."""
        return self.distances[0]


class Sums(NamedTuple):
    """Over the occurrences of each word in one slice: of its vectors, and of these at length 1, (words, D) each."""

    vectors: NDArray[np.float64]
    units: NDArray[np.float64]
    counts: NDArray[np.int64]


def find_shift(
    slices: Slices,
    embedder: Embedder,
    *,
    words: Sequence[str] = (),
    settings: ShiftSettings = DEFAULTS,
    layers: Layers = "average",
    seed: int = 0,
    progress: Progress = SILENCE,
) -> list[Change]:
    """The words whose use changed most from the first slice to the last: of those given, or of all that are frequent.

    With more than two slices, the steps between them are measured too.
    """
    study = _Study(slices, embedder, settings, {"layers": layers, "limit": settings.limit, "seed": seed}, progress)
    chosen = study.choose(words)
    scores = study.scores(chosen)  # (words,)
    best = [chosen[index] for index in np.argsort(-scores, kind="stable")[: settings.k].tolist()]
    changes = [change for group in study.groups(best) for change in study.changes(group)]
    p_values = [change.overall.p for change in changes if change.overall.p is not None]
    if not p_values:
        return changes
    return [replace(change, q=q) for change, q in zip(changes, adjusted(p_values, len(chosen)), strict=True)]


def shift_rows(changes: Iterable[Change]) -> Iterator[dict[str, Any]]:
    """A row of a table for each word and each two slices that were compared, the words in their order."""
    for rank, change in enumerate(changes, 1):
        counts = dict(zip(change.slices, change.counts, strict=True))
        for number, one in enumerate(change.distances):
            numbers = {"first_count": counts[one.first], "last_count": counts[one.last]}
            q = {"q": change.q if number == 0 else None}
            yield {"rank": rank, "word": change.word} | numbers | one._asdict() | q


class _Study:
    """The slices with what one reading of each tells, and the model that reads them."""

    def __init__(
        self, slices: Slices, embedder: Embedder, settings: ShiftSettings, reading: dict[str, Any], progress: Progress
    ) -> None:
        if settings.by is not None and settings.by not in get_args(Measure):
            raise ConfigError(f"unknown measure {settings.by!r}: known are {', '.join(get_args(Measure))}")
        if len(slices) < 2:
            raise ConfigError(f"{len(slices)} slices: change is measured between two or more")
        self.slices, self.embedder, self.settings, self.progress = slices, embedder, settings, progress
        self.reading = reading | {"progress": progress}
        self.predictor = _predictor(embedder, required=settings.by == "jsd")
        self.by: Measure = settings.by or ("jsd" if self.predictor else "excess")
        self.surveys = {
            name: survey(corpus, progress=progress, stage=f"counting {name}") for name, corpus in slices.items()
        }
        self.names = tuple(slices)
        self.ends = self.names[0], self.names[-1]
        ways = [self.ends, *pairwise(self.names), *((self.names[0], name) for name in self.names[1:])]
        self.pairs = list(dict.fromkeys(ways))

    @cached_property
    def static(self) -> dict[str, StaticVectors]:
        """Skip-gram of each slice."""
        seed = self.reading["seed"]
        return {name: train_slice(corpus, seed=seed, progress=self.progress) for name, corpus in self.slices.items()}

    def choose(self, words: Sequence[str]) -> list[str]:
        """The words given, which every slice must have, or those that are frequent in all, the most frequent first."""
        for word, known in product(words, self.surveys.values()):
            known.check_words(word)
        if words:
            return list(dict.fromkeys(words))
        least, surveys = self.settings.min_count, list(self.surveys.values())
        rarest = {word: min(known.counts[word] for known in surveys) for word in surveys[0].frequent(least)}
        shared = [word for word, count in rarest.items() if count >= least]
        if self.settings.content_words:
            shared = [word for word in shared if not is_function_word(word)]
        if not shared:
            kind = "content word" if self.settings.content_words else "word"
            raise DataError(f"no {kind} occurs {least} times in each of the {len(surveys)} slices: lower --min-count")
        return sorted(shared, key=lambda word: (-rarest[word], word))[: self.settings.max_words]

    def scores(self, words: list[str]) -> NDArray[np.float64]:
        """The distance of the first slice and the last by which words are ranked, (words,)."""
        if self.by == "static":
            found = self._static_distances(self.ends, words)
            return np.array([-np.inf if value is None else value for value in found])
        if self.by == "jsd":
            return np.array([score for group in self.groups(words) for score in self._divergences(group)])
        first, last = (self._sums(name, words) for name in self.ends)
        index = Sums._fields.index("vectors" if self.by == "prt" else "units")
        return MEASURES[self.by](first[index], first.counts, last[index], last.counts)

    def groups(self, words: list[str]) -> Iterator[list[str]]:
        """The words, as many at a time as may have their vectors in memory together."""
        limit = self.settings.limit or sys.maxsize
        counts = {word: sum(min(known.counts[word], limit) for known in self.surveys.values()) for word in words}
        return in_chunks(words, VECTORS_AT_ONCE, length=lambda word: counts[word] * self.embedder.width)

    def _divergences(self, words: list[str]) -> list[float]:
        first, last = (self._replacements(name, words) for name in self.ends)
        return [_measure("jsd", *_rows_over(first[word], last[word])) for word in words]

    def changes(self, words: list[str]) -> list[Change]:
        """What there is to say of these words, whose occurrences are in memory together."""
        found = {name: self._occurrences(name, words, self.embedder, "examples from") for name in self.names}
        replaced = {name: self._replacements(name, words) for name in self.names} if self.predictor else None
        static = {pair: self._static_distances(pair, words) for pair in self.pairs}
        changes = []
        for index, word in enumerate(words):
            vectors = {name: np.stack([one.vector for one in found[name][word]]) for name in self.names}
            replacements = {name: replaced[name][word] for name in self.names} if replaced else None
            distances = [
                self._distances(pair, vectors, replacements)._replace(static=static[pair][index]) for pair in self.pairs
            ]
            counts = tuple(known.counts[word] for known in self.surveys.values())
            telling = _telling(replacements, self.predictor) if replacements and self.predictor else ()
            examples = self._examples({name: found[name][word] for name in self.names}, vectors)
            changes.append(Change(word, self.names, counts, self.by, tuple(distances), None, telling, examples))
        return changes

    def _distances(
        self, pair: tuple[str, str], vectors: Mapping[str, Vectors], replacements: Mapping[str, Replacements] | None
    ) -> Distances:
        """All measures of two slices, and the test of that by which words are ranked."""
        here, there = (vectors[name] for name in pair)
        units = [unit_vectors(here), unit_vectors(there)]
        rows = {"apd": units, "excess": units, "prt": [here, there]}
        if replacements:
            rows["jsd"] = _rows_over(*(replacements[name] for name in pair))
        values = {name: _measure(name, *both) for name, both in rows.items()}
        by, rounds, p = self.by, self.settings.permutations, None
        if rounds and by in rows:
            first, last = rows[by]
            p = permutation_test(first, last, MEASURES[by], rounds=rounds, seed=self.reading["seed"])
        return Distances(*pair, values["apd"], values["excess"], values["prt"], values.get("jsd"), None, p)

    def _static_distances(self, pair: tuple[str, str], words: Sequence[str]) -> Sequence[float | None]:
        if not self.settings.static and self.by != "static":
            return [None] * len(words)
        first, last = (self.static[name] for name in pair)
        return aligned_distances(first, last, words)

    def _examples(
        self, found: Mapping[str, list[Occurrence]], vectors: Mapping[str, Vectors]
    ) -> tuple[tuple[Occurrence, ...], ...]:
        """From each slice the occurrences that are farthest from those in all others."""
        units = {name: unit_vectors(some) for name, some in vectors.items()}
        sums = {name: some.sum(axis=0, dtype=np.float64) for name, some in units.items()}
        total = np.sum(list(sums.values()), axis=0)
        cosines = {name: units[name] @ (total - sums[name]) for name in self.names}
        return tuple(lowest(found[name], cosines[name], self.settings.examples) for name in self.names)

    def _occurrences(
        self, name: str, words: Iterable[str], embedder: Embedder, doing: str
    ) -> dict[str, list[Occurrence]]:
        known, stage = self.surveys[name], f"{doing} {name}"
        return find_occurrences(self.slices[name], embedder, words, known=known, stage=stage, **self.reading)

    def _replacements(self, name: str, words: Iterable[str]) -> dict[str, Replacements]:
        """What could stand in the place of the same occurrences."""
        assert self.predictor is not None
        found = self._occurrences(name, words, self.predictor, "substitutes in")
        vectors = {word: np.stack([one.vector for one in some]) for word, some in found.items()}
        return {word: self.predictor.replacements(word, some) for word, some in vectors.items()}

    def _sums(self, name: str, words: list[str]) -> Sums:
        """The sums of the words' vectors in a slice."""
        indices = {word: index for index, word in enumerate(words)}
        shape = (len(indices), self.embedder.width)
        sums = Sums(np.zeros(shape), np.zeros(shape), np.zeros(len(indices), dtype=np.int64))
        known, stage = self.surveys[name], f"embedding {name}"
        for context, positions, vectors in embed_words(
            self.slices[name], self.embedder, words, known, stage=stage, **self.reading
        ):
            rows = [indices[context.tokens[position].text] for position in positions]
            np.add.at(sums.vectors, rows, vectors)
            np.add.at(sums.units, rows, unit_vectors(vectors))
            np.add.at(sums.counts, rows, 1)
        return sums


def _predictor(embedder: Embedder, *, required: bool) -> SubstituteVectors | None:
    """What finds substitutes, if the embedder is a model with a softmax."""
    if not isinstance(embedder, Elmo):
        if required:
            raise ConfigError("substitutes are found by a language model: rank by apd or prt with other embedders")
        return None
    try:
        return SubstituteVectors(embedder)
    except CheckpointError:
        if required:
            raise
        return None


def _telling(replacements: Mapping[str, Replacements], predictor: SubstituteVectors) -> tuple[tuple[str, ...], ...]:
    """For each slice the substitutes that add most to its divergence from all others together."""
    ids = np.unique(np.concatenate([one.ids.ravel() for one in replacements.values()]))
    rows, telling = _rows_over(*replacements.values()), []
    for number, own in enumerate(rows):
        others = np.concatenate([*rows[:number], *rows[number + 1 :]])
        terms = divergence_terms(own.mean(axis=0), others.mean(axis=0))  # (W,)
        best = [index for index in np.argsort(-terms, kind="stable")[:SUBSTITUTES] if terms[index] > 0]
        telling.append(tuple(predictor.vocabulary.words[ids[index]] for index in best))
    return tuple(telling)


def _rows_over(*replacements: Replacements) -> list[NDArray[np.float32]]:
    """The substitutes of occurrences in some slices as distributions over the same words, (N, W) each."""
    words = np.unique(np.concatenate([one.ids.ravel() for one in replacements]))
    return [one.over(words) for one in replacements]


def _measure(name: str, here: NDArray[np.float32], there: NDArray[np.float32]) -> float:
    """The distance of occurrences, (N, D) and (M, D)."""
    first, second = (rows.sum(axis=0, dtype=np.float64) for rows in (here, there))
    return float(MEASURES[name](first, len(here), second, len(there)))
