"""From words to the ids that a model reads."""

import logging
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elmokit.config import ModelConfig
from elmokit.errors import ConfigError
from elmokit.text.characters import WordIds, character_encoder
from elmokit.text.tokenizers import HAN
from elmokit.text.vocabulary import UNK, Vocabulary

logger = logging.getLogger(__name__)
FEWEST_HAN = 20  # characters from which on it is worth saying that many are unknown
MOST_UNKNOWN = 0.1


class HanWatch:
    """Tells the logger once if a model does not know the Han characters that it reads, as a simplified one 這."""

    def __init__(self, known: str) -> None:
        self.known = frozenset(known)
        self.seen = 0
        self.unknown: Counter[str] = Counter()

    def look(self, words: Sequence[str]) -> None:
        """Count the characters of words, each of which comes once."""
        if not self.known or self.seen < 0:
            return
        characters = HAN.findall("".join(words))
        self.seen += len(characters)
        self.unknown.update(character for character in characters if character not in self.known)
        if self.seen >= FEWEST_HAN and self.unknown.total() > MOST_UNKNOWN * self.seen:
            examples = " ".join(character for character, _ in self.unknown.most_common(5))
            share = f"{self.unknown.total()} of {self.seen} Han characters are unknown to the model, such as {examples}"
            logger.warning(f"{share}: if they are traditional and it knows simplified ones, use --simplify")
            self.seen = -1


class WordEncoder:
    """Turns words into character ids, vocabulary ids or both, as the model's config asks."""

    def __init__(self, config: ModelConfig, vocabulary: Vocabulary | None) -> None:
        if config.words and vocabulary is None:
            raise ConfigError("a model that reads word vectors needs its vocabulary")
        self.characters = character_encoder(config.characters) if config.characters else None
        self.vocabulary = vocabulary if config.words else None
        alphabet = config.characters.characters if config.characters else ""
        self.han = HanWatch(alphabet or "".join(vocabulary.words if vocabulary else ()))
        self.longest = config.words.max_characters if config.words else None
        self.rows = config.words.rows if config.words else 0
        self.unknown: int | None = None  # whose vector other words have, where not all have their own
        if self.vocabulary is not None and config.words and config.words.rows < config.words.size:
            self.unknown = int(self.vocabulary.encode([UNK])[0])
            if self.unknown >= self.rows:
                found = f"{UNK} is word {self.unknown + 1:,} of the vocabulary, and words.frequent is {self.rows:,}"
                raise ConfigError(f"{found}: it needs a vector, which all words without one share")

    def encode(self, words: Sequence[str]) -> WordIds:
        self.han.look(words)
        return WordIds(
            None if self.characters is None else self.characters.encode(words),
            None if self.vocabulary is None else self._word_ids(self.vocabulary, words),
        )

    def _word_ids(self, vocabulary: Vocabulary, words: Sequence[str]) -> NDArray[np.int64]:
        """Rows of the table of words, which may have but the first words of the vocabulary."""
        ids = vocabulary.encode([word[: self.longest] for word in words])
        return ids if self.unknown is None else np.where(ids < self.rows, ids, self.unknown)
