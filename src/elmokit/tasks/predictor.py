"""A trained task that answers, and the folder of one that was trained in epochs.

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
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from elmokit.config import TokenizerName
from elmokit.embedder import Embedder
from elmokit.errors import CheckpointError, DataError
from elmokit.tasks.embedders import EmbedderId
from elmokit.tasks.inputs import InputLayer
from elmokit.tasks.task import Inputs, InputSettings, Item, Scores, Task
from elmokit.text.inputs import batch_by_tokens, in_original_order
from elmokit.text.tokenizers import get_tokenizer

CONFIG, WEIGHTS = "task.json", "task.safetensors"
ANSWER_TOKENS = 4096  # answered at a time
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
        items = (self._item(f"{name} {number}", example) for number, example in enumerate(examples, 1))
        size = 1
        while chunk := list(islice(items, size)):
            yield from self.model.predict(chunk)
            size = min(2 * size, CHUNK)

    def read(self, path: str | Path) -> list[Any]:
        """The labelled examples of a file."""
        return list(self.task.read(Path(path), self.settings))

    def evaluate(self, examples: Iterable[Any]) -> Scores:
        """How good the answers to labelled examples are."""
        gold = list(examples)
        self.task.check_labels(gold, self.config.labels)
        return self.task.score(gold, self.model.predict([self.task.prepare(one, self.tokenize) for one in gold]))

    def _item(self, name: str, example: Any) -> Item:
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


class TaskConfig(msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag="elmokit task"):
    """All that a trained network is, but its weights."""

    version: Literal[1] = 1
    task: str
    settings: dict[str, Any]
    labels: tuple[str, ...]
    inputs: InputSettings
    tokenizer: TokenizerName
    embedders: tuple[EmbedderId, ...]


class Network(nn.Module):
    """The input layer and the task's own model on top of it: from items to losses and answers."""

    def __init__(self, inputs: InputLayer, model: Any) -> None:
        super().__init__()
        self.inputs, self.model = inputs, model

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


def new_network(task: Task, config: TaskConfig, embedders: Sequence[Embedder]) -> Network:
    """The network of a config, with weights that are drawn anew."""
    inputs = InputLayer(embedders, config.inputs)
    assert task.model is not None
    return Network(inputs, task.model(task.settings_from(config.settings), config.labels, inputs.widths))


def load_network(task: Task, folder: Path, config: TaskConfig, embedders: Sequence[Embedder]) -> Predictor:
    """What was trained in epochs."""
    network = new_network(task, config, embedders)
    load_weights(network, folder)
    return Predictor(task, network, config)


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
