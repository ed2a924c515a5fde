"""bilm-tf's names. What was an op to be run in a session is the value itself here, a torch tensor."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.checkpoints.allenai import read_token_vectors
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.files import parsing, replacing, writing
from elmokit.hdf5 import NewHdf5
from elmokit.hub import fetch
from elmokit.integrations.allennlp_bilm import (
    _ElmoBiLm,
    _ElmoCharacterEncoder,
    read_elmo,
    remove_sentence_boundaries,
)
from elmokit.integrations.allennlp_ids import batch_to_ids, token_lists
from elmokit.model.mix import MixKind, ScalarMix
from elmokit.text.vocabulary import BOS, EOS, read_vocabulary

WORDS_AT_A_TIME = 4096
Ids = Tensor | NDArray[np.integer]


class Batcher:
    """Sentences → character ids, (B, T + 2, C), with <S> and </S>; 0 where there is no token.

    The file is not read: characters need no list of words.
    """

    def __init__(self, lm_vocab_file: str | Path | None, max_token_length: int) -> None:  # noqa: ARG002
        self._max_token_length = max_token_length

    def batch_sentences(self, sentences: Iterable[Sequence[str]]) -> NDArray[np.int64]:
        ids: NDArray[np.int64] = batch_to_ids(_bounded(sentences), max_characters=self._max_token_length).numpy()
        return ids


class TokenBatcher:
    """Sentences → the words' numbers in a vocabulary, (B, T + 2), from 1 on; 0 where there is no token."""

    def __init__(self, lm_vocab_file: str | Path) -> None:
        self._vocabulary = read_vocabulary(Path(lm_vocab_file))
        if BOS not in self._vocabulary or EOS not in self._vocabulary:
            raise DataError(f"{lm_vocab_file}: {BOS} and {EOS} are not among its words: add them")

    def batch_sentences(self, sentences: Iterable[Sequence[str]]) -> NDArray[np.int64]:
        """A word that the vocabulary lacks is <UNK>, or an error where it has none."""
        rows = [torch.from_numpy(self._vocabulary.encode(tokens) + 1) for tokens in _bounded(sentences)]
        ids: NDArray[np.int64] = nn.utils.rnn.pad_sequence(rows, batch_first=True).numpy()
        return ids


def _bounded(sentences: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[BOS, *tokens, EOS] for tokens in token_lists(sentences)]


class BidirectionalLanguageModel(nn.Module):
    """Ids of a `Batcher` → `lm_embeddings`, (B, L, T, D), `lengths`, (B,), and `mask`, (B, T), without bounds.

    `token_embeddings`, (B, T + 2, P), have them. With `use_character_inputs=False` ids are those of a `TokenBatcher`,
    and `embedding_weight_file` is one of `dump_token_embeddings`. What learns are `mixes`, which `weight_layers` adds,
    by name. If `stateful`, row k of a batch goes on from where row k of the last one ended, as in bilm-tf.
    """

    def __init__(
        self,
        options_file: str | Path,
        weight_file: str | Path,
        use_character_inputs: bool = True,
        embedding_weight_file: str | Path | None = None,
        max_batch_size: int = 128,  # noqa: ARG002
        *,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        self.bilm, self.mixes = _ElmoBiLm(options_file, weight_file, stateful=stateful), nn.ModuleDict()
        width = self.bilm.elmo.config.projection
        self.words = None if use_character_inputs else _read_words(embedding_weight_file, width)

    def forward(self, ids_placeholder: Ids) -> dict[str, Any]:
        """What the ids are, here and now: there is no placeholder."""
        ids = torch.as_tensor(ids_placeholder, dtype=torch.long, device=self.bilm.elmo.device)
        tokens = self._tokens(ids)
        output = self.bilm.activations(tokens["token_embedding"], tokens["mask"])
        mask = output["mask"].bool()
        layers = [remove_sentence_boundaries(layer, mask)[0] for layer in output["activations"]]
        found = {"lm_embeddings": torch.stack(layers, dim=1), "lengths": mask[:, 2:].sum(dim=1), "mask": mask[:, 2:]}
        return {**found, "token_embeddings": tokens["token_embedding"], "mixes": self.mixes}

    def _tokens(self, ids: Tensor) -> dict[str, Tensor]:
        """Context-free vectors and where they stand, with bounds."""
        if self.words is not None:
            if ids.numel() and int(ids.max()) >= self.words.num_embeddings:
                raise DataError(f"there is no word {int(ids.max())}: the file has {self.words.num_embeddings - 1}")
            return {"token_embedding": self.words(ids), "mask": ids > 0}
        first = batch_to_ids([[BOS]], max_characters=ids.shape[-1]).to(ids.device)
        if not torch.equal(ids[:, :1], first.expand(len(ids), -1, -1)):
            raise DataError(f"a sentence does not begin with {BOS}: make the ids with Batcher")
        inner, _ = remove_sentence_boundaries(ids, ids.any(dim=-1).long())
        tokens: dict[str, Tensor] = self.bilm._token_embedder(inner)
        return tokens


def _read_words(path: str | Path | None, width: int) -> nn.Embedding:
    """The vectors of a vocabulary, with that of padding before them."""
    if path is None:
        raise ConfigError("without characters the vectors of tokens are needed: give embedding_weight_file")
    vectors = read_token_vectors(fetch(path))
    if vectors.ndim != 2 or vectors.shape[1] != width:
        found = f"its vectors are {tuple(vectors.shape)}, those of the model {width} wide"
        raise CheckpointError(f"{path}: {found}. Is it from another model?")
    words: nn.Embedding = nn.Embedding.from_pretrained(F.pad(vectors, (0, 0, 1, 0)), padding_idx=0)
    return words


def weight_layers(
    name: str,
    bilm_ops: dict[str, Any],
    l2_coef: float | None = None,
    use_top_only: bool = False,
    do_layer_norm: bool = False,
) -> dict[str, Tensor]:
    """`weighted_op`, the mix of that name, (B, T, D), and `regularization_op`, l2_coef * Σ w².

    The first call makes the mix and keeps it in the model's `mixes`; later calls, with other ids, share its weights.
    """
    layers, mixes = bilm_ops["lm_embeddings"].transpose(0, 1), bilm_ops["mixes"]  # (L, B, T, D)
    kind: MixKind = "last" if use_top_only else "learned"
    if name not in mixes:
        mixes[name] = ScalarMix(len(layers), kind=kind, layer_norm=do_layer_norm).to(layers.device)
    mix: ScalarMix = mixes[name]
    if (mix.kind, mix.layer_norm) != (kind, do_layer_norm):
        raise ConfigError(f"the mix {name!r} was made with other settings: give this one another name")
    weights = mix.gamma.new_zeros(0) if mix.weights is None else mix.weights
    return {"weighted_op": mix(layers), "regularization_op": (l2_coef or 0.0) * weights.square().sum()}


def dump_token_embeddings(
    vocab_file: str | Path, options_file: str | Path, weight_file: str | Path, outfile: str | Path
) -> None:
    """Write the context-free vectors of a vocabulary, `embedding`, (V, P), for `BidirectionalLanguageModel`."""
    words, encoder = read_vocabulary(Path(vocab_file)).words, _ElmoCharacterEncoder(options_file, weight_file)
    with _new_hdf5(Path(outfile)) as hdf5:
        table = hdf5.file.create_dataset("embedding", (len(words), encoder.get_output_dim()), "float32")
        for start in range(0, len(words), WORDS_AT_A_TIME):
            part = words[start : start + WORDS_AT_A_TIME]
            table[start : start + len(part)] = encoder.encode(part).numpy()
            hdf5.check()


def dump_bilm_embeddings(
    vocab_file: str | Path | None,  # noqa: ARG001
    dataset_file: str | Path,
    options_file: str | Path,
    weight_file: str | Path,
    outfile: str | Path,
) -> None:
    """Write all layers, (L, T, D), of a file with one sentence per line, tokens between blanks: "0", "1", …"""
    path, elmo = Path(dataset_file), read_elmo(options_file, weight_file)
    with parsing(path, "text in UTF-8", kind=DataError, remedy="Is it one?"), path.open(encoding="utf-8") as lines:
        sentences = [line.split() for line in lines]
    with _new_hdf5(Path(outfile)) as hdf5:
        for number, layers in enumerate(elmo.embed_stream(sentences, layers="all")):
            hdf5.file.create_dataset(str(number), data=layers)
            hdf5.check()


@contextmanager
def _new_hdf5(path: Path) -> Iterator[NewHdf5]:
    with replacing(path) as partial, writing(path), NewHdf5(partial) as hdf5:
        yield hdf5
