"""gensim: static vectors, or the mean vectors of a corpus, as its `KeyedVectors`."""

import numpy as np

from elmokit.errors import MissingExtraError
from elmokit.lexicon.neighbors import WordVectors
from elmokit.lexicon.occurrences import TypeVectors

try:
    from gensim.models import KeyedVectors
except ImportError:
    raise MissingExtraError("keyed vectors need gensim", "static") from None


def keyed_vectors(known: WordVectors) -> KeyedVectors:
    """The words of `elmokit.static.load(…)` or of `lexicon.type_vectors(…)` with their vectors, and counts if known.

    The way back is `StaticVectors(keyed.index_to_key, keyed.vectors)`.
    """
    rows: dict[str, int] = {}
    for row, word in enumerate(known.words):
        rows.setdefault(word, row)  # a repeated word keeps its first vector
    vectors = known.vectors[np.fromiter(rows.values(), np.int64, len(rows))]  # (words, D)
    keyed = KeyedVectors(vector_size=vectors.shape[1])
    keyed.add_vectors(list(rows), vectors)
    if isinstance(known, TypeVectors):
        for word, row in rows.items():
            keyed.set_vecattr(word, "count", known.counts[row])
    return keyed
