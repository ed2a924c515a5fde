"""Words where they occur: counted, drawn evenly from a corpus, and given their vectors, in bounded memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import ConfigError, DataError
from elmokit.files import replacing, writing
from elmokit.progress import SILENCE, Progress, tracked
from elmokit.text.corpus import Context
from elmokit.text.inputs import in_chunks

T = TypeVar("T")
CHUNK_TOKENS = 8192
MOST_TYPES = 20_000  # words with a mean vector, the most frequent; memory grows with it
SPELLINGS_COMPARED = 50_000  # the most frequent words; comparing more would take seconds
LEAST_LIKENESS = 0.5  # two Chinese words of two characters that share one are as much alike


class Survey(NamedTuple):
    """What one reading of a corpus tells: how often each word occurs, and how many sentences have any words."""

    counts: Counter[str]
    sentences: int
    tokenizer: str = ""
    """How the corpus was split into words, where that is known."""

    def check_words(self, *words: str) -> None:
        """Refuse words that the corpus lacks, and offer near spellings."""
        for word in (word for word in words if word not in self.counts):
            near = ", ".join(near_spellings(word, self.counts))
            offer = f"; near spellings that it has: {near}" if near else ", nor one spelled nearly so"
            how = f" (its tokenizer is {self.tokenizer})" if self.tokenizer else ""
            raise DataError(f"the corpus{how} has no word {word!r}{offer}")

    def frequent(self, least: int) -> list[str]:
        """The words that occur at least so often, the most frequent first."""
        return [word for word, count in self.counts.most_common() if count >= least and is_wordlike(word)]


class Occurrence(NamedTuple):
    """A word in its sentence, by the position of its token, with its vector there, (D,)."""

    context: Context
    position: int
    vector: Vectors

    @property
    def token(self) -> str:
        return self.context.tokens[self.position].text

    @property
    def bracketed(self) -> str:
        return self.context.bracketed(self.position)

    def json_fields(self) -> dict[str, Any]:
        """The word, its sentence, where it stands and what is known of the document, without the vector."""
        text, _, document, metadata = self.context
        fields = {"token": self.token, "sentence": text, "position": self.position, "document": document}
        return fields | ({"metadata": metadata} if metadata else {})


EmbeddedWords = tuple[Context, list[int], Vectors]
"""A sentence, the positions of some of its tokens, and their vectors there, (positions, D)."""


@dataclass(frozen=True, eq=False)
class TypeVectors:
    """A vector for each word, (words, D): the mean of its vectors in a corpus."""

    words: tuple[str, ...]
    counts: tuple[int, ...]
    vectors: Vectors

    def frequent(self, least: int, *, also: str) -> "TypeVectors":
        """The words that occur at least so often, and one more."""
        rows = [row for row, word in enumerate(self.words) if self.counts[row] >= least or word == also]
        words, counts = tuple(self.words[row] for row in rows), tuple(self.counts[row] for row in rows)
        return TypeVectors(words, counts, self.vectors[rows])

    def joined(self, other: "TypeVectors") -> "TypeVectors":
        """These words and others."""
        vectors = np.concatenate([self.vectors, other.vectors])
        return TypeVectors(self.words + other.words, self.counts + other.counts, vectors)

    def save(self, path: Path) -> None:
        """Write them as safetensors; the file appears when it is complete."""
        with replacing(path) as new, writing(path, (OSError, SafetensorError)):
            save_file({"words": as_bytes([self.words, self.counts]), "vectors": self.vectors}, new)

    @classmethod
    def load(cls, path: Path) -> "TypeVectors":
        """Read what `save` wrote."""
        found = load_file(path)
        return cls(*from_bytes(found["words"], tuple[tuple[str, ...], tuple[int, ...]]), found["vectors"])


def survey(corpus: Iterable[Context], *, progress: Progress = SILENCE, stage: str = "counting words") -> Survey:
    """Count a corpus; its words' counts are all that is kept."""
    counts: Counter[str] = Counter()
    sentences = 0
    for context in tracked(corpus, progress, stage, unit="sentences"):
        counts.update(context.words)
        sentences += 1
    if not sentences:
        raise DataError("the corpus holds no words")
    return Survey(counts, sentences, str(getattr(corpus, "tokenizer", "")))


def draw_occurrences(
    corpus: Iterable[Context], counts: Mapping[str, int], *, limit: int | None = None, seed: int = 0
) -> Iterator[tuple[Context, list[int]]]:
    """The positions of at most `limit` occurrences of each word, each as likely as any other, sentence by sentence.

    The counts are known, so the k-th last is taken with probability wanted / k (Knuth's algorithm S): the sentences of
    those not taken need not be embedded.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"the limit is {limit} occurrences of a word: it must be at least 1")
    left, random = dict(counts), Random(seed)
    wanted = {word: min(count, limit or count) for word, count in counts.items()}
    for context in corpus:
        taken = []
        for position, (word, *_) in enumerate(context.tokens):
            if wanted.get(word):
                if random.random() * left[word] < wanted[word]:
                    wanted[word] -= 1
                    taken.append(position)
                left[word] -= 1
        if taken:
            yield context, taken
    if any(wanted.values()):
        raise DataError("the corpus changed between two readings: pass a list or a TextCorpus, not a generator")


def embed_words(
    corpus: Iterable[Context],
    embedder: Embedder,
    words: Iterable[str],
    known: Survey,
    *,
    layers: Layers = "average",
    limit: int | None = None,
    seed: int = 0,
    progress: Progress = SILENCE,
    stage: str = "embedding",
) -> Iterator[EmbeddedWords]:
    """The sentences with occurrences of the words, their positions that were drawn, and the vectors, (positions, D)."""
    if layers == "all":
        raise ConfigError("words are compared by one layer or mix: 'all' is not one")
    sentences = tracked(corpus, progress, stage, known.sentences, unit="sentences")
    drawn = draw_occurrences(sentences, {word: known.counts[word] for word in words}, limit=limit, seed=seed)
    for chunk in in_chunks(drawn, CHUNK_TOKENS, length=lambda one: len(one[0].tokens)):
        arrays = embedder.embed([context.words for context, _ in chunk], layers=layers)
        for (context, positions), vectors in zip(chunk, arrays, strict=True):
            yield context, positions, vectors[positions]


def find_occurrences(
    corpus: Iterable[Context],
    embedder: Embedder,
    words: Iterable[str],
    *,
    layers: Layers = "average",
    limit: int | None = 1000,
    seed: int = 0,
    known: Survey | None = None,
    progress: Progress = SILENCE,
    stage: str = "embedding",
) -> dict[str, list[Occurrence]]:
    """Where each of the words stands, at most `limit` times; a word that the corpus lacks is refused."""
    known = known or survey(corpus, progress=progress)
    found: dict[str, list[Occurrence]] = {word: [] for word in words}
    known.check_words(*found)
    for context, positions, vectors in embed_words(
        corpus, embedder, found, known, layers=layers, limit=limit, seed=seed, progress=progress, stage=stage
    ):
        for position, vector in zip(positions, vectors, strict=True):
            occurrence = Occurrence(context, position, vector.copy())  # a view would keep the sentence's other vectors
            found[occurrence.token].append(occurrence)
    return found


def type_vectors(
    corpus: Iterable[Context],
    embedder: Embedder,
    *,
    layers: Layers = "average",
    min_count: int = 5,
    max_words: int = MOST_TYPES,
    limit: int | None = None,
    also: Iterable[str] = (),
    seed: int = 0,
    known: Survey | None = None,
    progress: Progress = SILENCE,
) -> TypeVectors:
    """The mean vector of each word that occurs `min_count` times, the most frequent ones, and of the words in `also`.

    With a limit the mean is that of so many occurrences of a word, drawn evenly from the corpus.
    """
    known = known or survey(corpus, progress=progress)
    known.check_words(*also)
    words = dict.fromkeys([*known.frequent(min_count)[:max_words], *also])
    indices = {word: index for index, word in enumerate(words)}
    sums = np.zeros((len(indices), embedder.width))  # (words, D)
    taken = np.zeros(len(indices), dtype=np.int64)
    found = embed_words(corpus, embedder, words, known, layers=layers, limit=limit, seed=seed, progress=progress)
    for context, positions, vectors in found:
        rows = [indices[context.tokens[position].text] for position in positions]
        np.add.at(sums, rows, vectors)
        np.add.at(taken, rows, 1)
    means = (sums / np.maximum(taken, 1)[:, None]).astype(np.float32)
    return TypeVectors(tuple(indices), tuple(known.counts[word] for word in indices), means)


def unit_vectors(vectors: Vectors) -> Vectors:
    """Each row at length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0))


def lowest(occurrences: Sequence[Occurrence], scores: NDArray[Any], count: int) -> tuple[Occurrence, ...]:
    """Those with the lowest scores, (N,), no sentence twice."""
    first: dict[str, Occurrence] = {}
    for index in np.argsort(scores, kind="stable").tolist():
        first.setdefault(occurrences[index].context.text, occurrences[index])
    return tuple(first.values())[:count]


def near_spellings(name: str, known: Counter[str] | Sequence[str]) -> list[str]:
    """The names most like it among the most frequent ones, or the first."""
    ordered = [other for other, _ in known.most_common()] if isinstance(known, Counter) else known
    frequent = ordered[:SPELLINGS_COMPARED]
    return get_close_matches(name, frequent, n=5, cutoff=LEAST_LIKENESS)


def is_wordlike(token: str) -> bool:
    """Whether a token has a letter or digit: punctuation is no word to study."""
    return any(character.isalnum() for character in token)


def as_bytes(values: Any) -> NDArray[np.uint8]:
    """Words and numbers as a tensor that a file of tensors can hold."""
    return np.frombuffer(msgspec.json.encode(values), np.uint8)


def from_bytes(content: NDArray[np.uint8], kind: type[T]) -> T:
    """What `as_bytes` was given."""
    return msgspec.json.decode(content.tobytes(), type=kind)
