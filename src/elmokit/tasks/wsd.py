"""Word senses: the mean vector of a sense's examples stands for it, and a word takes the nearest of its senses.

| file | what it holds |
|---|---|
| task.json | the layer, the name and hash of the embedder, the senses and how many examples each had |
| task.safetensors | `centroids` (senses, width) |
| senses.tsv | the senses that each lemma has, the first being the one to fall back on |
"""

import math
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.tasks.embedders import EmbedderId, check_same, copy_into, fetch, identify
from elmokit.tasks.examples import Place, SenseInstance, SenseSentence
from elmokit.tasks.readers import Inventory, gold_beside, read_inventory, read_senses
from elmokit.tasks.readers.senses import POS
from elmokit.tasks.saved import CONFIG, WEIGHTS, as_json
from elmokit.tasks.scores.f1 import ALL, sense_f1
from elmokit.tasks.task import Scores

SENSES = "senses.tsv"
FORMAT: Literal["elmokit senses"] = "elmokit senses"
TOKENS_AT_A_TIME = 1 << 14


class SenseConfig(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of the centroids beside them."""

    format: Literal["elmokit senses"] = FORMAT
    version: Literal[1] = 1
    layer: Layers
    embedder: EmbedderId
    keys: tuple[str, ...]
    """The senses that examples were seen of."""
    counts: tuple[Annotated[int, msgspec.Meta(ge=1)], ...]
    """Their examples."""
    prior: float = 0.0
    """How much examples count beside closeness: the cosine has prior · log(examples) added to it."""


class _Kind(msgspec.Struct):
    format: str = ""


class _GivenInstance(msgspec.Struct):
    lemma: str
    pos: str
    start: int
    end: int
    id: str = ""


class _Given(msgspec.Struct):
    tokens: tuple[str, ...]
    instances: tuple[_GivenInstance, ...]


class SenseCentroids:
    """Senses learned from examples, for the words of one embedder."""

    def __init__(self, config: SenseConfig, centroids: Vectors, inventory: Inventory, embedder: Embedder) -> None:
        self.config, self.inventory, self.embedder = config, inventory, embedder
        self.centroids = centroids  # (senses, D)
        self.units = _units(centroids)
        self.rows = {key: row for row, key in enumerate(config.keys)}
        self.bonus = config.prior * np.log(np.array(config.counts, np.float32))  # (senses,)

    def predict(self, examples: Iterable[Any]) -> list[SenseSentence]:
        """The sentences with the senses found for their instances; they may come as JSON objects."""
        return list(self.predict_stream(examples))

    def predict_stream(self, examples: Iterable[Any], *, name: str = "example") -> Iterator[SenseSentence]:
        """What `predict` gives, in order, in memory that does not grow with the number of sentences.

        An error names the example by the name and its number.
        """
        sentences = (_sentence(f"{name} {number}", one) for number, one in enumerate(examples, 1))
        for sentence, vectors in _embedded(sentences, self.embedder, self.config.layer):
            instances = (
                instance._replace(keys=self._senses(instance, vector))
                for instance, vector in zip(sentence.instances, vectors, strict=True)
            )
            yield replace(sentence, instances=tuple(instances))

    def read(self, path: str | Path) -> list[SenseSentence]:
        """The sentences of a file with gold keys beside it."""
        return list(read(Path(path)))

    def evaluate(self, sentences: Iterable[SenseSentence]) -> Scores:
        """The F1 of all instances and of each part of speech, against the gold keys of the sentences."""
        gold = list(sentences)
        return score(gold, self.predict(gold))

    def save(self, folder: str | Path, *, bundle: bool = False) -> None:
        """Write the centroids as a folder, with a copy of the embedder if asked; it appears when it is complete."""
        folder = Path(folder).expanduser()
        with _new_folder(folder) as partial:
            known = copy_into(partial, 0, self.config.embedder, self.embedder) if bundle else self.config.embedder
            save_file({"centroids": self.centroids}, partial / WEIGHTS)
            lines = ("\t".join((*word, " ".join(keys))) for word, keys in self.inventory.items())
            (partial / SENSES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            (partial / CONFIG).write_bytes(as_json(msgspec.structs.replace(self.config, embedder=known)))

    def _senses(self, instance: SenseInstance, vector: Vectors) -> tuple[str, ...]:
        """The sense of the nearest centroid; the first sense if there is no centroid; none if the lemma is unknown.

        With a prior, senses of many examples are nearer than they are.
        """
        candidates = self.inventory.get((instance.lemma.lower(), instance.pos), ())
        seen = [key for key in candidates if key in self.rows]
        if not seen:
            return candidates[:1]
        rows = [self.rows[key] for key in seen]
        closeness = self.units[rows] @ _units(vector[None])[0] + self.bonus[rows]  # (candidates,)
        return (seen[int(closeness.argmax())],)


def fit(
    sentences: Iterable[SenseSentence],
    embedder: Embedder,
    inventory: Inventory,
    *,
    layer: Layers = "top",
    prior: float = 0.0,
    name: str = "",
) -> SenseCentroids:
    """Learn senses from sentences with gold keys, read in a stream; the name is where the embedder is found again."""
    if layer == "all":
        raise ConfigError("senses are told apart by one layer or the average: 'all' is neither")
    if not (type(prior) in (int, float) and 0 <= prior < math.inf):
        raise ConfigError(f"prior={prior!r} is not a number from 0 up")
    sums: dict[str, Vectors] = defaultdict(lambda: np.zeros(embedder.width, np.float32))
    counts: Counter[str] = Counter()
    for sentence, vectors in _embedded(sentences, embedder, layer):
        for instance, vector in zip(sentence.instances, vectors, strict=True):
            for key in instance.keys:
                sums[key] += vector
                counts[key] += 1
    if not sums:
        raise DataError("no word of these sentences has a gold sense: there is nothing to learn from")
    centroids = np.stack([sums[key] / np.float32(counts[key]) for key in sums])  # (senses, D)
    known = identify(name, embedder)
    each = tuple(counts[key] for key in sums)
    config = SenseConfig(layer=layer, embedder=known, keys=tuple(sums), counts=each, prior=prior)
    return SenseCentroids(config, centroids, inventory, embedder)


def holds_senses(folder: Path) -> bool:
    """Whether a folder's task.json says that it is one of senses."""
    try:
        kind = msgspec.json.decode((folder / CONFIG).read_bytes(), type=_Kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False  # whoever reads it will say what is wrong
    return kind.format == FORMAT


def load(folder: str | Path, *, embedder: Embedder | None = None) -> SenseCentroids:
    """Load senses; their embedder is found where it was, unless it is given."""
    folder = Path(folder).expanduser()
    config = _read_config(folder)
    if embedder is None:
        embedder = fetch(folder, config.embedder)
    check_same(folder, [config.embedder], [embedder])
    centroids = _read_centroids(folder / WEIGHTS)
    if centroids.shape != (len(config.keys), embedder.width) or len(config.counts) != len(config.keys):
        raise CheckpointError(
            f"{folder}: centroids are {centroids.shape}, expected {len(config.keys)} senses of width {embedder.width}"
        )
    return SenseCentroids(config, centroids, read_inventory(folder / SENSES), embedder)


def read(path: Path) -> Iterator[SenseSentence]:
    """The sentences of NAME.data.xml with the gold keys of NAME.gold.key.txt beside it."""
    return read_senses(path, gold_beside(path))


def parse(values: Any) -> SenseSentence:
    """A sentence from a JSON object: {"tokens": […], "instances": [{"lemma": …, "pos": …, "start": …, "end": …}]}."""
    try:
        given = msgspec.convert(values, _Given)
    except msgspec.ValidationError as error:
        raise DataError(f"expected tokens, and instances with lemma, pos, start and end: {error}") from None
    for one in given.instances:
        if one.pos not in POS:
            raise DataError(f"the instance {one.lemma!r} has pos {one.pos!r}: expected {', '.join(POS)}")
        if not 0 <= one.start < one.end <= len(given.tokens):
            raise DataError(
                f"the instance {one.lemma!r} goes from {one.start} to {one.end} of {len(given.tokens)} tokens"
            )
    instances = (SenseInstance(one.id, one.lemma, one.pos, one.start, one.end, ()) for one in given.instances)
    return SenseSentence(given.tokens, tuple(instances), Place("", 0))


def _sentence(name: str, example: Any) -> SenseSentence:
    if isinstance(example, SenseSentence):
        return example
    try:
        return parse(example)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def score(gold: Sequence[SenseSentence], predicted: Sequence[SenseSentence]) -> Scores:
    """The F1 of all words and of each part of speech."""
    pairs = [
        (theirs, ours)
        for one, other in zip(gold, predicted, strict=True)
        for theirs, ours in zip(one.instances, other.instances, strict=True)
    ]
    scores = sense_f1((theirs.pos, next(iter(ours.keys), None), theirs.keys) for theirs, ours in pairs)
    return {"f1" if part == ALL else f"f1 {part}": found.f1 for part, found in scores.items()}


def _embedded(
    sentences: Iterable[SenseSentence], embedder: Embedder, layer: Layers
) -> Iterator[tuple[SenseSentence, list[Vectors]]]:
    """Each sentence with the vectors of its instances: of several words, their mean."""
    for chunk in _chunks(sentences):
        embedded = embedder.embed([sentence.tokens for sentence in chunk], layers=layer)
        for sentence, vectors in zip(chunk, embedded, strict=True):
            yield sentence, [vectors[one.start : one.end].mean(axis=0) for one in sentence.instances]


def _chunks(sentences: Iterable[SenseSentence]) -> Iterator[list[SenseSentence]]:
    """The first sentence, then ever more of them: whoever asks waits for one answer, not for thousands."""
    chunk: list[SenseSentence] = []
    size, enough = 0, 1
    for sentence in sentences:
        chunk.append(sentence)
        size += len(sentence.tokens)
        if size >= enough:
            yield chunk
            chunk, size, enough = [], 0, min(2 * enough, TOKENS_AT_A_TIME)
    if chunk:
        yield chunk


def _units(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return units


def _read_config(folder: Path) -> SenseConfig:
    path = folder / CONFIG
    try:
        return msgspec.json.decode(path.read_bytes(), type=SenseConfig)
    except OSError:
        raise CheckpointError(f"{folder} holds no senses: it has no {CONFIG} that can be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: damaged, or of another version of elmokit: {error}") from None


def _read_centroids(path: Path) -> Vectors:
    try:
        centroids: Vectors = load_file(path)["centroids"]
    except (OSError, SafetensorError, KeyError) as error:
        raise CheckpointError(f"{path}: cannot be read as the centroids of senses: {error}. Is it complete?") from None
    if centroids.dtype != np.float32 or not np.isfinite(centroids).all():
        raise CheckpointError(f"{path}: not all numbers of the centroids are finite and of 32 bits")
    return centroids


def check_unused(folder: Path) -> None:
    """Refuse to write where something is."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder} is not an empty folder: choose another")


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into that takes its name when all went well, and else leaves nothing behind."""
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    try:
        check_unused(folder)
        partial.mkdir(parents=True)
        yield partial
        partial.rename(folder)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{folder}: the senses cannot be written here: {reason}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
