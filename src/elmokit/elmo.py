"""Class Elmo: load · embed · vector · similarity · predictions · save · push_to_hub."""

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmokit.answers import html_table
from elmokit.checkpoints import read_checkpoint, write_checkpoint
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.config import check_at_least, config_to_dict
from elmokit.embedder import (
    Layers,
    LogLikelihoods,
    Pooling,
    Predictions,
    Sentence,
    TokenVectors,
    Vectors,
    choose_layers,
    pooled,
)
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.hub import fetch, local_path
from elmokit.hub.huggingface import push
from elmokit.model.bilm import State
from elmokit.model.device import usable_device
from elmokit.model.engine import Engine
from elmokit.model.language_model import LanguageModel
from elmokit.model.linear import Precision
from elmokit.model.softmax import Softmax
from elmokit.model.threads import side_by_side
from elmokit.model.tokens import as_tensors
from elmokit.progress import SILENCE, Progress
from elmokit.progress.drawing import shown
from elmokit.text.brackets import has_brackets, read_brackets
from elmokit.text.inputs import batch_by_tokens, in_chunks, in_original_order, looks_flat, tokenized
from elmokit.text.tokenizers import get_tokenizer
from elmokit.text.vocabulary import BOS, EOS, Vocabulary
from elmokit.text.words import WordEncoder

T = TypeVar("T")
BOUNDS = 2  # every sentence stands between <S> and </S>
CHUNK_BATCHES = 4  # a stream is sorted by length within so many batches


def load(
    source: str | Path,
    *,
    options: str | Path | None = None,
    precision: Precision = "fp32",
    device: str | torch.device = "cpu",
    stateful: bool = False,
    batch_tokens: int = 4096,
    token_cache_mb: float = 64,
    reproducible: bool = False,
    allow_nonfinite: bool = False,
) -> "Elmo":
    """Load a model by name ("en", "allenai/small"), or in any supported format from a folder, a file or an address.

    Addresses are hf://owner/name and https://…; `elmokit models` lists names. AllenAI's `options` are found beside the
    weights unless they are named.

    A few sentences run by another, faster order of additions than many: a sentence's vectors alone and among many agree
    to 4e-6 in fp32. With `reproducible=True` all run alike, and they are the same to the bit.
    """
    if not str(source).strip():
        known = 'load("en"), or the path of a folder or file, or hf://owner/name'
        raise ConfigError(f'load("") names no model: write {known}')
    settings: dict[str, Any] = {"precision": precision, "device": device, "stateful": stateful}
    settings |= {"batch_tokens": batch_tokens, "token_cache_mb": token_cache_mb, "reproducible": reproducible}
    described = None if options is None else fetch(options)
    checkpoint = read_checkpoint(local_path(source), options=described, allow_nonfinite=allow_nonfinite)
    return Elmo(checkpoint, allow_nonfinite=allow_nonfinite, **settings)


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
        reproducible: bool = False,
        allow_nonfinite: bool = False,
    ) -> None:
        self.stateful, self.batch_tokens, self.allow_nonfinite = stateful, batch_tokens, allow_nonfinite
        check_at_least(self, 1, "batch_tokens")
        if token_cache_mb < 0:
            raise ConfigError(f"token_cache_mb is {token_cache_mb}: it cannot be negative")
        if precision not in get_args(Precision):
            raise ConfigError(f"unknown precision {precision!r}: known are {', '.join(get_args(Precision))}")
        if precision == "int8" and (checkpoint.config.cell != "lstm" or usable_device(device).type != "cpu"):
            raise ConfigError("precision 'int8' is for LSTM models on a CPU")
        self.config, self.vocabulary, self.source = checkpoint.config, checkpoint.vocabulary, checkpoint.source
        self.prior, self.about, self.card = checkpoint.prior, checkpoint.about, checkpoint.card
        self.tokenizer = get_tokenizer(checkpoint.config.tokenizer)
        self.encoder = WordEncoder(checkpoint.config, checkpoint.vocabulary)
        with torch.device("meta"):
            self.language_model = LanguageModel(checkpoint.config)
        self.language_model.load_weights(checkpoint.weights)  # which are taken over rather than copied
        self.language_model.eval().requires_grad_(False).to(usable_device(device))
        self.bilm = self.language_model.bilm
        self.engine = Engine(self.bilm, precision, token_cache_mb=token_cache_mb, reproducible=reproducible)
        self._state: State | None = None
        self._digest: tuple[list[tuple[int, int]], str] | None = None

    def __repr__(self) -> str:
        return f"Elmo({self.source!r}, {', '.join(f'{name}={value}' for name, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        return html_table(self._facts().items(), caption=f"Elmo, {self.source}")

    def _facts(self) -> dict[str, object]:
        words = "none" if self.vocabulary is None else f"{len(self.vocabulary):,} words"
        facts: dict[str, object] = {"layers": self.layer_count, "width": self.width, "vocabulary": words}
        return facts | {"tokenizer": repr(self.config.tokenizer), "precision": repr(self.engine.precision)}

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
        return self.bilm.stacks[0][0].weight.device

    @property
    def on_cpu(self) -> bool:
        """Whether the engine runs; elsewhere the module itself does."""
        return self.device.type == "cpu"

    @property
    def digest(self) -> str:
        """A hash of the weights, and of the config and vocabulary as far as vectors depend on them."""
        versions = self.engine.versions
        if self._digest is None or self._digest[0] != versions:
            settings = config_to_dict(replace(self.config, softmax=None, tokenizer="words"))
            del settings["cloze"]
            words = self.vocabulary.words if self.config.words and self.vocabulary else None
            hashed = blake2b(json.dumps([settings, words], sort_keys=True).encode(), digest_size=32)
            for weight in self.bilm.state_dict().values():
                hashed.update(weight.cpu().contiguous().numpy())
            self._digest = versions, hashed.hexdigest()
        return self._digest[1]

    def tokens(self, text: Sentence) -> list[str]:
        """The tokens of one sentence, those that `embed` gives vectors for."""
        return self.tokenize([text])[0]

    def tokenize(self, sentences: Iterable[Sentence]) -> list[list[str]]:
        """The tokens that `embed` gives vectors for, sentence by sentence."""
        return list(tokenized(sentences, self.tokenizer))

    def embed(
        self, sentences: Iterable[Sentence], *, layers: Layers = "average", progress: Progress | bool = False
    ) -> list[Vectors]:
        """One array per sentence, (tokens, width), or (layers, tokens, width) for `layers="all"`.

        A sentence is a list of tokens, or a str that the model's own tokenizer splits; a str in place of the list of
        sentences is one sentence, and gives a list of one array. `layers` is "average", "top", "all" or a layer's
        number, 0 being the context-free token vectors. With `stateful=True` the call is one batch: sentence k goes on
        from where sentence k of the last call ended, as in the original code.
        """
        tokens = self._checked_tokens(sentences)
        with shown(progress, "embed") as report:
            return list(self._embedded([tokens], layers, report, len(tokens)))

    def embed_tokens(
        self, sentences: Iterable[Sentence], *, layers: Layers = "average", progress: Progress | bool = False
    ) -> list[TokenVectors]:
        """What `embed` gives, each array with its tokens: a table in pandas and in notebooks."""
        tokens = self._checked_tokens(sentences)
        return [*map(TokenVectors, tokens, self.embed(tokens, layers=layers, progress=progress))]

    def embed_stream(self, sentences: Iterable[Sentence], *, layers: Layers = "average") -> Iterator[Vectors]:
        """What `embed` gives, in order, in memory that does not grow with the number of sentences.

        With `stateful=True` every sentence is a batch of its own and goes on from where the last one ended.
        """
        return self._embedded(self._chunks(sentences, tokens=1 if self.stateful else None), layers)

    def sentence_vectors(
        self,
        sentences: Iterable[Sentence],
        *,
        pooling: Pooling = "mean",
        layers: Layers = "average",
        progress: Progress | bool = False,
    ) -> Vectors:
        """One vector per sentence, (sentences, width): the mean or maximum of its tokens; zeros for an empty one."""
        if layers == "all":
            raise ConfigError("sentence vectors are made of one layer or mix: 'all' is not one")
        total = len(sentences) if isinstance(sentences, Sized) and not isinstance(sentences, str) else None
        chunks = self._chunks(sentences, tokens=1 if self.stateful else None)
        with shown(progress, "embed") as report:
            return pooled(self._embedded(chunks, layers, report, total), pooling, self.width)

    def vector(self, text: str, *, layers: Layers = "average") -> Vectors:
        """The vector, (width,), of the word in brackets: "He sat on the [bank] of the river"."""
        found = read_brackets(text, self.tokenizer)
        [vectors] = self.embed([found.context.words], layers=layers)
        return vectors[..., found.position, :].copy()

    def similarity(self, one: Sentence, other: Sentence, *, layers: Layers = "average") -> float:
        """The cosine of two texts: of the words in brackets in their sentences, or of the means of whole sentences."""
        if layers == "all":
            raise ConfigError("a similarity is that of one layer or mix: 'all' is not one")
        vectors = []
        for text in (one, other):
            if isinstance(text, str) and has_brackets(text):
                vectors.append(self.vector(text, layers=layers))
            else:
                vectors.append(self.sentence_vectors([text], layers=layers)[0])
            if not vectors[-1].any():
                raise DataError(f"{text!r} has no tokens that could be compared")
        left, right = (vector.astype(np.float64) for vector in vectors)
        return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))

    def predictions(self, sentence: Sentence, *, positions: Iterable[int] | None = None) -> Predictions:
        """What the model expects in the place of each token, or of those at these positions, which it does not see."""
        softmax, _ = self.output_layer()
        tokens = self.tokens(sentence)
        chosen = list(range(len(tokens)) if positions is None else positions)
        if wrong := [position for position in chosen if position not in range(len(tokens))]:
            raise DataError(f"there is no token {wrong[0]}: the sentence has {len(tokens)}, counted from 0")
        forward, backward = self.run([[BOS, *tokens, EOS]], gradients=False)[-1].chunk(2, dim=-1)  # (T + 2, P)
        before = torch.tensor(chosen, dtype=torch.long, device=self.device)  # forward, <S> is token 0
        found = [softmax.log_probabilities(part) for part in (forward[before], backward[before + BOUNDS])]
        return Predictions([tokens[position] for position in chosen], *(part.cpu().numpy() for part in found))

    def log_likelihoods(self, sentences: Iterable[Sentence], *, entropies: bool = False) -> Iterator[LogLikelihoods]:
        """How probable each token of each sentence is, in order and in bounded memory; `predictions` has all words."""
        self.output_layer()
        return self._batched(self._chunks(sentences), partial(self._likelihoods_of_batch, entropies=entropies))

    def output_layer(self) -> tuple[Softmax, Vocabulary]:
        """What predicts words, and these words; a model that has none is refused."""
        if self.language_model.softmax is None or self.vocabulary is None:
            missing = "the model has no softmax, so it cannot predict words: train one, or `elmokit finetune` it"
            raise CheckpointError(f"{self.source}: {missing}")
        return self.language_model.softmax, self.vocabulary

    def reset_state(self) -> None:
        """Forget what earlier calls left behind; of use with `stateful=True` alone."""
        self._state = None

    def checkpoint(self) -> Checkpoint:
        """The model as it stands, to be written in any format."""
        weights = {name: weight.detach().cpu() for name, weight in self.language_model.weights().items()}
        return Checkpoint(self.config, weights, self.vocabulary, self.source, self.prior, self.about, self.card)

    def save(self, folder: str | Path, *, half: bool = False, overwrite: bool = False) -> None:
        """Write the model in elmokit's own format; `half` stores 16-bit numbers."""
        write_checkpoint(self.checkpoint(), Path(folder), half=half, overwrite=overwrite)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        half: bool = False,
        revision: str | None = None,
        message: str = "Push a model by elmokit",
        token: str | None = None,
    ) -> str:
        """Put the model and its card into a repository of the Hugging Face Hub; the address to load it by.

        The repository, owner/name, is made if there is none. The token is the one given, $HF_TOKEN, or the one that
        `hf auth login` keeps. `half` stores 16-bit numbers.
        """
        settings: dict[str, Any] = {"private": private, "half": half, "revision": revision}
        return push(self.checkpoint(), repo_id, message=message, token=token, **settings)

    def _checked_tokens(self, sentences: Iterable[Sentence]) -> list[list[str]]:
        """The tokens of all sentences; a caller who seems to mean one sentence is warned."""
        if looks_flat(sentences, self.tokenizer):
            told = "every sentence is one word: if they are one sentence, pass it as [tokens]"
            warnings.warn(told, stacklevel=3)
        return self.tokenize(sentences)

    def _chunks(self, sentences: Iterable[Sentence], *, tokens: int | None = None) -> Iterator[list[list[str]]]:
        """The sentences' tokens, as many at a time as are sorted by length together."""
        return in_chunks(tokenized(sentences, self.tokenizer), tokens or CHUNK_BATCHES * self.batch_tokens)

    def _batched(
        self,
        chunks: Iterable[list[list[str]]],
        compute: Callable[[list[list[str]], list[int]], list[T]],
        progress: Progress = SILENCE,
        total: int | None = None,
    ) -> Iterator[T]:
        """What is computed of each sentence, from batches of them with their bounds, longest first, and their rows."""
        done = 0
        for chunk in chunks:
            batches, results = batch_by_tokens([len(tokens) + BOUNDS for tokens in chunk], self.batch_tokens), []
            for batch in batches:
                results.append(compute([[BOS, *chunk[row], EOS] for row in batch], batch))
                done += len(batch)
                progress.update("embedding", done, total, unit="sentences")
            yield from in_original_order(batches, results)

    def _embedded(
        self,
        chunks: Iterable[list[list[str]]],
        layers: Layers,
        progress: Progress = SILENCE,
        total: int | None = None,
    ) -> Iterator[Vectors]:
        known = layers in ("average", "top", "all") if isinstance(layers, str) else layers in range(self.layer_count)
        if not known or isinstance(layers, bool):
            raise ConfigError(
                f"unknown layers {layers!r}: this model has 'average', 'top', 'all' and 0 to {self.layer_count - 1}"
            )
        return self._batched(chunks, partial(self._vectors_of_batch, layers=layers), progress, total)

    def _vectors_of_batch(self, batch: list[list[str]], rows: list[int], *, layers: Layers) -> list[Vectors]:
        lengths = [len(tokens) for tokens in batch]

        def compute() -> Tensor:
            x = self._flat_vectors(batch)
            if layers == 0 and not self.stateful:
                return x.repeat(1, 2)
            run = partial(self._stateful_layers, rows=rows) if self.stateful else self._stateless_layers
            chosen: Tensor = choose_layers(run(x, lengths), layers)  # (N, 2P) or (L + 1, N, 2P)
            return chosen

        outputs = self._alone(compute)
        found, ends = outputs.cpu().numpy(), accumulate(lengths)
        return [found[..., end - length + 1 : end - 1, :].copy() for length, end in zip(lengths, ends, strict=True)]

    def _likelihoods_of_batch(
        self, batch: list[list[str]], _rows: list[int], *, entropies: bool
    ) -> list[LogLikelihoods]:
        _, vocabulary = self.output_layer()
        ids = torch.from_numpy(vocabulary.encode([word for tokens in batch for word in tokens])).to(self.device)
        top, lengths = self.run(batch, gradients=False)[-1], [len(tokens) for tokens in batch]  # (N, 2P)
        more = self.language_model.entropies(top, lengths) if entropies else ()
        found = *self.language_model.log_likelihoods(top, ids, lengths), *more
        ends = np.cumsum([length - 1 for length in lengths])[:-1]
        parts = zip(batch, *(np.split(part.cpu().numpy(), ends) for part in found), strict=True)
        return [LogLikelihoods(tokens[1:-1], *rest) for tokens, *rest in parts]

    def _stateful_layers(self, x: Tensor, lengths: list[int], rows: list[int]) -> Tensor:
        run = self.engine.layers if self.on_cpu else self.bilm
        with self.engine.lock:  # one call after the other
            kept = self._state or self.bilm.zero_state(0)
            missing = max(0, max(rows) + 1 - kept.h.shape[2])
            self._state = state = State(*(F.pad(part, (0, 0, 0, missing)) for part in kept))
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
            layers: Tensor = self.bilm(self._flat_vectors(batch, gradients=True), lengths)[0]
            return layers
        frozen = self._alone(lambda: self._stateless_layers(self._flat_vectors(batch), lengths))
        return frozen.clone()  # a tensor that autograd may keep

    def _alone(self, compute: Callable[[], Tensor]) -> Tensor:
        """What is computed without gradients, on the engine's own threads: torch's would wait on cores that it needs.

        Weights may be numbers and yet so large that their products are none.
        """

        def checked() -> Tensor:
            outputs = compute()
            if not self.allow_nonfinite and not outputs.sum().isfinite() and not outputs.isfinite().all():
                told = "its vectors are not finite: weights are far too large. Is it damaged?"
                raise CheckpointError(f"{self.source}: {told}")
            return outputs

        if self.on_cpu:
            return side_by_side([checked])[0]
        with torch.inference_mode():
            return checked()

    def _flat_vectors(self, batch: list[list[str]], *, gradients: bool = False) -> Tensor:
        """The context-free vectors of all tokens end to end, (N, P); every distinct word is computed once."""
        words = [word for tokens in batch for word in tokens]
        indices = {word: index for index, word in enumerate(dict.fromkeys(words))}
        if self.on_cpu and not gradients:
            vectors = self.engine.token_vectors(list(indices), self.encoder.encode)
        else:
            vectors = self.bilm.tokens(*as_tensors(self.encoder.encode(list(indices)), self.device))
        return vectors[torch.tensor([indices[word] for word in words], device=self.device)]
