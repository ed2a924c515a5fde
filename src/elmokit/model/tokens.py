"""From a word's characters, its entry in the vocabulary, or both, to its context-free vector."""

import torch
from torch import Tensor, nn

from elmokit.config import CharacterConfig, ModelConfig
from elmokit.text.characters import character_encoder
from elmokit.text.words import WordIds


class Highway(nn.Module):
    """y = g * relu(W_t x + b_t) + (1 - g) * x with g = sigmoid(W_g x + b_g)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.transform = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Let part of x through and transform the rest."""
        return torch.lerp(x, self.transform(x).relu(), self.gate(x).sigmoid())


class CharacterCnn(nn.Module):
    """Characters → convolutions, each filter's maximum over the word → highways."""

    def __init__(self, config: CharacterConfig) -> None:
        super().__init__()
        encoder = character_encoder(config)
        self.pad = encoder.pad
        self.embedding = nn.Embedding(encoder.size, config.dim)
        self.convolutions = nn.ModuleList(nn.Conv1d(config.dim, count, width) for width, count in config.filters)
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.highways))
        self.activation = torch.relu if config.activation == "relu" else torch.tanh
        self.widest = max(width for width, _ in config.filters)

    def crop(self, char_ids: Tensor) -> Tensor:
        """Drop padding that changes no maximum: one window of nothing but padding is kept for each width."""
        longest = int((char_ids != self.pad).sum(dim=1).max()) if len(char_ids) else 0
        return char_ids[:, : longest + self.widest]

    def filtered(self, char_ids: Tensor) -> Tensor:
        """Each filter's maximum over the word, activated: (N, C) → (N, filters)."""
        x = self.embedding(char_ids)  # (N, C, E)
        x = x.transpose(1, 2)  # (N, E, C)
        x = torch.cat([conv(x).amax(dim=-1) for conv in self.convolutions], dim=-1)  # (N, filters)
        return self.activation(x)

    def forward(self, char_ids: Tensor) -> Tensor:
        """The words' features, (N, filters), from their character ids, (N, C)."""
        x = self.filtered(self.crop(char_ids))
        for highway in self.highways:
            x = highway(x)
        return x


class TokenEncoder(nn.Module):
    """A word's features side by side, projected to the width of the recurrent layers where they differ."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.words.size, config.words.dim) if config.words else None
        self.characters = CharacterCnn(config.characters) if config.characters else None
        same_width = config.token_features == config.projection
        self.projection = None if same_width else nn.Linear(config.token_features, config.projection)

    def forward(self, char_ids: Tensor | None, word_ids: Tensor | None) -> Tensor:
        """The words' vectors, (N, P)."""
        features = []
        if self.words is not None:
            features.append(self.words(word_ids))
        if self.characters is not None:
            features.append(self.characters(char_ids))
        x = torch.cat(features, dim=-1)  # (N, features)
        return x if self.projection is None else self.projection(x)


def as_tensors(ids: WordIds, device: torch.device | str = "cpu") -> tuple[Tensor | None, Tensor | None]:
    """What `TokenEncoder` takes."""
    char_ids, word_ids = (None if part is None else torch.from_numpy(part).to(device) for part in ids)
    return char_ids, word_ids
