"""Class Elmo: load · embed · sentence_vectors · save."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from elmokit.checkpoints import read_checkpoint, write_checkpoint
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.config import ModelConfig
from elmokit.embedder import Layers, Sentence, Vectors
from elmokit.errors import ConfigError
from elmokit.hub import local_path
from elmokit.model.bilm import State
from elmokit.model.engine import Engine
from elmokit.model.language_model import LanguageModel
from elmokit.model.linear import Precision
from elmokit.model.tokens import as_tensors
from elmokit.text.inputs import batch_by_tokens, in_chunks, in_original_order, looks_flat, tokenized
from elmokit.text.tokenizers import get_tokenizer
from elmokit.text.vocabulary import BOS, EOS
from elmokit.text.words import WordEncoder

Pooling = Literal["mean", "max"]
BOUNDS = 2  # every sentence stands between <S> and </S>
CHUNK_BATCHES = 4  # a stream is sorted by length within so many batches


def load(
    source: str | Path,
    *,
    precision: Precision = "fp32",
    device: str | torch.device = "cpu",
    stateful: bool = False,
    batch_tokens: int = 4096,
    token_cache_mb: float = 64,
) -> "Elmo":
    """Load a model by name ("en", "zh"), or in any supported format from a folder, a file or an address (hf://…)."""
    return Elmo(
        read_checkpoint(local_path(source)),
        precision=precision,
        device=device,
        stateful=stateful,
        batch_tokens=batch_tokens,
        token_cache_mb=token_cache_mb,
    )


class Elmo:
    """A bidirectional language model that gives every token of a sentence its contextual vectors."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        precision: Precision = "fp32",
        device: str | torch.device = "cpu",
        stateful: bool = False,
        batch_tokens: int = 4096,
        token_cache_mb: float = 64,
    ) -> None:
        if batch_tokens < 1:
            raise ConfigError(f"batch_tokens is {batch_tokens}: it must be at least 1")
        if token_cache_mb < 0:
            raise ConfigError(f"token_cache_mb is {token_cache_mb}: it cannot be negative")
        _check_precision(precision, checkpoint.config, usable_device(device))
        self.config: ModelConfig = checkpoint.config
        self.vocabulary = checkpoint.vocabulary
        self.source = checkpoint.source
        self.stateful = stateful
        self.batch_tokens = batch_tokens
        self.tokenizer = get_tokenizer(checkpoint.config.tokenizer)
        self.encoder = WordEncoder(checkpoint.config, checkpoint.vocabulary)
        self.language_model = _build(checkpoint).to(usable_device(device))
        self.bilm = self.language_model.bilm
        self.engine = Engine(self.bilm, precision, token_cache_mb=token_cache_mb)
        self._state: State | None = None

    @property
    def width(self) -> int:
        """Width of a vector: both directions side by side."""
        return self.config.width

    @property
    def layer_count(self) -> int:
        """Layers a token has: its context-free vector and one for each recurrent layer."""
        return self.config.layers + 1

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.bilm.parameters()).device

    @property
    def on_cpu(self) -> bool:
        """Whether the engine runs; elsewhere the module itself does."""
        return self.device.type == "cpu"

    def embed(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> list[Vectors]:
        """One array a sentence, (tokens, width), or (layers, tokens, width) for `layers="all"`.

        A sentence is a list of tokens, or a str that the model's own tokenizer cuts. `layers` is "average", "top",
        "all" or a layer's number, 0 being the context-free token vectors. With `stateful=True` the call is one batch:
        sentence k goes on from where sentence k of the last call ended, as in the original code.
        """
        if looks_flat(sentences, self.tokenizer):
            warnings.warn("every sentence is one word: if they are one sentence, pass it as [tokens]", stacklevel=2)
        return list(self._embed_chunks([self.tokenize(sentences)], layers))

    def embed_stream(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> Iterator[Vectors]:
        """What `embed` gives, in order, in memory that does not grow with the number of sentences.

        With `stateful=True` every sentence is a batch of its own and goes on from where the last one ended.
        """
        size = 1 if self.stateful else CHUNK_BATCHES * self.batch_tokens
        return self._embed_chunks(in_chunks(tokenized(sentences, self.tokenizer), size), layers)

    def sentence_vectors(
        self, sentences: Iterable[Sentence], *, pooling: Pooling = "mean", layers: Layers = "average"
    ) -> Vectors:
        """One vector a sentence, (sentences, width): the mean or maximum of its tokens; zeros for an empty one."""
        if pooling not in get_args(Pooling):
            raise ConfigError(f"unknown pooling {pooling!r}: known are {', '.join(get_args(Pooling))}")
        if layers == "all":
            raise ConfigError("sentence vectors are made of one layer or mix: 'all' is not one")
        pool = np.mean if pooling == "mean" else np.max
        empty = np.zeros(self.width, np.float32)
        pooled = [
            pool(vectors, axis=0) if len(vectors) else empty for vectors in self.embed_stream(sentences, layers=layers)
        ]
        return np.stack(pooled) if pooled else np.zeros((0, self.width), np.float32)

    def reset_state(self) -> None:
        """Forget what earlier calls left behind; of use with `stateful=True` alone."""
        self._state = None

    def checkpoint(self) -> Checkpoint:
        """The model as it stands, to be written in any format."""
        weights = {name: weight.detach().cpu() for name, weight in self.language_model.weights().items()}
        return Checkpoint(self.config, weights, self.vocabulary, self.source)

    def save(self, folder: str | Path, *, half: bool = False, overwrite: bool = False) -> None:
        """Write the model in elmokit's own format; `half` stores 16-bit numbers."""
        write_checkpoint(self.checkpoint(), Path(folder), half=half, overwrite=overwrite)

    def tokenize(self, sentences: Iterable[Sentence]) -> list[list[str]]:
        """The tokens that `embed` gives vectors for, sentence by sentence."""
        return list(tokenized(sentences, self.tokenizer))

    def _embed_chunks(self, chunks: Iterable[list[list[str]]], layers: Layers) -> Iterator[Vectors]:
        self._check_layers(layers)
        return (vectors for chunk in chunks for vectors in self._embed_chunk(chunk, layers))

    def _check_layers(self, layers: Layers) -> None:
        known = layers in ("average", "top", "all") if isinstance(layers, str) else layers in range(self.layer_count)
        if not known or isinstance(layers, bool):
            raise ConfigError(
                f"unknown layers {layers!r}: this model has 'average', 'top', 'all' and 0 to {self.layer_count - 1}"
            )

    def _embed_chunk(self, chunk: list[list[str]], layers: Layers) -> list[Vectors]:
        batches = batch_by_tokens([len(tokens) + BOUNDS for tokens in chunk], self.batch_tokens)
        results = (self._embed_batch([chunk[i] for i in batch], batch, layers) for batch in batches)
        return in_original_order(batches, results)

    def _embed_batch(self, batch: list[list[str]], rows: list[int], layers: Layers) -> list[Vectors]:
        """Vectors of sentences sorted by falling length; rows are their places in the call."""
        lengths = [len(tokens) + BOUNDS for tokens in batch]
        with torch.inference_mode():
            outputs = self._outputs([[BOS, *tokens, EOS] for tokens in batch], rows, layers).cpu().numpy()
        ends = accumulate(lengths)
        return [outputs[..., end - n + 1 : end - 1, :].copy() for n, end in zip(lengths, ends, strict=True)]

    def _outputs(self, batch: list[list[str]], rows: list[int], layers: Layers) -> Tensor:
        """The layers asked for of every token, (N, 2P) or (L + 1, N, 2P), of sentences with their bounds."""
        x, lengths = self._flat_vectors(batch, self._cached_vectors), [len(tokens) for tokens in batch]
        if layers == 0 and not self.stateful:
            return x.repeat(1, 2)
        everything = self._stateful_layers(x, lengths, rows) if self.stateful else self._stateless_layers(x, lengths)
        if layers == "all":
            return everything
        return everything.mean(dim=0) if layers == "average" else everything[-1 if layers == "top" else layers]

    def _stateful_layers(self, x: Tensor, lengths: list[int], rows: list[int]) -> Tensor:
        state = self._state_of(max(rows) + 1)
        run = self.engine.layers if self.on_cpu else self.bilm
        outputs, last = run(x, lengths, State(state.h[:, :, rows], state.c[:, :, rows]))
        state.h[:, :, rows], state.c[:, :, rows] = last
        return outputs

    def _stateless_layers(self, x: Tensor, lengths: list[int]) -> Tensor:
        if self.on_cpu:
            return self.engine.inner_layers(x, lengths)
        outputs: Tensor = self.bilm(x, lengths)[0]
        return outputs

    def run(self, batch: list[list[str]], *, gradients: bool) -> Tensor:
        """Every layer of every token, (L + 1, N, 2P), of sentences with their bounds, longest first."""
        lengths = [len(tokens) for tokens in batch]
        if gradients:
            layers: Tensor = self.bilm(self._flat_vectors(batch, self._computed_vectors), lengths)[0]
            return layers
        with torch.inference_mode():
            frozen = self._stateless_layers(self._flat_vectors(batch, self._cached_vectors), lengths)
        return frozen.clone()  # a tensor that autograd may keep

    def _flat_vectors(self, batch: list[list[str]], vectors_of: Callable[[list[str]], Tensor]) -> Tensor:
        """The context-free vectors of all tokens end to end, (N, P); every distinct word is computed once."""
        words = [word for tokens in batch for word in tokens]
        places = {word: place for place, word in enumerate(dict.fromkeys(words))}
        return vectors_of(list(places))[torch.tensor([places[word] for word in words], device=self.device)]

    def _cached_vectors(self, words: list[str]) -> Tensor:
        """The vectors of distinct words, by the engine where it runs."""
        return self.engine.token_vectors(words, self.encoder.encode) if self.on_cpu else self._computed_vectors(words)

    def _computed_vectors(self, words: list[str]) -> Tensor:
        """The vectors of distinct words, by the module itself."""
        vectors: Tensor = self.bilm.tokens(*as_tensors(self.encoder.encode(words), self.device))
        return vectors

    def _state_of(self, rows: int) -> State:
        """The running state, grown with zeros to at least so many rows."""
        known = 0 if self._state is None else self._state.h.shape[2]
        if self._state is None or known < rows:
            fresh = self.bilm.zero_state(max(known, rows))
            if self._state is not None:
                fresh.h[:, :, :known], fresh.c[:, :, :known] = self._state
            self._state = fresh
        return self._state


def _build(checkpoint: Checkpoint) -> LanguageModel:
    """The module with the checkpoint's weights, which are taken over rather than copied."""
    with torch.device("meta"):
        model = LanguageModel(checkpoint.config)
    model.load_weights(checkpoint.weights)
    return model.eval().requires_grad_(False)


def usable_device(name: str | torch.device) -> torch.device:
    """The device of that name, which must be here."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"device {str(name)!r} cannot be used here: {reason}") from None
    return device


def _check_precision(precision: str, config: ModelConfig, device: torch.device) -> None:
    if precision not in get_args(Precision):
        raise ConfigError(f"unknown precision {precision!r}: known are {', '.join(get_args(Precision))}")
    if precision == "int8" and (config.cell != "lstm" or device.type != "cpu"):
        raise ConfigError("precision 'int8' is for LSTM models on a CPU")
