"""From words to the ids that a model reads."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elmokit.config import ModelConfig
from elmokit.errors import ConfigError
from elmokit.text.characters import WordIds, character_encoder
from elmokit.text.vocabulary import UNK, Vocabulary


class WordEncoder:
    """Turns words into character ids, vocabulary ids or both, as the model's config asks."""

    def __init__(self, config: ModelConfig, vocabulary: Vocabulary | None) -> None:
        if config.words and vocabulary is None:
            raise ConfigError("a model that reads word vectors needs its vocabulary")
        self.characters = character_encoder(config.characters) if config.characters else None
        self.vocabulary = vocabulary if config.words else None
        self.longest = config.words.max_characters if config.words else None
        self.rows = config.words.rows if config.words else 0
        self.unknown: int | None = None  # whose vector other words have, where not all have their own
        if self.vocabulary is not None and config.words and config.words.rows < config.words.size:
            self.unknown = int(self.vocabulary.encode([UNK])[0])
            if self.unknown >= self.rows:
                found = f"{UNK} is word {self.unknown + 1:,} of the vocabulary, and words.frequent is {self.rows:,}"
                raise ConfigError(f"{found}: it needs a vector, which all words without one share")

    def encode(self, words: Sequence[str]) -> WordIds:
        return WordIds(
            None if self.characters is None else self.characters.encode(words),
            None if self.vocabulary is None else self._word_ids(self.vocabulary, words),
        )

    def _word_ids(self, vocabulary: Vocabulary, words: Sequence[str]) -> NDArray[np.int64]:
        """Rows of the table of words, which may have but the first words of the vocabulary."""
        ids = vocabulary.encode([word[: self.longest] for word in words])
        return ids if self.unknown is None else np.where(ids < self.rows, ids, self.unknown)
