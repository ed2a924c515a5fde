"""Static vectors of each slice of a corpus, brought into one space: the baseline for change (Hamilton et al., 2016)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from elmokit.embedder import Vectors
from elmokit.lexicon.distances import orthogonal_map
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.progress import SILENCE, Progress
from elmokit.static.corpus import open_text
from elmokit.static.embedders import StaticVectors
from elmokit.static.settings import SkipGramSettings, TextSettings
from elmokit.static.skip_gram import train_skip_gram
from elmokit.text.corpus import Context

MIN_COUNT = 5  # occurrences that a word needs to have a vector


def train_slice(corpus: Iterable[Context], *, seed: int = 0, progress: Progress = SILENCE) -> StaticVectors:
    """Skip-gram of the tokens of a corpus, by one thread, so that the same seed gives the same vectors."""
    settings = TextSettings(tokenizer="whitespace", lines="paragraphs", min_count=MIN_COUNT)
    with TemporaryDirectory(prefix="elmokit-") as folder:
        path = Path(folder, "slice.txt")
        with path.open("w", encoding="utf-8", errors="replace") as file:
            file.writelines(f"{' '.join(context.words)}\n" for context in corpus)
        with open_text([path], settings, workers=1) as text:
            return train_skip_gram(text, SkipGramSettings(threads=1, seed=seed + 1), progress=progress)


def aligned_distances(first: StaticVectors, second: StaticVectors, words: Sequence[str]) -> list[float | None]:
    """1 - cosine of each word's vectors, those of the first turned into the space of the second; none if one lacks it.

    Vectors are centred and of length 1, and the rotation is that which fits all words that both have.
    """
    shared = [word for word in first.words if word in second]
    here, there = (_centred(vectors.vectors_of(shared)) for vectors in (first, second))  # (shared, D) each
    cosines = ((here @ orthogonal_map(here, there)) * there).sum(axis=1)
    found = dict(zip(shared, cosines.tolist(), strict=True))
    return [1 - found[word] if word in found else None for word in words]


def _centred(vectors: Vectors) -> Vectors:
    units = unit_vectors(vectors)
    return unit_vectors(units - units.mean(axis=0, dtype=np.float32))
