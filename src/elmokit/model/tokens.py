"""From a word's characters, its entry in the vocabulary, or both, to its context-free vector."""

from collections.abc import Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

from elmokit.config import CharacterConfig, ModelConfig
from elmokit.model import fused
from elmokit.model.fused import kernels_for
from elmokit.model.linear import Linear, Precision, make_linear
from elmokit.model.threads import side_by_side
from elmokit.text.characters import WordIds, character_encoder

POSITIONS = 2048  # characters convolved at a time: what the filters put out stays in the cache
WORDS_TO_SHARE = 16  # fewer are no quicker on two cores: most of the time goes into fetching the weights
LARGEST_TABLES = 1 << 26  # bytes; a larger alphabet goes through the convolutions themselves


class Highway(nn.Module):
    """y = g * relu(W_t x + b_t) + (1 - g) * x with g = sigmoid(W_g x + b_g)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.transform = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        transformed, share = self.transform(x).relu(), self.gate(x).sigmoid()  # of 16 bits under autocast
        return torch.lerp(x, transformed.to(x.dtype), share.to(x.dtype))


class CharacterCnn(nn.Module):
    """highways(activation(max over positions (conv_w(characters) + b_w))), all widths w side by side.

    The module itself is the plain form; `fast` gives the same in the form that training runs.
    """

    def __init__(self, config: CharacterConfig) -> None:
        super().__init__()
        encoder = character_encoder(config)
        self.pad = encoder.pad
        self.embedding = nn.Embedding(encoder.size, config.dim)
        self.convolutions = nn.ModuleList(nn.Conv1d(config.dim, count, width) for width, count in config.filters)
        self.highways = nn.Sequential(*(Highway(config.n_filters) for _ in range(config.highways)))
        self.activation = torch.relu if config.activation == "relu" else torch.tanh
        self.widest = max(width for width, _ in config.filters)

    def forward(self, char_ids: Tensor) -> Tensor:
        """The words' features, (N, filters), from their character ids, (N, C)."""
        x = self.embedding(char_ids).transpose(1, 2)  # (N, E, C)
        maxima = [convolution(x).amax(dim=-1) for convolution in self.convolutions]  # each (N, count)
        return cast(Tensor, self.highways(self.activation(torch.cat(maxima, dim=-1))))

    def fast(self, char_ids: Tensor) -> Tensor:
        """What the module gives, by groups of words of like length, with little padding."""
        return cast(Tensor, self.highways(self.filtered(char_ids, list(self.groups(char_ids)))))

    def filtered(self, char_ids: Tensor, groups: list[Tensor]) -> Tensor:
        """Each filter's maximum over the word, activated: (N, C) → (N, filters)."""
        filters = [part for convolution in self.convolutions for part in (convolution.weight, convolution.bias)]
        cropped = [self.crop(char_ids[group]) for group in groups]
        maxima = _Maxima.apply(cropped, self.embedding.weight, *filters)  # type: ignore[no-untyped-call]
        return self.activation(maxima[torch.cat(groups).argsort()])

    def crop(self, char_ids: Tensor) -> Tensor:
        """Drop padding that changes no maximum: one window of nothing but padding is kept for each width."""
        longest = int((char_ids != self.pad).sum(dim=1).max()) if len(char_ids) else 0
        return char_ids[:, : longest + self.widest]

    def groups(self, char_ids: Tensor) -> Iterator[Tensor]:
        """Words of like length together, by their indices, and not too many at a time."""
        lengths, order = (char_ids != self.pad).sum(dim=1).sort(stable=True)
        start = 0
        for end, length in enumerate(lengths.tolist()):
            if (end + 1 - start) * (length + self.widest) > POSITIONS and end > start:
                yield order[start:end]
                start = end
        yield order[start:]


class _Maxima(Function):
    """Each filter's maximum over the word, by matrix products over all windows; groups of words run side by side."""

    @staticmethod
    def forward(ctx: Any, groups: list[Tensor], characters: Tensor, *filters: Tensor) -> Tensor:
        ctx.kernels = kernels_for(characters) if any(ctx.needs_input_grad) else None
        found = side_by_side(partial(_maxima, ctx.kernels, group, characters, filters) for group in groups)
        ctx.groups, ctx.windows = groups, [windows for _, windows in found]
        ctx.save_for_backward(characters, *filters)
        return torch.cat([maxima for maxima, _ in found])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_maxima: Tensor) -> tuple[Tensor | None, ...]:
        characters, *filters = ctx.saved_tensors
        parts = zip(ctx.groups, ctx.windows, d_maxima.split([len(group) for group in ctx.groups]), strict=True)
        found = side_by_side(partial(_maxima_backward, ctx.kernels, *part, characters, filters) for part in parts)
        return None, *(torch.stack(gradients).sum(dim=0) for gradients in zip(*found, strict=True))


def _maxima(
    kernels: ModuleType | None, char_ids: Tensor, characters: Tensor, filters: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """The maxima of a group, (N, filters), and for each width the windows that they stand in, (N, count)."""
    x, maxima, chosen = characters[char_ids], [], []  # (N, C, E)
    for weight, bias in zip(filters[::2], filters[1::2], strict=True):
        with torch.autocast(x.device.type, enabled=False):  # the windows are short: 16 bits would gain nothing
            sums = _windows(x, weight) @ weight.flatten(1).t()  # (N, W, count)
        maximum, window = fused.maxima(kernels, sums) if kernels else sums.max(dim=1)
        maxima.append(maximum + bias)
        chosen.append(window)
    return torch.cat(maxima, dim=1), chosen


def _maxima_backward(
    kernels: ModuleType | None,
    char_ids: Tensor,
    chosen: list[Tensor],
    d_maxima: Tensor,
    characters: Tensor,
    filters: Sequence[Tensor],
) -> list[Tensor]:
    """The gradients of the characters' vectors and of each width's weight and bias."""
    x, gradients = characters[char_ids], []
    d_x = torch.zeros_like(x)
    d_parts = d_maxima.split([window.shape[1] for window in chosen], dim=1)
    backward = partial(fused.maxima_backward, kernels) if kernels else _windows_backward
    for weight, window, d_maximum in zip(filters[::2], chosen, d_parts, strict=True):
        gradients += [backward(x, weight, window, d_maximum, d_x), d_maximum.sum(dim=0)]
    d_characters = torch.zeros_like(characters).index_add_(0, char_ids.flatten(), d_x.flatten(0, 1))
    return [d_characters, *gradients]


def _windows_backward(x: Tensor, weight: Tensor, window: Tensor, d_maximum: Tensor, d_x: Tensor) -> Tensor:
    """Add to the gradient of the characters' vectors, (N, C, E); that of the filters, (count, E, width)."""
    windows = _windows(x, weight)
    d_sums = x.new_zeros(*windows.shape[:2], len(weight))  # (N, W, count)
    d_sums.scatter_(1, window[:, None], d_maximum[:, None])
    d_windows = (d_sums @ weight.flatten(1)).unflatten(2, weight.shape[1:])  # (N, W, E, width)
    for i, d_part in enumerate(d_windows.unbind(dim=3)):
        d_x[:, i : i + d_part.shape[1]] += d_part
    return (d_sums.flatten(0, 1).t() @ windows.flatten(0, 1)).view_as(weight)  # (count, E * width) before


def _windows(x: Tensor, weight: Tensor) -> Tensor:
    """What each window sees, (N, W, E * width)."""
    return x.unfold(1, weight.shape[2], 1).flatten(2)


class TokenEncoder(nn.Module):
    """A word's features side by side, projected to the width of the recurrent layers where they differ."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.words.rows, config.words.dim) if config.words else None
        self.characters = CharacterCnn(config.characters) if config.characters else None
        same_width = config.token_features == config.projection
        self.projection = None if same_width else nn.Linear(config.token_features, config.projection)

    def forward(self, char_ids: Tensor | None, word_ids: Tensor | None, *, plain: bool = False) -> Tensor:
        """The words' context-free vectors x_k, (N, P)."""
        features = []
        if self.words is not None:
            features.append(self.words(word_ids))
        if self.characters is not None:
            assert char_ids is not None
            features.append(self.characters(char_ids) if plain else self.characters.fast(char_ids))
        x = torch.cat(features, dim=-1)  # (N, features)
        return x if self.projection is None else self.projection(x)


def as_tensors(ids: WordIds, device: torch.device | str = "cpu") -> tuple[Tensor | None, Tensor | None]:
    """What `TokenEncoder` takes."""
    char_ids, word_ids = (None if part is None else torch.from_numpy(part).to(device) for part in ids)
    return char_ids, word_ids


class Filter:
    """The filters of one width as a table of what each character adds to each, at each position in the window."""

    def __init__(self, characters: Tensor, convolution: nn.Conv1d) -> None:
        table = torch.einsum("ce,new->wcn", characters, convolution.weight.detach())  # (width, alphabet, count)
        assert convolution.bias is not None
        self.bias = convolution.bias.detach()
        self.offsets = torch.arange(table.shape[0]) * table.shape[1]  # (width,) where each position's part begins
        self.table = table.reshape(-1, table.shape[2]).contiguous()  # (width * alphabet, count)

    def __call__(self, char_ids: Tensor) -> Tensor:
        """Each filter's maximum over the word: (N, C) → (N, count)."""
        width = len(self.offsets)
        windows = char_ids.unfold(1, width, 1) + self.offsets  # (N, windows, width)
        sums = F.embedding_bag(windows.reshape(-1, width), self.table, mode="sum")  # (N * windows, count)
        return sums.view(*windows.shape[:2], -1).amax(dim=1) + self.bias


class FastHighway:
    """Both matrices of a highway, for a core each if one has nothing else to do; 8-bit ones, being small, as one."""

    def __init__(self, highway: Highway, precision: Precision) -> None:
        weight = torch.cat([highway.gate.weight, highway.transform.weight]).detach()
        bias = torch.cat([highway.gate.bias, highway.transform.bias]).detach()
        count = 1 if precision == "int8" else 2
        halves = zip(weight.chunk(count), bias.chunk(count), strict=True)
        self.parts = [(make_linear(part, precision), addend) for part, addend in halves]

    def __call__(self, x: Tensor) -> Tensor:
        products = side_by_side(partial(linear, x, bias) for linear, bias in self.parts)
        gate, transform = torch.cat(products, dim=-1).chunk(2, dim=-1)
        return torch.lerp(x, transform.relu_(), gate.sigmoid_())


class FastTokens:
    """What `TokenEncoder` gives."""

    def __init__(self, encoder: TokenEncoder, precision: Precision) -> None:
        self.encoder = encoder
        self.filters: list[Filter] = []
        self.highways: list[FastHighway] = []
        self.projection: Linear | None = None
        self.bias: Tensor | None = None
        if (cnn := encoder.characters) is not None:
            characters, banks = cnn.embedding.weight.detach(), cast(list[nn.Conv1d], list(cnn.convolutions))
            columns = sum(bank.out_channels * bank.kernel_size[0] for bank in banks)
            if 4 * columns * len(characters) <= LARGEST_TABLES:
                self.filters = [Filter(characters, bank) for bank in banks]
            self.highways = [FastHighway(cast(Highway, one), precision) for one in cnn.highways]
        if encoder.projection is not None:
            self.projection = make_linear(encoder.projection.weight.detach(), precision)
            self.bias = encoder.projection.bias

    def __call__(self, char_ids: Tensor | None, word_ids: Tensor | None) -> Tensor:
        """The words' vectors, (N, P); words of like length are computed together."""
        groups = [torch.arange(0 if word_ids is None else len(word_ids))]
        if self.encoder.characters is not None and char_ids is not None:
            groups = list(self.encoder.characters.groups(char_ids))
        if len(groups) == 1 and len(groups[0]) >= WORDS_TO_SHARE:
            groups = list(groups[0].tensor_split(2))
        parts = side_by_side(partial(self._group, char_ids, word_ids, group) for group in groups)
        vectors = torch.empty(sum(map(len, groups)), parts[0].shape[1])
        vectors[torch.cat(groups)] = torch.cat(parts)
        return vectors

    def _group(self, char_ids: Tensor | None, word_ids: Tensor | None, group: Tensor) -> Tensor:
        features = []
        if self.encoder.words is not None and word_ids is not None:
            features.append(self.encoder.words(word_ids[group]))
        if self.encoder.characters is not None and char_ids is not None:
            features.append(self._characters(self.encoder.characters, char_ids[group]))
        x = torch.cat(features, dim=-1)  # (N, features)
        return x if self.projection is None else self.projection(x, self.bias)

    def _characters(self, cnn: CharacterCnn, char_ids: Tensor) -> Tensor:
        char_ids = cnn.crop(char_ids)
        if self.filters:
            x = cnn.activation(torch.cat([bank(char_ids) for bank in self.filters], dim=-1))
        else:
            x = cnn.filtered(char_ids, [torch.arange(len(char_ids))])
        for highway in self.highways:
            x = highway(x)
        return x
