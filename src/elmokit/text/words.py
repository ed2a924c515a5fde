"""From words to the ids that a model reads."""

from collections.abc import Sequence

from elmokit.config import ModelConfig
from elmokit.errors import ConfigError
from elmokit.text.characters import WordIds, character_encoder
from elmokit.text.vocabulary import Vocabulary


class WordEncoder:
    """Turns words into character ids, vocabulary ids or both, as the model's config asks."""

    def __init__(self, config: ModelConfig, vocabulary: Vocabulary | None) -> None:
        if config.words and vocabulary is None:
            raise ConfigError("a model that reads word vectors needs its vocabulary")
        self.characters = character_encoder(config.characters) if config.characters else None
        self.vocabulary = vocabulary if config.words else None
        self.longest = config.words.max_characters if config.words else None

    def encode(self, words: Sequence[str]) -> WordIds:
        return WordIds(
            None if self.characters is None else self.characters.encode(words),
            None if self.vocabulary is None else self.vocabulary.encode([word[: self.longest] for word in words]),
        )
