"""Word senses: the mean vector of a sense's examples stands for it, and a word takes the nearest of its senses.

| file | what it holds |
|---|---|
| task.json | the layer, the name and hash of the embedder, the senses and how many examples each had |
| task.safetensors | `centroids` (senses, width) |
| senses.tsv | the senses that each lemma has, the first being the one to fall back on |
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from elmokit.embedder import Embedder, Layers, Vectors
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.files import as_json, locked, replacing_folder, writing
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.progress import Progress, tracked
from elmokit.tasks.examples import SenseInstance, SenseSentence
from elmokit.tasks.predictor import CONFIG, COPIES, WEIGHTS, EmbedderId, Predictor, identify, write_copies
from elmokit.tasks.readers import Inventory, read_inventory, read_senses
from elmokit.tasks.readers.senses import POS
from elmokit.tasks.scores import ALL, sense_f1
from elmokit.tasks.task import OPTIONS, FitOptions, Item, Scores, Task
from elmokit.text.inputs import in_chunks
from elmokit.text.tokenizers import Tokenizer

Embedded = tuple[SenseSentence, list[tuple[SenseInstance, Vectors]]]
"""A sentence, and its instances with their vectors: of several words, their mean."""
SENSES = "senses.tsv"
FILES = (CONFIG, WEIGHTS, SENSES, COPIES)
TOKENS_AT_A_TIME = 1 << 14


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How senses are learned."""

    senses: str | None = None
    """The file that lists the senses of each lemma, the first being the one to fall back on."""
    layer: Layers = "top"
    """The layer whose vectors are compared, or the average of all."""
    prior: float = 0.0
    """How much examples count beside closeness: the cosine has prior · log(examples) added to it."""


class SenseConfig(msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag="elmokit senses"):
    """All that is known of the centroids beside them."""

    version: Literal[1] = 1
    layer: Layers
    embedder: EmbedderId
    keys: tuple[str, ...]
    """The senses that examples were seen of."""
    counts: tuple[Annotated[int, msgspec.Meta(ge=1)], ...]
    """Their examples."""
    prior: float = 0.0

    task: ClassVar = "wsd"
    settings: ClassVar[dict[str, Any]] = {}
    labels: ClassVar[tuple[str, ...]] = ()
    tokenizer: ClassVar = "words"

    @property
    def embedders(self) -> tuple[EmbedderId, ...]:
        return (self.embedder,)


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
        self.units = unit_vectors(centroids)
        self.rows = {key: row for row, key in enumerate(config.keys)}
        self.bonus = config.prior * np.log(np.array(config.counts, np.float32))  # (senses,)

    def predict(self, items: Sequence[Item]) -> list[SenseSentence]:
        found = []
        for sentence, pairs in _embedded((item.example for item in items), self.embedder, self.config.layer):
            instances = tuple(one._replace(keys=self._senses(one, vector)) for one, vector in pairs)
            found.append(replace(sentence, instances=instances))
        return found

    def save(self, folder: str | Path, *, bundle: bool = False) -> None:
        """Write the centroids as a folder, with a copy of the embedder if asked; it appears when it is complete."""
        folder, config = Path(folder).expanduser(), self.config
        with replacing_folder(folder, files=FILES) as partial:
            if bundle:
                [copy] = write_copies(partial, config.embedders, [self.embedder])
                config = msgspec.structs.replace(config, embedder=copy)
            lines = ("\t".join((*word, " ".join(keys))) for word, keys in self.inventory.items())
            with writing(folder, (OSError, SafetensorError)):
                save_file({"centroids": self.centroids}, partial / WEIGHTS)
                (partial / SENSES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                (partial / CONFIG).write_bytes(as_json(config))

    def _senses(self, instance: SenseInstance, vector: Vectors) -> tuple[str, ...]:
        """The sense of the nearest centroid; the first sense if there is no centroid; none if the lemma is unknown.

        With a prior, senses of many examples are nearer than they are.
        """
        candidates = self.inventory.get((instance.lemma.lower(), instance.pos), ())
        seen = [key for key in candidates if key in self.rows]
        if not seen:
            return candidates[:1]
        rows = [self.rows[key] for key in seen]
        closeness = self.units[rows] @ unit_vectors(vector) + self.bonus[rows]  # (candidates,)
        return (seen[int(closeness.argmax())],)


def fit(
    sentences: Iterable[SenseSentence],
    embedder: Embedder,
    inventory: Inventory,
    *,
    layer: Layers = "top",
    prior: float = 0.0,
    name: str = "",
) -> Predictor:
    """Learn senses from sentences with gold keys, read in a stream; the name is where the embedder is found again."""
    if layer == "all":
        raise ConfigError("senses are told apart by one layer or the average: 'all' is neither")
    if not (type(prior) in (int, float) and 0 <= prior < math.inf):
        raise ConfigError(f"prior={prior!r} is not a number from 0 up")
    sums: dict[str, Vectors] = defaultdict(lambda: np.zeros(embedder.width, np.float32))
    counts: Counter[str] = Counter()
    for _, pairs in _embedded(sentences, embedder, layer):
        for instance, vector in pairs:
            for key in instance.keys:
                sums[key] += vector
                counts[key] += 1
    if not sums:
        raise DataError("no word of these sentences has a gold sense: there is nothing to learn from")
    centroids = np.stack([sums[key] / np.float32(counts[key]) for key in sums])  # (senses, D)
    keys, each, known = tuple(sums), tuple(counts[key] for key in sums), identify(name, embedder)
    config = SenseConfig(layer=layer, embedder=known, keys=keys, counts=each, prior=prior)
    return Predictor(TASK, SenseCentroids(config, centroids, inventory, embedder), config)


def learn(
    train: Iterable[SenseSentence],
    dev: Sequence[SenseSentence],
    embedders: Mapping[str, Embedder],
    folder: Path,
    options: FitOptions,
    progress: Progress,
) -> Predictor:
    """Learn the senses of words, for which one reading of the data is enough."""
    settings = options.settings or Settings()
    if settings.senses is None:
        raise ConfigError("wsd needs the senses that each lemma has: -s senses=FILE")
    if len(embedders) != 1:
        raise ConfigError(f"wsd takes one embedder, a model or static vectors; {len(embedders)} are given")
    [(name, embedder)] = embedders.items()
    inventory = read_inventory(Path(settings.senses).expanduser())
    with locked(folder):
        examples = tracked(train, progress, "learning senses", unit="sentences")
        learned = fit(examples, embedder, inventory, name=name, layer=settings.layer, prior=settings.prior)
        scores = learned.evaluate(dev)
        learned.model.save(folder, bundle=options.bundle)
    progress.message("dev " + ", ".join(f"{measure} {score:.4f}" for measure, score in scores.items()))
    return learned


def load(folder: Path, config: SenseConfig, embedders: Sequence[Embedder]) -> SenseCentroids:
    """The centroids in a folder."""
    [embedder], path = embedders, folder / WEIGHTS
    try:
        centroids: Vectors = load_file(path)["centroids"]
    except (OSError, SafetensorError, KeyError) as error:
        raise CheckpointError(f"{path}: cannot be read as the centroids of senses: {error}. Is it complete?") from None
    if centroids.dtype != np.float32 or not np.isfinite(centroids).all():
        raise CheckpointError(f"{path}: not all numbers of the centroids are finite and of 32 bits")
    if centroids.shape != (len(config.keys), embedder.width) or len(config.counts) != len(config.keys):
        expected = f"{len(config.keys)} senses of width {embedder.width}"
        raise CheckpointError(f"{folder}: centroids are {centroids.shape}, expected {expected}")
    return SenseCentroids(config, centroids, read_inventory(folder / SENSES), embedder)


def parse(values: Mapping[str, Any], tokenize: Tokenizer) -> SenseSentence:  # noqa: ARG001
    """A sentence from a JSON object: {"tokens": […], "instances": [{"lemma": …, "pos": …, "start": …, "end": …}]}."""
    try:
        given = msgspec.convert(values, _Given)
    except msgspec.ValidationError as error:
        raise DataError(f"expected tokens, and instances with lemma, pos, start and end: {error}") from None
    for one in given.instances:
        if one.pos not in POS:
            raise DataError(f"the instance {one.lemma!r} has pos {one.pos!r}: expected {', '.join(POS)}")
        if not 0 <= one.start < one.end <= len(given.tokens):
            bounds = f"{one.start} to {one.end} of {len(given.tokens)} tokens"
            raise DataError(f"the instance {one.lemma!r} goes from {bounds}")
    instances = (SenseInstance(one.id, one.lemma, one.pos, one.start, one.end, ()) for one in given.instances)
    return SenseSentence(given.tokens, tuple(instances))


def score(gold: Sequence[SenseSentence], predicted: Sequence[SenseSentence]) -> Scores:
    """The F1 of all words and of each part of speech."""
    theirs, ours = (chain.from_iterable(sentence.instances for sentence in part) for part in (gold, predicted))
    pairs = zip(theirs, ours, strict=True)
    scores = sense_f1((one.pos, next(iter(other.keys), None), one.keys) for one, other in pairs)
    return {"f1" if part == ALL else f"f1 {part}": found.f1 for part, found in scores.items()}


def _embedded(sentences: Iterable[SenseSentence], embedder: Embedder, layer: Layers) -> Iterator[Embedded]:
    pairs = ((sentence.tokens, sentence) for sentence in sentences)
    for chunk in in_chunks(
        pairs, TOKENS_AT_A_TIME, length=lambda pair: len(pair[0]) - 1
    ):  # it counts one more for each
        embedded = embedder.embed([tokens for tokens, _ in chunk], layers=layer)
        for (_, sentence), vectors in zip(chunk, embedded, strict=True):
            yield sentence, [(one, vectors[one.start : one.end].mean(axis=0)) for one in sentence.instances]


def read(path: Path) -> Iterator[SenseSentence]:
    """The sentences of NAME.data.xml with the gold keys of NAME.gold.key.txt beside it."""
    return read_senses(path, path.with_name(f"{path.name.partition('.data.xml')[0]}.gold.key.txt"))


TASK = Task(
    name="wsd",
    settings=Settings,
    read=lambda path, _: read(path),
    parse=parse,
    prepare=lambda example, _: Item(example, (example.tokens,)),
    score=score,
    refused=OPTIONS,
    reason="learns in one reading",
    learn=learn,
    load=load,
)
