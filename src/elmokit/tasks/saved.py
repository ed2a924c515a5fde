"""A trained task and its folder.

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
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from elmokit.config import TokenizerName
from elmokit.embedder import Embedder
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.tasks.embedders import EmbedderId, as_layer, check_same, fetch
from elmokit.tasks.inputs import InputLayer
from elmokit.tasks.network import Network
from elmokit.tasks.registry import get_task
from elmokit.tasks.settings import InputSettings
from elmokit.tasks.task import Item, Scores, check_labels, settings_of
from elmokit.text.tokenizers import get_tokenizer

CONFIG, WEIGHTS = "task.json", "task.safetensors"
CHUNK = 256  # examples of a stream that are answered together, at most


class TaskConfig(msgspec.Struct, frozen=True, kw_only=True):
    """All that a trained task is, but its weights."""

    format: Literal["elmokit task"] = "elmokit task"
    version: Literal[1] = 1
    task: str
    settings: dict[str, Any]
    labels: tuple[str, ...]
    inputs: InputSettings
    tokenizer: TokenizerName
    embedders: tuple[EmbedderId, ...]


class Predictor:
    """A trained task that answers."""

    def __init__(self, config: TaskConfig, network: Network) -> None:
        self.config, self.network = config, network
        self.task = get_task(config.task)
        self.settings = settings_of(self.task, config.settings)
        self.cut = get_tokenizer(config.tokenizer)

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
            yield from self.network.predict(chunk)
            size = min(2 * size, CHUNK)

    def read(self, path: str | Path) -> list[Any]:
        """The labelled examples of a file."""
        return list(self.task.read(Path(path), self.settings))

    def evaluate(self, examples: Sequence[Any]) -> Scores:
        """How good the answers to labelled examples are."""
        check_labels(self.task, examples, self.config.labels)
        return self.network.evaluate(self.task, [self.task.prepare(example, self.cut) for example in examples])

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
                example = self.task.parse(example, self.cut)
            except DataError as error:
                raise DataError(f"{name}: {error}") from None
        return self.task.prepare(example, self.cut)


def build(config: TaskConfig, embedders: Sequence[Embedder]) -> Network:
    """The network of a config, with weights that are drawn anew."""
    task = get_task(config.task)
    inputs = InputLayer(embedders, config.inputs, as_layer=as_layer)
    return Network(inputs, task.Model(settings_of(task, config.settings), config.labels, inputs.widths))


def load(folder: str | Path, *, embedders: Sequence[Embedder] | None = None) -> Predictor:
    """Load a trained task; its embedders are found where they were, unless they are given."""
    folder = Path(folder).expanduser()
    config = read_config(folder)
    if embedders is None:
        embedders = [fetch(folder, known) for known in config.embedders]
    check_same(folder, config.embedders, embedders)
    try:
        network = build(config, embedders)
    except ConfigError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    load_weights(network, folder)
    return Predictor(config, network)


def read_config(folder: Path) -> TaskConfig:
    """What task.json says."""
    path = folder / CONFIG
    try:
        return msgspec.json.decode(path.read_bytes(), type=TaskConfig)
    except OSError:
        raise CheckpointError(f"{folder} is no trained task: it has no {CONFIG} that can be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError, ConfigError) as error:
        raise CheckpointError(f"{path}: damaged, or of another version of elmokit: {error}") from None


def load_weights(network: Network, folder: Path) -> None:
    """Put the weights of the best epoch into a network."""
    path = folder / WEIGHTS
    if not path.exists():
        raise CheckpointError(f"{folder} has no {WEIGHTS}: no epoch of its training was finished; go on with --resume")
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read as safetensors: {error}. Is it complete?") from None
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        problems = [line.strip() for line in str(error).splitlines()[1:]]
        more = f" and {len(problems) - 1} more like it" if len(problems) > 1 else ""
        raise CheckpointError(f"{path} does not match {CONFIG}: {problems[0]}{more}") from None


def weights_of(network: Network) -> bytes:
    """The weights as the content of a file."""
    return save({name: weight.detach().contiguous() for name, weight in network.state_dict().items()})


def changed(before: Mapping[str, Any], now: Mapping[str, Any], group: str = "") -> list[str]:
    """The names of the settings that are not what they were, such as training.batch."""
    names = []
    for name, value in now.items():
        was = before.get(name)
        if isinstance(value, dict) and isinstance(was, dict):
            names += changed(was, value, f"{group}{name}.")
        elif was != value:
            names.append(group + name)
    return names


def as_json(value: Any) -> bytes:
    """A value as the content of a file that people can read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
