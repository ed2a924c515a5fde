"""From sentences to what a task's model sees: any embedders side by side, their layers mixed as the task learns to.

The layers of frozen models are computed once and kept on disk, to be read back as often as training wants them.
"""

import math
import shutil
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from hashlib import blake2b
from itertools import accumulate, chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmokit.elmo import Elmo
from elmokit.embedder import Embedder
from elmokit.embedding import ElmoEmbedding
from elmokit.errors import ConfigError
from elmokit.files import replacing, writing
from elmokit.model.dropout import Dropout
from elmokit.model.mix import ScalarMix
from elmokit.progress import SILENCE, Progress
from elmokit.tasks.task import Inputs, InputSettings, Tokens, Widths
from elmokit.tasks.whole_words import WholeWords
from elmokit.text.inputs import in_chunks

CHUNK_TOKENS = 16_384  # embedded and written at a time: what memory has to hold


class LayerCache(NamedTuple):
    """The layers of all tokens of some sentences, (N, L, D), in a file that is mapped into memory."""

    layers: NDArray[np.floating]
    starts: dict[Tokens, int]

    def read(self, sentences: Sequence[Tokens]) -> NDArray[np.float32]:
        """The layers of sentences, end to end, (L, N, D)."""
        parts = [self.layers[(start := self.starts[tokens]) : start + len(tokens)] for tokens in sentences]
        return np.concatenate(parts, dtype=np.float32, casting="same_kind").swapaxes(0, 1)


def open_cache(
    folder: Path,
    embedder: Embedder,
    sentences: Iterable[Tokens],
    *,
    identity: str,
    dtype: str,
    name: str = "a model",
    progress: Progress = SILENCE,
) -> LayerCache | None:
    """The cache of an embedder's layers of these sentences, made if need be; none where the disk has no room for it.

    `identity` tells the embedder from others, `name` is for messages. As much again of the disk is left free.
    """
    distinct = list(dict.fromkeys(sentences))
    hashed = blake2b(repr((identity, dtype)).encode(), digest_size=16)
    for sentence in distinct:
        hashed.update(repr(sentence).encode("utf-8", "surrogatepass"))
    path = folder / f"{hashed.hexdigest()}.{dtype}"
    *starts, tokens = accumulate(map(len, distinct), initial=0)
    shape = (tokens, embedder.layer_count, embedder.width)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    with writing(path):
        if not path.exists() or path.stat().st_size != size:
            there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
            if shutil.disk_usage(there).free <= 2 * size:
                lacking = f"{folder} lacks room for {size / 1e6:,.0f} MB of layers"
                progress.message(f"{name}: {lacking}: they are computed every epoch")
                return None
            progress.message(f"{name}: layers are computed once and kept in {folder}, {size / 1e6:,.0f} MB")
            folder.mkdir(parents=True, exist_ok=True)
            _write_layers(path, embedder, distinct, dtype, progress)
        layers = np.memmap(path, dtype, "r", shape=shape) if tokens else np.zeros(shape)
    return LayerCache(layers, dict(zip(distinct, starts, strict=True)))


def _write_layers(path: Path, embedder: Embedder, sentences: list[Tokens], dtype: str, progress: Progress) -> None:
    done, total = 0, sum(map(len, sentences))
    with replacing(path) as partial, partial.open("wb") as file:
        for chunk in in_chunks(map(list, sentences), CHUNK_TOKENS):
            for layers in embedder.embed(chunk, layers="all"):  # (L, T, D)
                file.write(layers.swapaxes(0, 1).astype(dtype).tobytes())
            done += sum(map(len, chunk))
            progress.update("computing layers", done, total, unit="tokens")


class MixReport(msgspec.Struct, frozen=True):
    """What one mix has learned."""

    embedder: int
    """Its number among the embedders."""
    place: str
    """"input" or "output"."""
    weights: list[float]
    """What each layer counts for; learned ones add up to 1, after the 1 of the static part where there is one."""
    gamma: float


class FrozenSource(nn.Module):
    """An embedder that stays as it is; its layers come from the cache, if they are there."""

    def __init__(self, embedder: Embedder, settings: InputSettings, static: Embedder | None = None) -> None:
        super().__init__()
        self.embedder, self.static = embedder, static
        self.cache: LayerCache | None = None
        mixed = embedder.layer_count > 1 and settings.mix != "apart"
        count, options = _mix_options(embedder, settings) if mixed else (0, {})
        widths = None if static is None else (static.width, embedder.width)
        self.mixes = nn.ModuleList(ScalarMix(embedder.layer_count, widths=widths, **options) for _ in range(count))
        self.parts = (1 if mixed else embedder.layer_count, embedder.width)

    def forward(self, sentences: Sequence[Tokens]) -> list[Tensor]:
        """Each mix of all tokens end to end, (N, D); of one layer, or of layers apart, they themselves."""
        if self.cache is not None and all(sentence in self.cache.starts for sentence in sentences):
            read = self.cache.read(sentences)
        else:
            distinct = list(dict.fromkeys(sentences))  # many questions may be asked about one text
            found = dict(zip(distinct, self.embedder.embed(distinct, layers="all"), strict=True))
            read = np.concatenate([found[sentence] for sentence in sentences], axis=1)
        layers, static = torch.from_numpy(read), None  # (L, N, D)
        if self.static is not None:
            static = torch.from_numpy(np.concatenate(self.static.embed(sentences, layers="top")))  # (N, E)
        return [mix(layers, static) for mix in self.mixes] or [layers.transpose(0, 1).flatten(1)]


class TunedSource(nn.Module):
    """A model whose own weights learn too: those of a copy, for it may serve others."""

    def __init__(self, embedder: Embedder, settings: InputSettings, static: Embedder | None = None) -> None:
        super().__init__()
        if settings.mix == "apart":
            raise ConfigError("layers that stand side by side, mix 'apart', are for frozen models: trainable 'mix'")
        if not isinstance(embedder, Elmo):
            raise ConfigError(f"of all embedders only an ELMo model can learn itself, not a {type(embedder).__name__}")
        count, options = _mix_options(embedder, settings)
        options |= {"mixes": count, "dropout": 0.0, "trainable": settings.trainable, "static": static}
        self.layer = ElmoEmbedding(deepcopy(embedder), **options)
        self.parts = (1, embedder.width)
        self.trainable = settings.trainable

    @property
    def mixes(self) -> nn.ModuleList:
        return self.layer.mixes

    def forward(self, sentences: Sequence[Tokens]) -> list[Tensor]:
        """Each mix of all tokens end to end, (N, D)."""
        *mixed, mask = self.layer(sentences)
        return [vectors[mask] for vectors in mixed]

    def stages(self) -> list[list[nn.Parameter]]:
        """The weights that may learn, the top layer's first, the token encoder's last."""
        bilm = self.layer.bilm
        levels = zip(reversed(bilm.forward_layers), reversed(bilm.backward_layers), strict=True)
        stages = [[*forward.parameters(), *backward.parameters()] for forward, backward in levels]
        return [*stages, list(bilm.tokens.parameters())] if self.trainable == "all" else stages[:1]


class InputLayer(nn.Module):
    """Sentences → padded vectors: the embedders' mixes side by side, with dropout."""

    sources: Any  # a ModuleList of the two kinds of sources

    def __init__(self, embedders: Sequence[Embedder], settings: InputSettings) -> None:
        super().__init__()
        if not embedders:
            raise ConfigError("a task needs at least one embedder: a model, static vectors or both")
        self.settings = settings
        if settings.whole_words == "yes":
            embedders = [WholeWords(one) if isinstance(one, Elmo) else one for one in embedders]
        static = _static_part(embedders) if settings.mix == "static" else None
        self.numbers = [number for number, one in enumerate(embedders) if one is not static]
        sources = ((embedders[number], settings, static) for number in self.numbers)
        self.sources = nn.ModuleList(
            FrozenSource(*source) if settings.trainable == "mix" or source[0].layer_count == 1 else TunedSource(*source)
            for source in sources
        )
        if settings.trainable != "mix" and not self.stages():
            raise ConfigError(f"trainable is {settings.trainable!r}: there is no model of many layers to be trained")
        self.dropout = Dropout(settings.input_dropout)

    @property
    def widths(self) -> Widths:
        parts = tuple(source.parts for source in self.sources)
        seconds = sum(source.parts[1] for source in self.sources if len(source.mixes) > 1)
        return Widths(sum(layers * width for layers, width in parts), seconds, parts)

    def forward(self, sentences: Sequence[Tokens]) -> Inputs:
        """The vectors of sentences in rows, with what the second mixes give beside them."""
        lengths = torch.tensor([len(tokens) for tokens in sentences])
        mask = torch.arange(max(1, int(lengths.max()))) < lengths[:, None]  # (S, T)
        found = [source(sentences) for source in self.sources]
        firsts = [mixed[0] for mixed in found]
        seconds = list(chain.from_iterable(mixed[1:] for mixed in found))
        return Inputs(self._padded(firsts, mask), mask, self._padded(seconds, mask) if seconds else None)

    def _padded(self, parts: list[Tensor], mask: Tensor) -> Tensor:
        flat = self.dropout(torch.cat(parts, dim=-1))  # (N, D)
        padded: Tensor = flat.new_zeros(*mask.shape, flat.shape[1])  # (S, T, D)
        padded[mask] = flat
        return padded

    def penalty(self) -> Tensor:
        """λ Σ w² of all mixes."""
        squares = [mix.weights.square().sum() for _, _, mix in self._mixes() if mix.weights is not None]
        return self.settings.mix_penalty * torch.stack(squares).sum() if squares else torch.zeros(())

    def stages(self) -> list[list[nn.Parameter]]:
        """The embedders' own weights that may learn, from the top down."""
        each = [source.stages() for source in self.sources if isinstance(source, TunedSource)]
        return [list(chain.from_iterable(levels)) for levels in zip_longest(*each, fillvalue=())]

    def unfreeze(self, epoch: int) -> None:
        """Let learn what may by now: another layer after every so many epochs, from the top down."""
        for depth, stage in enumerate(self.stages(), 1):
            for weight in stage:
                weight.requires_grad_(epoch >= depth * self.settings.unfreeze_epochs)

    def cacheable(self) -> dict[int, FrozenSource]:
        """The sources worth a cache, by their numbers: static vectors are looked up as fast as they are read back."""
        numbered = zip(self.numbers, self.sources, strict=True)
        frozen = {n: source for n, source in numbered if isinstance(source, FrozenSource)}
        return {number: source for number, source in frozen.items() if source.embedder.layer_count > 1}

    def mix_reports(self) -> list[MixReport]:
        return [MixReport(n, place, mix.layer_weights().tolist(), mix.gamma.item()) for n, place, mix in self._mixes()]

    def _mixes(self) -> Iterator[tuple[int, str, Any]]:
        for number, source in zip(self.numbers, self.sources, strict=True):
            for place, mix in zip(("input", "output"), source.mixes, strict=False):
                yield number, place, mix


def _static_part(embedders: Sequence[Embedder]) -> Embedder | None:
    """E(x) of the mix E(x) + Σ s·h: the static vectors, or layer 0 where there are none."""
    static = [one for one in embedders if one.layer_count == 1]
    if len(static) > 1:
        raise ConfigError(f"the static mix takes one set of static vectors: {len(static)} were given")
    if len(static) == len(embedders):
        raise ConfigError("the static mix adds layers to static vectors: a model of several layers is needed too")
    return static[0] if static else None


def _mix_options(embedder: Embedder, settings: InputSettings) -> tuple[int, dict[str, Any]]:
    """How many mixes, and what they are made with."""
    layers = embedder.layer_count
    fixed = [1 / layers] * layers if settings.mix == "average" else settings.mix_weights
    kind = settings.mix if settings.mix in ("last", "static") else "learned"
    return 1 + settings.output_mix, {"kind": kind, "fixed": fixed}
