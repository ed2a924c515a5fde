"""A word in all its contexts, a line each: in the order of the text, or in one that shows patterns."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from elmokit.embedder import Embedder, Layers
from elmokit.errors import ConfigError
from elmokit.lexicon.neighbors import bracketed
from elmokit.lexicon.occurrences import CHUNK_TOKENS, survey, unit_vectors
from elmokit.lexicon.senses import find_senses
from elmokit.progress import SILENCE, Progress, tracked
from elmokit.text.brackets import BracketedWord
from elmokit.text.corpus import Context
from elmokit.text.inputs import in_chunks

Order = Literal["text", "left", "right", "sense", "similarity"]


class Line(NamedTuple):
    """An occurrence of a word in its sentence."""

    document: str
    sentence: int
    """Its number in the corpus, from 0."""
    position: int
    """That of the word in its sentence, from 0."""
    left: str
    word: str
    right: str
    sense: int | None = None
    """The number of the group that it is in, from 1, the largest; where lines are sorted by it."""
    static_sense: int | None = None
    """The same by static vectors of the words around."""
    similarity: float | None = None
    """The cosine of its vector with that of the word in the example."""
    static_similarity: float | None = None
    metadata: dict[str, str] = {}  # noqa: RUF012 (a named tuple's default, never written to)


class Hit(NamedTuple):
    """Where a word stands."""

    sentence: int
    context: Context
    position: int


def find_lines(
    word: str,
    corpus: Iterable[Context],
    *,
    sort: Order = "text",
    embedder: Embedder | None = None,
    static: Embedder | None = None,
    example: str | BracketedWord | None = None,
    layers: Layers = "average",
    ignore_case: bool = False,
    limit: int | None = None,
    seed: int = 0,
    progress: Progress = SILENCE,
) -> list[Line]:
    """The lines of a word, sorted by the words to its left or right, by its senses, or by likeness to an example.

    The senses are those that `find_senses` tells apart by the embedder, the similarity is that of the embedder's
    vectors to the word in brackets in the example; both need an embedder. With `static`, an embedder such as
    `StaticSurroundings`, what that says stands beside it. Of more than `limit` lines so many are drawn evenly.
    """
    _check(sort, embedder, example, ignore_case=ignore_case)
    hits = _hits(word, corpus, ignore_case=ignore_case, limit=limit, seed=seed, progress=progress)
    more: dict[str, list[Any]] = {}
    if sort == "sense" and embedder is not None:
        more["sense"] = _senses(word, hits, embedder, layers=layers, seed=seed, progress=progress)
        if static is not None:
            more["static_sense"] = _senses(word, hits, static, layers="average", seed=seed, progress=progress)
    if example is not None and embedder is not None:
        query = bracketed(example, corpus, embedder)
        more["similarity"] = _similarities(query, hits, embedder, layers)
        if static is not None:
            more["static_similarity"] = _similarities(query, hits, static, "average")
    lines = []
    for index, (sentence, context, position) in enumerate(hits):
        found = {name: values[index] for name, values in more.items()}
        where = context.document, sentence, position, *context.around(position)
        lines.append(Line(*where, **found, metadata=context.metadata))
    order = sorted(range(len(hits)), key=lambda index: _key(sort, hits[index], lines[index]))
    return [lines[index] for index in order]


def _check(sort: Order, embedder: Embedder | None, example: str | BracketedWord | None, *, ignore_case: bool) -> None:
    if sort not in get_args(Order):
        raise ConfigError(f"unknown order {sort!r}: known are {', '.join(get_args(Order))}")
    if sort == "similarity" and example is None:
        raise ConfigError("to sort by similarity, give an example, as in 'He sat on the [bank] of the river'")
    if embedder is None and (sort in ("sense", "similarity") or example is not None):
        raise ConfigError("senses and similarity to an example need a model: give an embedder")
    if sort == "sense" and ignore_case:
        raise ConfigError("senses are those of one spelling: leave out either the sorting by sense or ignore_case")


def _hits(
    word: str, corpus: Iterable[Context], *, ignore_case: bool, limit: int | None, seed: int, progress: Progress
) -> list[Hit]:
    """Where the word stands; one that the corpus lacks is refused."""
    alike = str.casefold if ignore_case else str
    hits = [
        Hit(number, context, position)
        for number, context in enumerate(tracked(corpus, progress, "finding", unit="sentences"))
        for position, token in enumerate(context.tokens)
        if alike(token.text) == alike(word)
    ]
    if not hits:
        survey(corpus, progress=progress).check_words(word)
    if limit is None or limit >= len(hits):
        return hits
    return [hits[index] for index in sorted(Random(seed).sample(range(len(hits)), limit))]


def _senses(word: str, hits: Sequence[Hit], embedder: Embedder, **reading: Any) -> list[int]:
    """The group of each hit, from 1, as `find_senses` tells them apart in these sentences."""
    contexts = {number: context for number, context, _ in hits}
    count = sum(context.words.count(word) for context in contexts.values())
    found = find_senses(word, list(contexts.values()), embedder, limit=count, **reading)
    places = ((id(one.context), one.position) for one in found.occurrences)
    labels = dict(zip(places, found.labels.tolist(), strict=True))
    return [labels[id(contexts[number]), position] + 1 for number, _, position in hits]


def _similarities(query: BracketedWord, hits: Sequence[Hit], embedder: Embedder, layers: Layers) -> list[float]:
    """The cosine of each hit's vector with that of the query."""
    own = unit_vectors(embedder.embed([query.context.words], layers=layers)[0][query.position])  # (D,)
    cosines: list[float] = []
    for chunk in in_chunks(hits, CHUNK_TOKENS, length=lambda hit: len(hit.context.tokens)):
        arrays = embedder.embed([hit.context.words for hit in chunk], layers=layers)
        vectors = np.stack([array[hit.position] for hit, array in zip(chunk, arrays, strict=True)])
        cosines += (unit_vectors(vectors) @ own).astype(float).tolist()
    return cosines


def _key(sort: Order, hit: Hit, line: Line) -> Any:
    """What a line is sorted by; lines that have it in common stay in the order of the text."""
    words = [word.casefold() for word in hit.context.words]
    if sort == "left":
        return words[: hit.position][::-1]
    if sort == "right":
        return words[hit.position + 1 :]
    return {"text": 0, "sense": line.sense, "similarity": -(line.similarity or 0)}[sort]
