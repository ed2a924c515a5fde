"""A corpus embedded in shards, and the shards joined in the order of its documents.

A shard is a .safetensors file of `vectors.py` whose `documents` begin with their index among all, by which they are
joined.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from pathlib import Path

import numpy as np

from elmokit.elmo import Elmo
from elmokit.embedder import Layers
from elmokit.errors import DataError
from elmokit.files import parsing
from elmokit.text.corpus import Context
from elmokit.text.metadata import Metadata
from elmokit.vectors import Embedded, read_embedded, write_vectors


def embed_corpus(
    elmo: Elmo, sentences: Iterable[tuple[int, Context]], layers: Layers
) -> Iterator[tuple[int, Embedded]]:
    """Sentences with their vectors, in order and in bounded memory, each with the index of its document."""
    waiting: deque[tuple[int, Context]] = deque()

    def tokens() -> Iterator[list[str]]:
        for sentence in sentences:
            waiting.append(sentence)
            yield sentence[1].words

    for vectors in elmo.embed_stream(tokens(), layers=layers):
        index, context = waiting.popleft()
        yield index, Embedded(context, vectors)


def write_shard(path: Path, sentences: Iterable[tuple[int, Embedded]]) -> int:
    """Write the sentences of some documents, each with the index of its document, to be joined with others."""
    return write_vectors(path, (_with_document(one, f"{index} {one.context.document}") for index, one in sentences))


@dataclass(frozen=True)
class JoinedShards:
    """The sentences of all shards in the order of their documents, read anew at each iteration."""

    paths: Sequence[Path]
    metadata: Metadata | None = None
    allow_nonfinite: bool = False

    def __iter__(self) -> Iterator[Embedded]:
        for _, one in merge(*map(self._read, self.paths), key=itemgetter(0)):
            fields = self.metadata.of(one.context.document) if self.metadata else {}
            yield one._replace(context=one.context._replace(metadata=fields)) if fields else one

    def _read(self, path: Path) -> Iterator[tuple[int, Embedded]]:
        with parsing(path, "a shard of vectors", kind=DataError, remedy="Remove it, and give the same command again"):
            for one in read_embedded(path):
                if not (self.allow_nonfinite or np.isfinite(one.vectors).all()):
                    raise ValueError("vectors that are NaN or infinite")
                index, _, document = one.context.document.partition(" ")
                yield int(index), _with_document(one, document)


def _with_document(one: Embedded, document: str) -> Embedded:
    return one._replace(context=one.context._replace(document=document))
