"""The biLM as AllenNLP's own module takes and gives it: character ids in, layers with their bounds out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.checkpoints.allenai import read_files
from elmokit.checkpoints.allennlp import table_of
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.elmo import Elmo
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.hub import fetch
from elmokit.model.bilm import State
from elmokit.model.tokens import as_tensors
from elmokit.text.characters import ByteCharacters, WordIds
from elmokit.text.vocabulary import BOS, EOS

BOUNDS = 2  # <S> and </S>, the first two of all tables of vectors here
OURS = "bilm."


def read_pair(options_file: str | Path, weight_file: str | Path) -> Checkpoint:
    """The model of an options and a weights file, each at a path or an address."""
    paths = (fetch(options_file), fetch(weight_file))
    for path in paths:
        if not path.is_file():
            raise CheckpointError(f"{path}: there is no such file")
    return read_files(*paths)


class Tokens(NamedTuple):
    """What stands where in a batch."""

    vectors: Tensor  # (V, P) of <S>, </S> and words
    indices: Tensor  # (B, T) which of these vectors
    mask: Tensor  # (B, T) True where there is a token

    def with_bounds(self) -> "Tokens":
        """The same between <S> and </S>, (B, T + 2)."""
        if (self.mask[:, 1:] & ~self.mask[:, :-1]).any():
            raise DataError("a token stands after padding: padding belongs at the end of a sentence")
        indices, mask = F.pad(self.indices, (1, 1)), F.pad(self.mask, (2, 0), value=True)
        ends = self.mask.sum(dim=1, keepdim=True) + 1
        return Tokens(self.vectors, indices.scatter(1, ends, 1), mask)


class BiLm(nn.Module):
    """Ids, (B, T, C) → `activations`, a list of L + 1 tensors (B, T + 2, D), and `mask`, (B, T + 2)."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        device: str = "cpu",
        requires_grad: bool = False,
        vocab_to_cache: Sequence[str] | None = None,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        config = checkpoint.config
        if config.words or config.characters is None or config.characters.alphabet != "bytes":
            raise ConfigError(f"{checkpoint.source}: AllenNLP's ELMo reads bytes as characters; this model does not")
        self.elmo, self.stateful = Elmo(_with_forget_bias(checkpoint), device=device), stateful
        self.bilm = self.elmo.bilm.requires_grad_(requires_grad)
        self.num_layers, self.max_characters = self.elmo.layer_count, config.characters.max_characters
        self._encoder = ByteCharacters(self.max_characters)
        self._rows = [row for row in table_of(config) if checkpoint.weights.keys() >= set(row.ours)]
        self._state: State | None = None
        self._word_embedding: nn.Embedding | None = None
        if vocab_to_cache:
            with torch.no_grad():
                vectors = self._vectors(self._encoder.encode([BOS, EOS, *vocab_to_cache]))
            vectors[BOUNDS] = 0  # the first entry of the vocabulary stands for padding
            self.register_buffer("_bounds", vectors[:BOUNDS], persistent=False)
            words = nn.Embedding.from_pretrained(vectors[BOUNDS:], freeze=not requires_grad, padding_idx=0)
            self._word_embedding = words
        self.register_state_dict_post_hook(_to_allennlp)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_from_allennlp)  # type: ignore[no-untyped-call]

    def get_output_dim(self) -> int:
        return self.elmo.width

    def reset_states(self) -> None:
        """Forget what earlier calls left behind; of use with `stateful=True` alone."""
        self._state = None

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Every layer of every token; if a word is not in the cached vocabulary, all are read from their characters."""
        known = None if word_inputs is None else self._looked_up(word_inputs)
        vectors, indices, mask = (known or self._read(inputs)).with_bounds()
        lengths, order = mask.sum(dim=1).sort(descending=True, stable=True)
        cells = torch.arange(mask.numel(), device=mask.device).view_as(mask)[order][mask[order]]  # (N,) longest first
        outputs = self._run(vectors[indices.flatten()[cells]], lengths.tolist(), order)  # (L + 1, N, D)
        padded = outputs.new_zeros(self.num_layers, mask.numel(), outputs.shape[2]).index_copy(1, cells, outputs)
        return {"activations": list(padded.unflatten(1, mask.shape)), "mask": mask.long()}

    def _looked_up(self, word_inputs: Tensor) -> Tokens | None:
        """Words by their numbers in the cached vocabulary; None if one is not in it."""
        if self._word_embedding is None or bool((word_inputs >= self._word_embedding.num_embeddings).any()):
            return None
        vectors = torch.cat([self.get_buffer("_bounds"), self._word_embedding.weight])
        return Tokens(vectors, word_inputs + BOUNDS, word_inputs > 0)

    def _read(self, inputs: Tensor) -> Tokens:
        """Words by their characters."""
        mask = (inputs > 0).any(dim=-1)  # (B, T)
        ids, width, size = inputs[mask], self.max_characters, self._encoder.size  # (N, C)
        if ids.shape[-1] != width:
            found = f"{ids.shape[-1]} characters a token"
            raise DataError(f"the ids have {found}, the model {width}: batch_to_ids takes that")
        if ids.numel() and not 1 <= int(ids.min()) <= int(ids.max()) <= size:
            raise DataError(f"character ids of a token are from 1 to {size}: make them with batch_to_ids")
        vectors = self._vectors(np.concatenate([self._encoder.encode([BOS, EOS]), ids.cpu().numpy() - 1]))
        indices = torch.zeros_like(mask, dtype=torch.long)
        indices[mask] = torch.arange(BOUNDS, len(vectors), device=mask.device)
        return Tokens(vectors, indices, mask)

    @property
    def _learns(self) -> bool:
        return torch.is_grad_enabled() and any(weight.requires_grad for weight in self.parameters())

    def _vectors(self, char_ids: NDArray[np.int64]) -> Tensor:
        """The words' context-free vectors, (N, P); every distinct word is computed once."""
        words = _spelled(char_ids)
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        if self._learns or not self.elmo.on_cpu:
            vectors: Tensor = self.bilm.tokens(*as_tensors(_ids(list(numbers)), self.elmo.device))
        else:
            with torch.inference_mode():
                vectors = self.elmo.engine.token_vectors(list(numbers), _ids)
            vectors = vectors.clone()  # a tensor that autograd may keep
        return vectors[torch.tensor([numbers[word] for word in words], device=self.elmo.device)]

    def _run(self, x: Tensor, lengths: list[int], order: Tensor) -> Tensor:
        """All layers, (L + 1, N, D), of sentences end to end, longest first; `order` is which rows of the batch."""
        state = self._state_of(order) if self.stateful else None
        run = self.bilm if self._learns or not self.elmo.on_cpu else self.elmo.engine.layers
        with torch.inference_mode(not self._learns):
            outputs, last = run(x, lengths, state)
        if self.stateful and self._state is not None:
            for kept, new in zip(self._state, last, strict=True):
                kept[:, :, order] = new.detach()
        return outputs if self._learns else outputs.clone()

    def _state_of(self, order: Tensor) -> State:
        """What earlier calls left to these rows of the batch; zeros for new ones."""
        kept = self._state or self.bilm.zero_state(0)
        missing = max(0, len(order) - kept.h.shape[2])
        self._state = State(*(F.pad(part, (0, 0, 0, missing)) for part in kept))
        return State(*(part[:, :, order] for part in self._state))


def _with_forget_bias(checkpoint: Checkpoint) -> Checkpoint:
    """The same model with the forget gate's constant in its biases, where AllenNLP has it."""
    config, weights = checkpoint.config, dict(checkpoint.weights)
    for name, bias in checkpoint.weights.items():
        if "_layers." in name and name.endswith(".bias"):
            weights[name] = bias.clone()
            weights[name][config.hidden : 2 * config.hidden] += config.forget_bias
    return replace(checkpoint, config=replace(config, forget_bias=0.0), weights=weights)


def _spelled(char_ids: NDArray[np.int64]) -> list[str]:
    """Rows of ids, (N, C), as strings of as many code points: keys for a dictionary."""
    width = char_ids.shape[1]
    text = char_ids.astype("<u4").tobytes().decode("utf-32-le")
    return [text[start : start + width] for start in range(0, len(text), width)]


def _ids(spelled: list[str]) -> WordIds:
    """The ids that were spelled so."""
    codes = np.frombuffer("".join(spelled).encode("utf-32-le"), dtype="<u4")
    return WordIds(codes.astype(np.int64).reshape(len(spelled), -1), None)


def _to_allennlp(bilm: BiLm, state: dict[str, Tensor], prefix: str, metadata: Any) -> None:  # noqa: ARG001
    """Give the weights the names and shapes that AllenNLP gives them."""
    for row in bilm._rows:
        found = row.to_theirs(*(state.pop(prefix + OURS + name) for name in row.ours))
        for name, weight in zip(row.theirs, found, strict=True):
            state[prefix + name] = weight


def _from_allennlp(bilm: BiLm, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:  # noqa: ARG001
    """Take weights by AllenNLP's names."""
    for row in bilm._rows:
        if all(prefix + name in state for name in row.theirs):
            found = row.to_ours(*(state.pop(prefix + name) for name in row.theirs))
            for name, weight in zip(row.ours, found, strict=True):
                state[prefix + OURS + name] = weight
