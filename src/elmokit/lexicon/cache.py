"""A corpus read by a model, of which what was computed is kept, so that the next question is quick.

Kept are the mean vector of each word, and the occurrences of a word once it was asked about. A file is named by a hash
of all that it depends on: the model, the layer, the bytes of the text and how they are read. They lie in the folder
`words` of the user's cache, or of $ELMOKIT_CACHE; of more than `MOST_BYTES` those that were not used for longest go.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from elmokit import __version__
from elmokit.elmo import Elmo
from elmokit.embedder import Layers
from elmokit.errors import DataError, OutputError
from elmokit.files import cache_folder, replacing, writing
from elmokit.lexicon.neighbors import (
    NearOccurrence,
    Neighbor,
    bracketed,
    check_k,
    nearest_occurrences,
    wanted_word,
    word_neighbors,
)
from elmokit.lexicon.occurrences import (
    EmbeddedWords,
    TypeVectors,
    as_bytes,
    embed_words,
    from_bytes,
    survey,
    type_vectors,
)
from elmokit.progress import SILENCE, Progress
from elmokit.text.brackets import BracketedWord
from elmokit.text.corpus import Context, TextCorpus
from elmokit.text.packing import ending

T = TypeVar("T")
MOST_BYTES = 1 << 30
LARGEST = 1 << 26  # bytes of the vectors of one word's occurrences; more are not kept
INDEX = "`elmokit index build` keeps those of every word"
UNREADABLE = (OSError, ValueError, KeyError, SafetensorError, msgspec.DecodeError)


def default_folder() -> Path:
    """Where everything is kept unless another folder is named."""
    return cache_folder() / "words"


@dataclass(frozen=True)
class CachedCorpus:
    """A corpus and the model that reads it; `progress` is told what is computed, and that it is kept."""

    corpus: TextCorpus
    elmo: Elmo
    layers: Layers = "average"
    folder: Path = field(default_factory=default_folder)
    most_bytes: int = MOST_BYTES

    def word_neighbors(
        self, word: str, *, k: int = 10, min_count: int = 5, center: bool = False, progress: Progress = SILENCE
    ) -> list[Neighbor]:
        """The k words nearest to a word by their mean vectors, of those that occur `min_count` times."""
        check_k(k)
        types = self.type_vectors(word, progress=progress).frequent(min_count, also=word)
        return word_neighbors(word, types, k=k, center=center)

    def context_neighbors(
        self,
        query: str | BracketedWord,
        *,
        k: int = 10,
        any_word: bool = False,
        token: str | None = None,
        document: str | None = None,
        progress: Progress = SILENCE,
    ) -> list[NearOccurrence]:
        """The k occurrences nearest to the word in brackets: of the same word, of another, `token`, or of any."""
        check_k(k)
        query = bracketed(query, self.corpus, self.elmo)
        word = wanted_word(query, any_word=any_word, token=token)
        found = self._all_occurrences(progress) if word is None else self.occurrences(word, progress=progress)
        if document is not None:
            found = _of_document(found, document)
        return nearest_occurrences(query, found, self.elmo, k=k, layers=self.layers)

    def type_vectors(self, word: str, *, progress: Progress = SILENCE) -> TypeVectors:
        """The mean vectors of the most frequent words, and of this one."""
        path = self._path("means")
        found = _read(path, TypeVectors.load)
        if found is None:
            known = survey(self.corpus, progress=progress)
            known.check_words(word)
            progress.message(
                f"{self.corpus.name}: each word's mean vector is computed and kept: the next question is quick"
            )
            found = type_vectors(
                self.corpus, self.elmo, layers=self.layers, min_count=1, known=known, progress=progress
            )
            self._keep(path, found.save, progress)
        if word in found.words:
            return found
        alone = type_vectors(self.corpus, self.elmo, layers=self.layers, max_words=0, also=[word], progress=progress)
        return found.joined(alone)

    def occurrences(self, word: str, *, progress: Progress = SILENCE) -> Iterable[EmbeddedWords]:
        """All occurrences of a word; a word that the corpus lacks is refused."""
        path = self._path("occurrences", word, *(file.name for file in self.corpus.files))
        kept = _read(path, read_occurrences)
        if kept is not None:
            fields = self.corpus.metadata
            return [(c._replace(metadata=fields.of(c.document)), at, v) for c, at, v in kept] if fields else kept
        known = survey(self.corpus, progress=progress)
        known.check_words(word)
        found = embed_words(self.corpus, self.elmo, [word], known, layers=self.layers, progress=progress)
        if known.counts[word] * self.elmo.width * 4 > LARGEST:
            count = f"all {known.counts[word]:,} occurrences of {word!r}"
            progress.message(f"{self.corpus.name}: {count} are embedded for this question alone; {INDEX}")
            return found
        progress.message(
            f"{self.corpus.name}: {word!r} is embedded where it stands and kept: the next question about it is quick"
        )
        kept = list(found)
        self._keep(path, partial(write_occurrences, kept), progress)
        return kept

    def _all_occurrences(self, progress: Progress) -> Iterable[EmbeddedWords]:
        known = survey(self.corpus, progress=progress)
        progress.message(f"{self.corpus.name}: all words are embedded for this question alone; {INDEX}")
        return embed_words(self.corpus, self.elmo, known.counts, known, layers=self.layers, progress=progress)

    def _path(self, *parts: str) -> Path:
        """The file of something that depends on these, on the model, and on the text and how it is read."""
        reading = [
            replace(self.corpus, files=(), metadata=None),
            __version__,
            self.elmo.digest,
            self.elmo.engine.precision,
            self.layers,
        ]
        hashed = blake2b(repr([*reading, parts]).encode(), digest_size=20)
        for file in self.corpus.files:
            unnamed = replace(file, path=Path("".join(ending(file.path))), stream=None)
            hashed.update(f"{unnamed!r} {file.digest()}".encode())
        return self.folder / f"{hashed.hexdigest()}.safetensors"

    def _keep(self, path: Path, write: Callable[[Path], None], progress: Progress) -> None:
        """Write a file, and remove those that were not used for longest; if that cannot be done, say so and go on."""
        try:
            with writing(path):
                self.folder.mkdir(parents=True, exist_ok=True)
            write(path)
        except OutputError as error:
            progress.message(f"not kept: {error}")
        shrink(self.folder, self.most_bytes)


def shrink(folder: Path, most_bytes: int) -> None:
    """Remove the files that were not used for longest until no more than so many bytes are left."""
    with suppress(OSError):  # others use the folder too
        files = sorted(((file.stat(), file) for file in folder.iterdir()), key=lambda one: -one[0].st_mtime_ns)
        for size, (_, file) in zip(np.cumsum([stat.st_size for stat, _ in files]), files, strict=True):
            if size > most_bytes:
                file.unlink(missing_ok=True)


def write_occurrences(found: Iterable[EmbeddedWords], path: Path) -> None:
    """Write occurrences as safetensors: the vectors, (N, D), and as JSON the sentences and positions."""
    contexts, positions, vectors = zip(*found, strict=True)
    bare = [context._replace(metadata={}) for context in contexts]  # a table of metadata may change
    tensors = {"where": as_bytes([bare, positions]), "vectors": np.concatenate(vectors)}
    with replacing(path) as new, writing(path, (OSError, SafetensorError)):
        save_file(tensors, new)


def read_occurrences(path: Path) -> list[EmbeddedWords]:
    """Read what `write_occurrences` wrote."""
    found = load_file(path)
    contexts, positions = from_bytes(found["where"], tuple[list[Context], list[list[int]]])
    vectors = np.split(found["vectors"], np.cumsum([len(some) for some in positions])[:-1])
    return list(zip(contexts, positions, vectors, strict=True))


def _read(path: Path, read: Callable[[Path], T]) -> T | None:
    """What a file holds, which is then the one used last; none if it is not there, or damaged."""
    try:
        found = read(path)
    except UNREADABLE:
        return None
    with suppress(OSError):  # a folder that may only be read
        os.utime(path)
    return found


def _of_document(found: Iterable[EmbeddedWords], document: str) -> Iterator[EmbeddedWords]:
    others: dict[str, None] = {}
    for one in found:
        if one[0].document == document:
            yield one
        others[one[0].document] = None
    if document not in others:
        some = ", ".join(list(others)[:5])
        raise DataError(f"no document {document!r} has such occurrences; some that have: {some}")
