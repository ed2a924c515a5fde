"""The biLM as AllenNLP's own modules take and give it: character ids in, layers with their bounds out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from elmokit.checkpoints.allenai import read_files
from elmokit.checkpoints.allennlp import CELLS, TOKENS, table_of
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.tables import CHARACTERS, DIRECTIONS, Row
from elmokit.elmo import Elmo
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.hub import fetch
from elmokit.model.bilm import State
from elmokit.model.tokens import as_tensors
from elmokit.text.characters import ByteCharacters, WordIds
from elmokit.text.vocabulary import BOS, EOS


def read_elmo(
    options_file: str | Path, weight_file: str | Path, *, requires_grad: bool = False, device: str = "cpu"
) -> Elmo:
    """The model of an options and a weights file, each at a path or an address."""
    paths = (fetch(options_file), fetch(weight_file))
    for path in paths:
        if not path.is_file():
            raise CheckpointError(f"{path}: there is no such file")
    checkpoint = read_files(*paths)
    config = checkpoint.config
    if config.words or config.characters is None or config.characters.alphabet != "bytes":
        raise ConfigError(f"{checkpoint.source}: AllenAI's ELMo reads bytes as characters; this model does not")
    elmo = Elmo(_with_forget_bias(checkpoint), device=device)
    elmo.bilm.requires_grad_(requires_grad)
    return elmo


class CharacterEncoder(nn.Module):
    """Ids, (B, T, C) → `token_embedding`, (B, T + 2, P), and `mask`, (B, T + 2), both with <S> and </S>."""

    def __init__(self, elmo: Elmo) -> None:
        super().__init__()
        assert elmo.config.characters is not None
        self.tokens, self._engine = elmo.bilm.tokens, elmo.engine
        self._output_dim = elmo.config.projection
        self._encoder = ByteCharacters(elmo.config.characters.max_characters)
        _use_allennlp_names(self, table_of(elmo.config), TOKENS)

    def get_output_dim(self) -> int:
        return self._output_dim

    @property
    def max_characters(self) -> int:
        return self._encoder.max_characters

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        """A token of which all ids are 0 is padding."""
        mask = (inputs > 0).any(dim=-1)  # (B, T)
        ids, size = inputs[mask], self._encoder.size  # (N, C)
        if ids.shape[-1] != self.max_characters:
            found = f"{ids.shape[-1]} characters a token"
            raise DataError(f"the ids have {found}, the model {self.max_characters}: batch_to_ids takes that")
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) <= size:
            raise DataError(f"character ids of a token are from 0 to {size}: make them with batch_to_ids")
        bounds, vectors = self.encode([BOS, EOS]), self.vectors(ids)
        x = vectors.new_zeros(mask.numel(), vectors.shape[1])
        x = x.index_copy(0, mask.flatten().nonzero().flatten(), vectors).view(*mask.shape, vectors.shape[1])
        x, mask = with_bounds(x, mask, bounds)
        return {"token_embedding": x, "mask": mask.long()}

    def encode(self, words: Sequence[str]) -> Tensor:
        """The words' context-free vectors, (N, P)."""
        return self.vectors(torch.from_numpy(self._encoder.encode(words) + 1).to(_device(self)))

    def vectors(self, ids: Tensor) -> Tensor:
        """The same of words by AllenNLP's ids, (N, C)."""
        pads = ids == self._encoder.pad + 1
        odd = (ids == 0).any(dim=1) | (pads[:, :-1] & ~pads[:, 1:]).any(dim=1)  # as no word is spelled
        if not odd.any():
            return self._of_words(ids)
        order = torch.cat([part.nonzero().flatten() for part in (~odd, odd)])
        return torch.cat([self._of_words(ids[~odd]), self._of_any_ids(ids[odd])])[order.argsort()]

    def _of_words(self, ids: Tensor) -> Tensor:
        """Every distinct word is computed once."""
        words = _spelled((ids - 1).cpu().numpy())
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        device = _device(self)
        if _learns(self) or device.type != "cpu":
            vectors: Tensor = self.tokens(*as_tensors(_ids(list(numbers), self.max_characters), device))
        else:
            with torch.inference_mode():
                vectors = self._engine.token_vectors(list(numbers), partial(_ids, width=self.max_characters))
            vectors = vectors.clone()  # a tensor that autograd may keep
        return vectors[torch.tensor([numbers[word] for word in words], dtype=torch.long, device=device)]

    def _of_any_ids(self, ids: Tensor) -> Tensor:
        """By the plain formula, where 0 is a character too, whose vector is zeros."""
        name = CHARACTERS.removeprefix("tokens.")
        table = F.pad(self.tokens.get_parameter(name), (0, 0, 1, 0))
        vectors: Tensor = functional_call(self.tokens, {name: table}, (ids, None), {"plain": True})
        return vectors


class _ElmoCharacterEncoder(CharacterEncoder):
    """The same, of an options and a weights file."""

    def __init__(self, options_file: str | Path, weight_file: str | Path, requires_grad: bool = False) -> None:
        super().__init__(read_elmo(options_file, weight_file, requires_grad=requires_grad))


class ElmoLstm(nn.Module):
    """Token vectors, (B, T, P), and their mask, (B, T) → the recurrent layers, (L, B, T, D).

    If `stateful`, row k of a batch goes on from where row k of the last one ended.
    """

    def __init__(self, elmo: Elmo, *, stateful: bool) -> None:
        super().__init__()
        self.stateful, self._elmo = stateful, elmo
        for direction, stack in zip(DIRECTIONS, elmo.bilm.stacks, strict=True):
            for number, layer in enumerate(stack):
                self.add_module(f"{direction}_layer_{number}", layer)
        self._states: State | None = None
        _use_allennlp_names(self, table_of(elmo.config), CELLS)

    def reset_states(self) -> None:
        """Forget what earlier calls left behind."""
        self._states = None

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Zeros stand where the mask has none."""
        mask = mask.bool()
        lengths, order = mask.sum(dim=1).sort(descending=True, stable=True)
        cells = torch.arange(mask.numel(), device=mask.device).view_as(mask)[order][mask[order]]  # (N,) longest first
        outputs = self._run(inputs.flatten(0, 1)[cells], lengths.tolist(), order)[1:]  # (L, N, D)
        padded = outputs.new_zeros(len(outputs), mask.numel(), outputs.shape[2]).index_copy(1, cells, outputs)
        layers: Tensor = padded.unflatten(1, mask.shape)
        return layers

    def _run(self, x: Tensor, lengths: list[int], order: Tensor) -> Tensor:
        """All layers, (L + 1, N, D), of sentences end to end, longest first; `order` is which rows of the batch."""
        learns = _learns(self) or (torch.is_grad_enabled() and x.requires_grad)
        state = self._state_of(order) if self.stateful else None
        run = self._elmo.bilm if learns or not self._elmo.on_cpu else self._elmo.engine.layers
        with torch.inference_mode(not learns):
            outputs, last = run(x, lengths, state)
        if self.stateful and self._states is not None:
            for kept, new in zip(self._states, last, strict=True):
                kept[:, :, order] = new.detach()
        return outputs if learns else outputs.clone()

    def _state_of(self, order: Tensor) -> State:
        """What earlier calls left to these rows of the batch; zeros for new ones."""
        kept = self._states or self._elmo.bilm.zero_state(0)
        missing = max(0, len(order) - kept.h.shape[2])
        self._states = State(*(F.pad(part, (0, 0, 0, missing)) for part in kept))
        return State(*(part[:, :, order] for part in self._states))


class _ElmoBiLm(nn.Module):
    """Ids, (B, T, C) → `activations`, a list of L + 1 tensors (B, T + 2, D), and `mask`, (B, T + 2)."""

    def __init__(
        self,
        options_file: str | Path,
        weight_file: str | Path,
        requires_grad: bool = False,
        vocab_to_cache: Sequence[str] | None = None,
        *,
        device: str = "cpu",
        stateful: bool = True,
    ) -> None:
        super().__init__()
        self.elmo = read_elmo(options_file, weight_file, requires_grad=requires_grad, device=device)
        self.num_layers = self.elmo.layer_count
        self._token_embedder = CharacterEncoder(self.elmo)
        self._elmo_lstm = ElmoLstm(self.elmo, stateful=stateful)
        self._word_embedding: nn.Embedding | None = None
        if vocab_to_cache:
            with torch.no_grad():
                bounds, vectors = map(self._token_embedder.encode, ([BOS, EOS], vocab_to_cache))
            vectors[0] = 0  # the first entry of the vocabulary stands for padding
            self.register_buffer("_bounds", bounds, persistent=False)
            self._word_embedding = nn.Embedding.from_pretrained(vectors, freeze=not requires_grad, padding_idx=0)

    def get_output_dim(self) -> int:
        return self.elmo.width

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Every layer of every token; if a word is not in the cached vocabulary, all are read from their characters."""
        words = self._word_embedding
        if words is not None and word_inputs is not None and not (word_inputs >= words.num_embeddings).any():
            return self.activations(*with_bounds(words(word_inputs), word_inputs > 0, self.get_buffer("_bounds")))
        tokens = self._token_embedder(inputs)
        return self.activations(tokens["token_embedding"], tokens["mask"])

    def activations(self, x: Tensor, mask: Tensor) -> dict[str, Any]:
        """Every layer of token vectors, (B, T, P), whatever they come from."""
        return {"activations": [torch.cat([x, x], dim=-1), *self._elmo_lstm(x, mask)], "mask": mask.long()}


def with_bounds(x: Tensor, mask: Tensor, bounds: Tensor) -> tuple[Tensor, Tensor]:
    """Token vectors, (B, T, P), and their mask, (B, T), between those of <S> and </S>, (2, P)."""
    if (mask[:, 1:] & ~mask[:, :-1]).any():
        raise DataError("a token stands after padding: padding belongs at the end of a sentence")
    first, last = (bound.expand(len(x), 1, -1) for bound in bounds)  # (B, 1, P)
    x = torch.cat([first, x, torch.zeros_like(last)], dim=1)  # (B, T + 2, P)
    ends = F.one_hot(mask.sum(dim=1) + 1, x.shape[1]).bool()  # (B, T + 2)
    return torch.where(ends[..., None], last, x), F.pad(mask, (2, 0), value=True)


def remove_sentence_boundaries(tensor: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """What stands between <S> and </S>, (B, T, D), and its mask, (B, T), from (B, T + 2, D) and (B, T + 2)."""
    return tensor[:, 1:-1] * mask[:, 2:, None], mask[:, 2:]


def _device(module: nn.Module) -> torch.device:
    return next(module.parameters()).device


def _learns(module: nn.Module) -> bool:
    return torch.is_grad_enabled() and any(weight.requires_grad for weight in module.parameters())


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


def _ids(spelled: list[str], width: int) -> WordIds:
    """The ids that were spelled so."""
    codes = np.frombuffer("".join(spelled).encode("utf-32-le"), dtype="<u4")
    return WordIds(codes.astype(np.int64).reshape(len(spelled), width), None)


def _use_allennlp_names(module: nn.Module, table: Iterable[Row], prefix: str) -> None:
    """Give and take the module's weights by the names and in the shapes that AllenNLP has, those with this prefix."""
    rows = []
    for row in table:
        ours = tuple(name.replace("_layers.", "_layer_") for name in row.ours)
        if row.theirs[0].startswith(prefix) and module.state_dict().keys() >= set(ours):
            rows.append(row._replace(theirs=tuple(name.removeprefix(prefix) for name in row.theirs), ours=ours))
    module.register_state_dict_post_hook(partial(_to_allennlp, rows))
    module.register_load_state_dict_pre_hook(partial(_from_allennlp, rows))


def _to_allennlp(rows: list[Row], module: nn.Module, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:  # noqa: ARG001
    for row in rows:
        found = row.to_theirs(*(state.pop(prefix + name) for name in row.ours))
        for name, weight in zip(row.theirs, found, strict=True):
            state[prefix + name] = weight


def _from_allennlp(rows: list[Row], module: nn.Module, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:  # noqa: ARG001
    for row in rows:
        if all(prefix + name in state for name in row.theirs):
            found = row.to_ours(*(state.pop(prefix + name) for name in row.theirs))
            for name, weight in zip(row.ours, found, strict=True):
                state[prefix + name] = weight
