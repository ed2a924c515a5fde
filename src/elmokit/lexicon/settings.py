"""What can be set in a study of words; nothing heavy is imported here, so that the command line can show it at once."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["forward", "backward", "both"]
Measure = Literal["apd", "excess", "prt", "jsd", "static"]
SenseBy = Literal["around", "word", "substitutes"]
View = Literal["means-the-same", "fits"]
Kept = Literal["same-form", "inflections", "function-words"]


@dataclass(frozen=True, kw_only=True)
class SenseSettings:
    """How many senses there may be, and what is shown of each."""

    count: int | None = None
    """Senses; as many as stand apart best unless given."""
    most: int = 5
    """The most senses that are tried."""
    least_silhouette: float | None = None
    """Groups stand apart, and are called senses, from it on; what more than nine in ten words with one sense stay below
    unless given."""
    examples: int = 3
    """Sentences shown of each sense."""
    keywords: int = 8
    """Keywords shown of each sense."""


@dataclass(frozen=True, kw_only=True)
class ShiftSettings:
    """Which words are compared, and how many of them and of their occurrences are shown."""

    by: Measure | None = None
    """Rank by the average pairwise distance (apd), how much it exceeds that within slices (excess), the distance of the
    means (prt), the Jensen–Shannon divergence of substitutes (jsd) or the distance of aligned static vectors (static);
    by jsd unless given, or excess with a model that predicts no words."""
    min_count: int = 20
    """Occurrences that a word must have in every slice."""
    content_words: bool = True
    """Leave out function words: pronouns, prepositions, particles and the like, in English and Chinese."""
    max_words: int = 5000
    """Words compared, those most frequent in all slices; memory grows with it."""
    k: int = 20
    """Words shown."""
    examples: int = 2
    """Sentences shown of each slice: those farthest from the others."""
    limit: int | None = 500
    """Occurrences of a word that are compared; of more, so many are drawn evenly from each slice."""
    permutations: int = 1000
    """Rounds of the permutation test of each word shown; 0 for no test."""
    static: bool = False
    """Train skip-gram in each slice too, align it by orthogonal Procrustes, and give its distance beside."""
