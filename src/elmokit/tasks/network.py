"""A task's whole network: embedders, mixes and the task's own model, from items to losses and answers."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.tasks.inputs import InputLayer
from elmokit.tasks.task import Inputs, Item, Scores, Task
from elmokit.text.inputs import batch_by_tokens, in_original_order

ANSWER_TOKENS = 4096  # answered at a time


class Network(nn.Module):
    """The input layer and the model on top of it."""

    def __init__(self, inputs: InputLayer, model: Any) -> None:
        super().__init__()
        self.inputs, self.model = inputs, model

    def loss(self, items: Sequence[Item]) -> Tensor:
        """What the model loses on a batch, and the penalty of the mixes."""
        loss: Tensor = self.model.loss(self._inputs(items), items)
        return loss + self.inputs.penalty()

    @torch.no_grad()
    def predict(self, items: Sequence[Item]) -> list[Any]:
        """The examples of items with the model's answers."""
        self.eval()
        batches = batch_by_tokens([size(item) for item in items], ANSWER_TOKENS)
        chosen = ([items[number] for number in batch] for batch in batches)
        return in_original_order(batches, (self.model.predict(self._inputs(batch), batch) for batch in chosen))

    def evaluate(self, task: Task, items: Sequence[Item]) -> Scores:
        """How good the answers are."""
        return task.score([item.example for item in items], self.predict(items))

    def _inputs(self, items: Iterable[Item]) -> Inputs:
        inputs: Inputs = self.inputs([sentence for item in items for sentence in item.sentences])
        return inputs


def size(item: Item) -> int:
    """The tokens of an item, at least one."""
    return max(1, sum(map(len, item.sentences)))
