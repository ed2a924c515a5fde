"""What can be set in a study of words; nothing heavy is imported here, so that the command line can show it at once."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["forward", "backward", "both"]
Measure = Literal["apd", "prt"]
View = Literal["means-the-same", "fits"]
Kept = Literal["same-form", "inflections", "function-words"]


@dataclass(frozen=True, kw_only=True)
class SenseSettings:
    """How many senses there may be, and what is shown of each."""

    count: int | None = None
    """Senses; as many as stand apart best unless given."""
    most: int = 5
    """The most senses that are tried."""
    least_silhouette: float = 0.1
    """Below it even the best grouping is that of one sense."""
    examples: int = 3
    """Sentences shown of each sense."""
    keywords: int = 8
    """Keywords shown of each sense."""


@dataclass(frozen=True, kw_only=True)
class ShiftSettings:
    """Which words are compared, and how many of them and of their occurrences are shown."""

    by: Measure = "apd"
    """Rank by the average pairwise distance (apd) or the distance of the means (prt)."""
    min_count: int = 20
    """Occurrences that a word must have in either corpus."""
    max_words: int = 5000
    """Words compared, those most frequent in both corpora; memory grows with it."""
    k: int = 20
    """Words shown."""
    examples: int = 2
    """Sentences shown of each corpus: those farthest from the other."""
    limit: int | None = 500
    """Occurrences of a word that are compared; of more, so many are drawn evenly from each corpus."""
