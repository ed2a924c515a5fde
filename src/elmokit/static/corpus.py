"""Text files → the ids of their words, on disk: what counting and training read."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmokit import __version__
from elmokit.errors import DataError, OutputError
from elmokit.progress import SILENCE, Progress
from elmokit.shards import Shard
from elmokit.static.settings import TextSettings
from elmokit.text.corpus import tokenizer_for
from elmokit.text.documents import Paths, iter_documents, open_texts, total_bytes
from elmokit.text.numbering import (
    EOS_ID,
    SPECIAL_IDS,
    TRAIN,
    NumberedText,
    Numberer,
    Piece,
    RankedWords,
    WordCounter,
    number_pieces,
    read_numbers,
    write_numbers,
)
from elmokit.text.packing import ending
from elmokit.text.vocabulary import BOS, EOS, UNK

END = -1
MOST_WORDS = 5_000_000  # distinct; beyond them the rarest are forgotten
CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class Text:
    """A text as numbers."""

    words: tuple[str, ...]
    """The vocabulary, by falling count."""
    counts: NDArray[np.int64]
    """(V,): how often each occurs."""
    ids: NDArray[np.int32]
    """The index of each word in the vocabulary, other words left out, and −1 after each line or sentence."""
    folder: Path
    """Where the ids lie, and where there is room for other temporary files."""

    @property
    def tokens(self) -> int:
        """Words, those left out not counted."""
        return int(self.counts.sum())

    def sentences(self) -> Iterator[list[str]]:
        """The words of each line or sentence."""
        words = np.array([*self.words, ""], dtype=object)
        start = 0
        while start < len(self.ids):
            end = self.line_end(start + CHUNK)
            ids = self.ids[start:end]
            for line in np.split(ids, np.flatnonzero(ids == END) + 1)[:-1]:
                yield words[line[:-1]].tolist()
            start = end

    def divided(self, parts: int) -> list["Text"]:
        """Stretches of whole lines, of about the same length, over the same vocabulary; some may be empty."""
        size = len(self.ids)
        bounds = [0, *(self.line_end(size * number // parts) for number in range(1, parts)), size]
        return [replace(self, ids=self.ids[start:end]) for start, end in pairwise(bounds)]

    def line_end(self, position: int) -> int:
        """The first end of a line at the position or after it; the end of the text if there is none."""
        while position < len(self.ids):
            found = np.flatnonzero(self.ids[position : position + CHUNK] == END)
            if len(found):
                return position + int(found[0]) + 1
            position += CHUNK
        return len(self.ids)


class TextSource:
    """Text files, and how their words are numbered."""

    def __init__(self, paths: Paths, settings: TextSettings) -> None:
        self.files = open_texts(paths, lines=settings.lines, field=settings.field, encoding=settings.encoding)
        self.settings = replace(settings, tokenizer=tokenizer_for(self.files, settings.tokenizer))
        self.size = total_bytes(self.files)
        self.numberer = Numberer(self.settings.tokenizer, settings.split, settings.language)

    @property
    def made_from(self) -> tuple[Any, ...]:
        """The files' contents, endings and order, and every setting, as JSON values."""
        files = [(ending(file.path), file.lines, file.digest()) for file in self.files]
        return files, asdict(self.settings), __version__

    def pieces(self) -> Iterator[Piece]:
        """The documents, each a piece of work."""
        return (Piece(text, TRAIN, position) for text, _, position in iter_documents(self.files))

    def numbered(self, workers: int | None, shards: Sequence[Path] = ()) -> Generator[tuple[Piece, NumberedText]]:
        """All documents, each with the numbers of its words: from shards, or made by so many processes."""
        if shards:
            return read_numbers(self.pieces(), shards)
        return number_pieces(self.pieces(), self.numberer, workers=workers, size=self.size)

    def write_shard(self, path: Path, shard: Shard) -> None:
        """Number the words of a shard's documents."""
        write_numbers(path, self.pieces(), self.numberer, shard)


@contextmanager
def open_text(
    paths: Paths,
    settings: TextSettings = TextSettings(),
    *,
    workers: int | None = None,
    numbers: Sequence[Path] = (),
    progress: Progress = SILENCE,
) -> Iterator[Text]:
    """The text of these files, tokenized and numbered, in temporary files that go with it."""
    try:
        with TemporaryDirectory(prefix="elmokit-") as folder:
            yield read_text(paths, Path(folder), settings, workers=workers, numbers=numbers, progress=progress)
    except OSError as error:
        raise OutputError(f"temporary files cannot be written: {error}: set TMPDIR to a folder with room") from error


def read_text(
    paths: Paths,
    folder: Path,
    settings: TextSettings,
    *,
    workers: int | None = None,
    numbers: Sequence[Path] = (),
    progress: Progress = SILENCE,
) -> Text:
    """The text of these files, tokenized and numbered, with its ids in a file in the folder.

    As many processes as there are cores tokenize it, unless their number is given, and fewer if it is small. `numbers`
    are the files of shards, all of them, that `TextSource.write_shard` wrote of the same text.
    """
    source = TextSource(paths, settings)
    counter, total = WordCounter((BOS, EOS, UNK), limit=MOST_WORDS), source.size
    with (folder / "numbers").open("wb") as file, closing(source.numbered(workers, numbers)) as numbered:
        for piece, (found, ids) in numbered:
            words = [word.lower() for word in found] if settings.lower_case else found
            file.write(counter.add(words, ids, TRAIN).tobytes())
            progress.update("reading", piece.position, total, unit="bytes")
    ranked = counter.ranked()
    kept = _vocabulary(ranked, settings, source.files[0].name if source.files else "no files")
    _write_ids(folder, ranked, kept)
    vocabulary = tuple(ranked.words[number] for number in kept)
    text = Text(vocabulary, ranked.counts[TRAIN, kept], np.memmap(folder / "ids", dtype=np.int32, mode="r"), folder)
    progress.message(f"{text.tokens:,} tokens, {len(vocabulary):,} words")
    return text


def _vocabulary(ranked: RankedWords, settings: TextSettings, name: str) -> list[int]:
    """The ids of the words that have vectors."""
    counts, first = ranked.counts[TRAIN], len(SPECIAL_IDS)
    frequent = range(first, first + int(np.count_nonzero(counts[first:] >= settings.min_count)))
    kept = [number for number in frequent if settings.punctuation or any(map(str.isalnum, ranked.words[number]))]
    if not kept:
        most = f"the most frequent one occurs {counts[first]} times" if len(counts) > first else "there are none at all"
        raise DataError(f"{name}: no word occurs {settings.min_count} times: {most}")
    return kept[: settings.vocab_size]


def _write_ids(folder: Path, ranked: RankedWords, kept: Sequence[int]) -> None:
    """Number the words of the vocabulary from 0 and leave out all others."""
    left_out = END - 1
    indices = np.full(len(ranked.words), left_out, dtype=np.int32)
    indices[kept] = np.arange(len(kept))
    indices[EOS_ID] = END
    with (folder / "numbers").open("rb") as numbers, (folder / "ids").open("wb") as file:
        while chunk := numbers.read(4 * CHUNK):
            found = indices[ranked.ids[np.frombuffer(chunk, dtype=np.int32)]]
            file.write(found[found != left_out].tobytes())
    (folder / "numbers").unlink()
