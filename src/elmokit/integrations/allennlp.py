"""AllenNLP's ELMo by its own names, wherever in AllenNLP they stood.

Signatures, shapes, defaults and the names in state dicts are those of AllenNLP 0.9; the arithmetic is elmokit's. One
default differs: nothing is carried over from call to call unless `stateful=True` is given, which AllenNLP always does.
Only `_ElmoBiLm`, whose numbers people compare with stored ones, carries its state as it always did.
"""

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, get_args

import torch
from torch import Tensor, nn

from elmokit.embedder import Vectors, choose_layers
from elmokit.errors import ConfigError, DataError
from elmokit.files import replacing, writing
from elmokit.hdf5 import NewHdf5
from elmokit.integrations.allennlp_bilm import _ElmoBiLm, _ElmoCharacterEncoder, remove_sentence_boundaries
from elmokit.integrations.allennlp_ids import ELMoCharacterMapper, ELMoTokenCharactersIndexer, batch_to_ids

__all__ = [
    "DEFAULT_OPTIONS_FILE",
    "DEFAULT_WEIGHT_FILE",
    "ELMoCharacterMapper",
    "ELMoTokenCharactersIndexer",
    "Elmo",
    "ElmoEmbedder",
    "ElmoTokenEmbedder",
    "ScalarMix",
    "_ElmoBiLm",
    "_ElmoCharacterEncoder",
    "batch_to_ids",
    "remove_sentence_boundaries",
]
SIZES = "2x4096_512_2048cnn_2xhighway"
PUBLISHED = f"https://s3-us-west-2.amazonaws.com/allennlp/models/elmo/{SIZES}/elmo_{SIZES}"
DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE = f"{PUBLISHED}_options.json", f"{PUBLISHED}_weights.hdf5"
DEFAULT_BATCH_SIZE = 64
EPSILON = 1e-12
OutputFormat = Literal["all", "top", "average"]


class ScalarMix(nn.Module):
    """gamma * sum_j softmax(w)_j * layer_j; with `do_layer_norm` each layer by one mean and variance of the batch."""

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        weights = [0.0] * mixture_size if initial_scalar_parameters is None else initial_scalar_parameters
        if len(weights) != mixture_size:
            raise ConfigError(f"a mix of {mixture_size} layers has as many parameters, not {len(weights)}")
        self.mixture_size, self.do_layer_norm = mixture_size, do_layer_norm
        self.scalar_parameters = nn.ParameterList(
            nn.Parameter(torch.tensor([float(weight)]), requires_grad=trainable) for weight in weights
        )
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    def forward(self, tensors: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """One tensor, (B, T, D), of as many as are mixed; the mask, (B, T), counts for the layer norm alone."""
        if len(tensors) != self.mixture_size:
            raise ConfigError(f"this mix is made for {self.mixture_size} layers, not {len(tensors)}")
        if self.do_layer_norm:
            if mask is None:
                raise ConfigError("a mix with layer norm needs the mask")
            tensors = [_normed(tensor, mask.bool()) for tensor in tensors]
        shares = torch.cat(list(self.scalar_parameters)).softmax(dim=0)
        mixed: Tensor = self.gamma * torch.tensordot(shares, torch.stack(list(tensors)), dims=1)
        return mixed


def _normed(layer: Tensor, mask: Tensor) -> Tensor:
    """By the mean and variance of all that is not masked, so a vector depends on its batch mates."""
    variance, mean = torch.var_mean(layer[mask], correction=0)
    return (layer - mean) / torch.sqrt(variance + EPSILON)


class Elmo(nn.Module):
    """Character ids → `elmo_representations`, a list of as many mixes as asked for, (B, T, D) each, and `mask`, (B, T).

    `stateful=True` carries the state of the biLM from call to call, row by row of the batch, as AllenNLP does.
    """

    def __init__(
        self,
        options_file: str | Path | None,
        weight_file: str | Path | None,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: Sequence[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        module: Any = None,
        *,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        if num_output_representations < 1:
            raise ConfigError(f"num_output_representations is {num_output_representations}: at least one is needed")
        if (module is None) != (options_file is not None and weight_file is not None):
            raise ConfigError("either options_file and weight_file are given, or a module, with None for both files")
        if options_file is not None and weight_file is not None:
            module = _ElmoBiLm(options_file, weight_file, requires_grad, vocab_to_cache, stateful=stateful)
        self._elmo_lstm: Any = module
        self._has_cached_vocab, self._keep_sentence_boundaries = vocab_to_cache is not None, keep_sentence_boundaries
        self._dropout = nn.Dropout(dropout)
        self._scalar_mixes = [
            ScalarMix(module.num_layers, do_layer_norm, scalar_mix_parameters, scalar_mix_parameters is None)
            for _ in range(num_output_representations)
        ]
        for number, mix in enumerate(self._scalar_mixes):
            self.add_module(f"scalar_mix_{number}", mix)

    def get_output_dim(self) -> int:
        """Width of a vector."""
        return int(self._elmo_lstm.get_output_dim())

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Ids are (B, …, T, C), and with a cached vocabulary also the words' numbers in it, (B, …, T)."""
        if word_inputs is not None and not self._has_cached_vocab:
            warnings.warn("word_inputs are not read: there is no vocab_to_cache", stacklevel=2)
            word_inputs = None
        outer = inputs.shape[:-2] if word_inputs is None else word_inputs.shape[:-1]
        words = None if word_inputs is None else word_inputs.flatten(0, -2)
        output = self._elmo_lstm(inputs.flatten(0, -3), words)
        layers, mask = output["activations"], output["mask"].bool()  # each (B, T + 2, D), (B, T + 2)
        mixed = [mix(layers, mask) for mix in self._scalar_mixes]
        if not self._keep_sentence_boundaries:
            mixed = [remove_sentence_boundaries(vectors, mask)[0] for vectors in mixed]
            mask = mask[:, 2:]
        representations = [self._dropout(vectors).unflatten(0, outer) for vectors in mixed]
        return {"elmo_representations": representations, "mask": mask.long().unflatten(0, outer)}


class ElmoTokenEmbedder(nn.Module):
    """Character ids → one mix, (B, …, T, D), projected to `projection_dim` where it is given."""

    def __init__(
        self,
        options_file: str | Path = DEFAULT_OPTIONS_FILE,
        weight_file: str | Path = DEFAULT_WEIGHT_FILE,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        requires_grad: bool = False,
        projection_dim: int | None = None,
        vocab_to_cache: Sequence[str] | None = None,
        scalar_mix_parameters: Sequence[float] | None = None,
        *,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        self._elmo = Elmo(
            options_file,
            weight_file,
            1,
            requires_grad,
            do_layer_norm,
            dropout,
            vocab_to_cache,
            scalar_mix_parameters=scalar_mix_parameters,
            stateful=stateful,
        )
        self.output_dim = projection_dim or self._elmo.get_output_dim()
        self._projection = nn.Linear(self._elmo.get_output_dim(), projection_dim) if projection_dim else None

    def get_output_dim(self) -> int:
        return self.output_dim

    def forward(self, elmo_tokens: Tensor, word_inputs: Tensor | None = None) -> Tensor:
        """What `Elmo` takes."""
        vectors: Tensor = self._elmo(elmo_tokens, word_inputs)["elmo_representations"][0]
        return vectors if self._projection is None else self._projection(vectors)


class ElmoEmbedder:
    """Tokenised sentences → float32 arrays of all layers, (L, T, D)."""

    def __init__(
        self,
        options_file: str | Path = DEFAULT_OPTIONS_FILE,
        weight_file: str | Path = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
        *,
        stateful: bool = False,
    ) -> None:
        device = "cpu" if cuda_device < 0 else f"cuda:{cuda_device}"
        self.cuda_device = cuda_device
        self.elmo_bilm = _ElmoBiLm(options_file, weight_file, device=device, stateful=stateful)

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """All layers, padded, (B, L, T, D), and the mask, (B, T)."""
        ids = batch_to_ids(batch, max_characters=self.elmo_bilm._token_embedder.max_characters)
        output = self.elmo_bilm(ids.to(self.elmo_bilm.elmo.device))
        layers = [remove_sentence_boundaries(layer, output["mask"])[0] for layer in output["activations"]]
        return torch.stack(layers, dim=1), output["mask"][:, 2:]

    def embed_sentence(self, sentence: Sequence[str]) -> Vectors:
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[Vectors]:
        """The layers of each sentence, all run together."""
        layers, mask = self.batch_to_embeddings(batch)
        lengths = mask.sum(dim=1).tolist()
        return [sentence[:, :length].cpu().numpy().copy() for sentence, length in zip(layers, lengths, strict=True)]

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[Vectors]:
        waiting = iter(sentences)
        while batch := list(islice(waiting, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | Path,
        output_format: OutputFormat = "all",
        batch_size: int = DEFAULT_BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Write the vectors of a file with one sentence per line, tokens between blanks, to an HDF5 file."""
        if output_format not in get_args(OutputFormat):
            raise ConfigError(f"unknown output_format {output_format!r}: known are {', '.join(get_args(OutputFormat))}")
        sentences, path = [line.strip() for line in input_file], Path(output_file_path)
        keys = sentences if use_sentence_keys else list(map(str, range(len(sentences))))
        if blank := [number for number, sentence in enumerate(sentences, 1) if not sentence]:
            raise DataError(f"line {blank[0]} of the input is blank: take such lines out ({len(blank)} in all)")
        if len(set(keys)) < len(keys):
            raise DataError("a sentence occurs twice, so sentences cannot be keys: leave use_sentence_keys out")
        vectors = self.embed_sentences((sentence.split() for sentence in sentences), batch_size)
        with replacing(path) as partial, writing(path), NewHdf5(partial) as hdf5:
            for key, layers in zip(keys, vectors, strict=True):
                hdf5.file.create_dataset(key, data=choose_layers(layers, output_format))
                hdf5.check()
            if not forget_sentences and not use_sentence_keys:
                index = json.dumps(dict(zip(sentences, keys, strict=True)))
                hdf5.file.create_dataset("sentence_to_index", data=[index])
        input_file.close()
