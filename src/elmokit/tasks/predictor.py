"""A trained task that answers, the folder of one that was trained in epochs, and where its embedders are found again.

| file | what it holds |
|---|---|
| task.json | the task, its settings and labels, the names and hashes of its embedders |
| task.safetensors | the weights of the best epoch |
| training.pt | the state of the last epoch, from which a run goes on |
| embedders/ | copies of the embedders, where they were asked for |
| report.json, *.png | how training went |
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

import elmokit
from elmokit.bundled import bundled_path
from elmokit.checkpoints.checkpoint import check_finite
from elmokit.config import Tokenization
from elmokit.embedder import Embedder
from elmokit.errors import CheckpointError, ConfigError, DataError, ElmoError
from elmokit.files import replacing_folder
from elmokit.static.embedders import OneHot, StaticVectors
from elmokit.tasks.inputs import InputLayer
from elmokit.tasks.readers.lines import reading_as
from elmokit.tasks.task import Inputs, InputSettings, Item, Scores, Task
from elmokit.text.encodings import UTF8
from elmokit.text.inputs import batch_by_tokens, in_original_order
from elmokit.text.tokenizers import get_tokenizer

CONFIG, WEIGHTS, COPIES = "task.json", "task.safetensors", "embedders"
ANSWER_TOKENS = 4096  # answered at a time
STATIC: Mapping[str, type[StaticVectors | OneHot]] = {"static": StaticVectors, "one-hot": OneHot}
CHUNK = 256  # examples of a stream that are answered together, at most


class Predictor:
    """A trained task that answers, by a model whose `predict` takes items: a Network, or SenseCentroids."""

    def __init__(self, task: Task, model: Any, config: Any) -> None:
        self.task, self.model, self.config = task, model, config
        self.settings = task.settings_from(config.settings)
        self.tokenize = get_tokenizer(config.tokenizer)

    def predict(self, examples: Iterable[Any]) -> list[Any]:
        """The answers, as examples: of texts, lists of tokens, objects such as {"tokens": […]}, or of examples."""
        if isinstance(examples, str | Mapping):
            raise DataError("the examples came as one: put it in a list, [text]")
        return list(self.predict_stream(examples))

    def predict_stream(self, examples: Iterable[Any], *, name: str = "example") -> Iterator[Any]:
        """What `predict` gives, in order, in memory that does not grow with the number of examples.

        The first answer comes after the first example, those that follow in chunks that grow. An error names the
        example by the name and its number.
        """
        items = (self.item(f"{name} {number}", example) for number, example in enumerate(examples, 1))
        size = 1
        while chunk := list(islice(items, size)):
            yield from self.model.predict(chunk)
            size = min(2 * size, CHUNK)

    def read(self, path: str | Path, settings: Mapping[str, Any] | None = None, *, encoding: str = UTF8) -> list[Any]:
        """The labelled examples of a file, read as in training but for these settings."""
        chosen = self.task.settings_from({**msgspec.to_builtins(self.settings), **(settings or {})})
        with reading_as(encoding):
            return list(self.task.read(Path(path), chosen))

    def evaluate(self, examples: Iterable[Any]) -> Scores:
        """How good the answers to labelled examples are."""
        gold = list(examples)
        self.task.check_labels(gold, self.config.labels)
        return self.task.score(gold, self.model.predict([self.task.prepare(one, self.tokenize) for one in gold]))

    def item(self, name: str, example: Any) -> Item:
        """An example of any kind made ready; the name is for errors."""
        if isinstance(example, str):
            example = {"text": example}
        elif isinstance(example, list | tuple):
            example = {"tokens": list(example)}
        elif not is_dataclass(example) and not isinstance(example, Mapping):
            raise DataError(f"{name} is {example!r}: expected a text, a list of tokens or an object with names")
        if isinstance(example, Mapping):
            try:
                example = self.task.parse(example, self.tokenize)
            except DataError as error:
                raise DataError(f"{name}: {error}") from None
        return self.task.prepare(example, self.tokenize)


class EmbedderId(msgspec.Struct, frozen=True, kw_only=True):
    """An embedder by its name and by what it holds."""

    kind: str
    name: str
    """Where it can be loaded from."""
    digest: str
    """A hash of all that its vectors depend on."""
    lower_case: bool = False
    """Whether static vectors are asked for a word's lower-case form too."""
    bundled: str | None = None
    """Its copy within the task's folder."""


class TaskConfig(msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag="elmokit task"):
    """All that a trained network is, but its weights."""

    version: Literal[1] = 1
    task: str
    settings: dict[str, Any]
    labels: tuple[str, ...]
    inputs: InputSettings
    tokenizer: Tokenization
    embedders: tuple[EmbedderId, ...]


class Network(nn.Module):
    """The input layer and the task's own model on top of it: from items to losses and answers."""

    def __init__(self, task: Task, config: TaskConfig, embedders: Sequence[Embedder]) -> None:
        super().__init__()
        assert task.model is not None
        self.inputs = InputLayer(embedders, config.inputs)
        self.model: Any = task.model(task.settings_from(config.settings), config.labels, self.inputs.widths)

    def loss(self, items: Sequence[Item]) -> Tensor:
        """What the model loses on a batch, and the penalty of the mixes."""
        loss: Tensor = self.model.loss(self._inputs(items), items)
        return loss + self.inputs.penalty()

    @torch.no_grad()
    def predict(self, items: Sequence[Item]) -> list[Any]:
        self.eval()
        batches = batch_by_tokens([item.size for item in items], ANSWER_TOKENS)
        chosen = ([items[number] for number in batch] for batch in batches)
        return in_original_order(batches, (self.model.predict(self._inputs(batch), batch) for batch in chosen))

    def _inputs(self, items: Iterable[Item]) -> Inputs:
        inputs: Inputs = self.inputs([sentence for item in items for sentence in item.sentences])
        return inputs

    def load(self, folder: Path) -> None:
        """Take the weights of the best epoch."""
        path = folder / WEIGHTS
        if not path.exists():
            hint = "no epoch of its training was finished; go on with --resume"
            raise CheckpointError(f"{folder} has no {WEIGHTS}: {hint}")
        try:
            weights = load_file(path)
            check_finite(path, weights)
            self.load_state_dict(weights)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"{path}: cannot be read as safetensors: {error}. Is it complete?") from None
        except RuntimeError as error:
            problems = [line.strip() for line in str(error).splitlines()[1:]]
            more = f" and {len(problems) - 1} more like it" if len(problems) > 1 else ""
            raise CheckpointError(f"{path} does not match {CONFIG}: {problems[0]}{more}") from None


def identify(name: str, embedder: Embedder) -> EmbedderId:
    """Tell an embedder from all others."""
    if isinstance(embedder, elmokit.Elmo):
        return EmbedderId(kind="elmo", name=name, digest=embedder.digest)
    if isinstance(embedder, StaticVectors | OneHot):
        kind = "static" if isinstance(embedder, StaticVectors) else "one-hot"
        hashed = blake2b("\n".join(embedder.words).encode("utf-8", "surrogatepass"), digest_size=32)
        if isinstance(embedder, StaticVectors):
            hashed.update(embedder.vectors.data)
        return EmbedderId(kind=kind, name=name, digest=hashed.hexdigest(), lower_case=embedder.lower_case)
    return EmbedderId(kind="other", name=name, digest="")


def write_copies(folder: Path, known: Sequence[EmbedderId], embedders: Sequence[Any]) -> tuple[EmbedderId, ...]:
    """Copy embedders into a task's folder, where they appear together when all are complete."""
    for one in known:
        if one.kind == "other":
            raise ConfigError(f"the embedder {one.name!r} is of a kind that cannot be copied")
    names = [f"{number}" if one.kind == "elmo" else f"{number}.safetensors" for number, one in enumerate(known)]
    with replacing_folder(folder / COPIES, files=names, overwrite=True) as partial:
        for name, embedder in zip(names, embedders, strict=True):
            embedder.save(partial / name)
    pairs = zip(known, names, strict=True)
    return tuple(msgspec.structs.replace(one, bundled=f"{COPIES}/{name}") for one, name in pairs)


def fetch(folder: Path, known: Sequence[EmbedderId], given: Sequence[Embedder] | None) -> Sequence[Embedder]:
    """The embedders of a trained task: those given, or else from their copies or where they were; refuse any other."""
    embedders = [_fetch(folder, one) for one in known] if given is None else given
    if len(known) != len(embedders):
        raise ConfigError(f"{folder} was trained with {len(known)} embedders, not {len(embedders)}")
    for one, embedder in zip(known, embedders, strict=True):
        found = identify(one.name, embedder)
        if (found.kind, found.digest) != (one.kind, one.digest):
            other = f"another {one.kind} embedder than {one.name} is now"
            raise CheckpointError(f"{folder} was trained with {other}; if several are given, their order counts")
        if found.lower_case != one.lower_case:
            raise CheckpointError(f"{folder}: {one.name}: lower_case was {one.lower_case}, not {found.lower_case}")
    return embedders


def _fetch(folder: Path, known: EmbedderId) -> Embedder:
    if known.kind not in ("elmo", *STATIC):
        raise CheckpointError(f"{folder}: the embedder {known.name!r} was made in Python: pass it to load(embedders=…)")
    copy = Path(known.bundled or "")
    if copy.is_absolute() or ".." in copy.parts:
        raise CheckpointError(f"{folder}: the copy {known.bundled!r} of an embedder is said to be outside of it")
    try:  # a bundled model is taken whatever folder has its name here
        source = folder / copy if known.bundled else bundled_path(known.name) or known.name
        if known.kind == "elmo":
            return elmokit.load(source)
        return STATIC[known.kind].load(source, lower_case=known.lower_case)
    except ElmoError as error:
        raise CheckpointError(f"{folder} needs the {known.kind} vectors it was trained with: {error}") from None
