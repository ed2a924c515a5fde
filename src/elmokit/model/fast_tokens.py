"""The token encoder made fast for inference: convolutions by table look-up, highways with packed weights."""

from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmokit.model.linear import Linear, Precision, make_linear
from elmokit.model.threads import side_by_side
from elmokit.model.tokens import CharacterCnn, Highway, TokenEncoder

LARGEST_TABLES = 1 << 26  # bytes; a larger alphabet goes through the convolutions themselves


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
    """Both matrices of a highway as one."""

    def __init__(self, highway: Highway, precision: Precision) -> None:
        self.both = make_linear(torch.cat([highway.gate.weight, highway.transform.weight]).detach(), precision)
        self.bias = torch.cat([highway.gate.bias, highway.transform.bias]).detach()

    def __call__(self, x: Tensor) -> Tensor:
        gate, transform = self.both(x, self.bias).chunk(2, dim=-1)
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
        cnn = self.encoder.characters
        if cnn is None or char_ids is None:
            assert word_ids is not None
            groups = [torch.arange(len(word_ids))]
        else:
            groups = list(cnn.groups(char_ids))
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
