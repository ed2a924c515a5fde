"""From sentences to what a task's model sees: any embedders side by side, their layers mixed as the task learns to."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from elmokit.embedder import Embedder
from elmokit.errors import ConfigError
from elmokit.model.dropout import Dropout
from elmokit.model.mix import MixKind, ScalarMix
from elmokit.tasks.cache import LayerCache
from elmokit.tasks.settings import InputSettings
from elmokit.tasks.task import Inputs, Tokens, Widths

LayerFactory = Callable[..., Any]
"""What makes a torch module of an embedder that can learn itself: `elmokit.ElmoEmbedding`."""


class MixReport(msgspec.Struct, frozen=True):
    """What one mix has learned."""

    embedder: int
    """Its number among the embedders."""
    place: str
    """"input" or "output"."""
    weights: list[float]
    """What each layer counts for; they add up to 1."""
    gamma: float


class FrozenSource(nn.Module):
    """An embedder that stays as it is; its layers come from the cache, if they are there."""

    def __init__(self, embedder: Embedder, settings: InputSettings) -> None:
        super().__init__()
        self.embedder = embedder
        self.cache: LayerCache | None = None
        mixed = embedder.layer_count > 1 and settings.mix != "apart"
        self.mixes = nn.ModuleList(_new_mix(embedder, settings) for _ in range(_mixes(settings) if mixed else 0))
        self.parts = (1 if mixed else embedder.layer_count, embedder.width)

    def forward(self, sentences: Sequence[Tokens]) -> list[Tensor]:
        """Each mix of all tokens end to end, (N, D); of one layer, or of layers apart, they themselves."""
        layers = torch.from_numpy(self._layers(sentences))  # (L, N, D)
        if len(self.mixes):
            return [mix(layers) for mix in self.mixes]
        return [layers.transpose(0, 1).flatten(1)]

    def _layers(self, sentences: Sequence[Tokens]) -> Any:
        if self.cache is not None and all(sentence in self.cache for sentence in sentences):
            return self.cache.read(sentences)
        distinct = list(dict.fromkeys(sentences))  # many questions may be asked about one text
        layers = dict(zip(distinct, self.embedder.embed(distinct, layers="all"), strict=True))
        return np.concatenate([layers[sentence] for sentence in sentences], axis=1)


class TunedSource(nn.Module):
    """An embedder whose own weights learn too."""

    def __init__(self, embedder: Embedder, settings: InputSettings, as_layer: LayerFactory) -> None:
        super().__init__()
        if settings.mix == "apart":
            raise ConfigError("layers that stand side by side, mix 'apart', are for frozen models: trainable 'mix'")
        options: dict[str, Any] = _mix_options(embedder, settings)
        options |= {"mixes": _mixes(settings), "dropout": 0.0, "trainable": settings.trainable}
        self.layer = as_layer(embedder, **options)
        self.parts = (1, embedder.width)
        self.trainable = settings.trainable

    @property
    def mixes(self) -> nn.ModuleList:
        """The mixes, which are the layer's own."""
        mixes: nn.ModuleList = self.layer.mixes
        return mixes

    def forward(self, sentences: Sequence[Tokens]) -> list[Tensor]:
        """Each mix of all tokens end to end, (N, D)."""
        *mixed, mask = self.layer(sentences)
        return [vectors[mask] for vectors in mixed]

    def stages(self) -> list[list[nn.Parameter]]:
        """The weights that may learn, the top layer's first, the token encoder's last."""
        bilm = self.layer.bilm
        levels = zip(reversed(bilm.forward_layers), reversed(bilm.backward_layers), strict=True)
        stages = [[*ahead.parameters(), *back.parameters()] for ahead, back in levels]
        return [*stages, list(bilm.tokens.parameters())] if self.trainable == "all" else stages[:1]


class InputLayer(nn.Module):
    """Sentences → padded vectors: the embedders' mixes side by side, with dropout."""

    sources: Any  # a ModuleList of the two kinds of sources

    def __init__(
        self, embedders: Sequence[Embedder], settings: InputSettings, *, as_layer: LayerFactory | None = None
    ) -> None:
        super().__init__()
        if not embedders:
            raise ConfigError("a task needs at least one embedder: a model, static vectors or both")
        self.settings = settings
        self.sources = nn.ModuleList(_new_source(embedder, settings, as_layer) for embedder in embedders)
        if settings.trainable != "mix" and not self.stages():
            raise ConfigError(f"trainable is {settings.trainable!r}: there is no model of many layers to be trained")
        self.dropout = Dropout(settings.input_dropout)

    @property
    def widths(self) -> Widths:
        """What a task's model is built for."""
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

    def forget_caches(self) -> None:
        """Let go of the layers on disk."""
        for source in self.sources:
            if isinstance(source, FrozenSource):
                source.cache = None

    def mix_reports(self) -> list[MixReport]:
        """What the mixes have learned so far."""
        return [
            MixReport(number, place, mix.layer_weights().tolist(), mix.gamma.item())
            for number, place, mix in self._mixes()
        ]

    def _mixes(self) -> Iterator[tuple[int, str, Any]]:
        for number, source in enumerate(self.sources):
            for place, mix in zip(("input", "output"), source.mixes, strict=False):
                yield number, place, mix


def _new_source(
    embedder: Embedder, settings: InputSettings, as_layer: LayerFactory | None
) -> FrozenSource | TunedSource:
    if settings.trainable == "mix" or embedder.layer_count == 1:
        return FrozenSource(embedder, settings)
    if as_layer is None:
        raise ConfigError(f"trainable is {settings.trainable!r}: pass what makes a layer of the model, ElmoEmbedding")
    return TunedSource(embedder, settings, as_layer)


def _mixes(settings: InputSettings) -> int:
    return 2 if settings.output_mix else 1


def _new_mix(embedder: Embedder, settings: InputSettings) -> ScalarMix:
    return ScalarMix(embedder.layer_count, **_mix_options(embedder, settings))


def _mix_options(embedder: Embedder, settings: InputSettings) -> dict[str, Any]:
    kind: MixKind = "last" if settings.mix == "last" else "learned"
    count = embedder.layer_count
    return {"kind": kind, "fixed": [1 / count] * count if settings.mix == "average" else None}
