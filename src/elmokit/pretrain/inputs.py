"""What a corpus is made from: its files and settings, their fingerprint, and their text divided into two parts."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from elmokit.errors import ConfigError, DataError
from elmokit.text.documents import BLOCK_BYTES, Document, TextFile, ending, iter_documents, open_texts, total_bytes
from elmokit.text.layout import Lines
from elmokit.text.numbering import Piece
from elmokit.text.vocabulary import Vocabulary
from elmokit.text.word_counts import TRAIN, VALID

TASK_CHARACTERS = 100_000
FEWEST_BLOCKS = 4  # that a held-out part is gathered from, in a corpus too small for blocks of the full size


@dataclass(frozen=True)
class Settings:
    """What changes the ids, beside the files."""

    tokenizer: str
    lines: Lines
    field: str
    valid_share: float
    max_types: int


@dataclass(frozen=True)
class Inputs:
    """All that a corpus depends on."""

    train: list[TextFile]
    valid: list[TextFile]
    vocabulary: Vocabulary | None
    settings: Settings

    @property
    def bytes(self) -> int:
        """The length of all files."""
        return total_bytes([*self.train, *self.valid])


def find_inputs(
    paths: Sequence[Path], valid_paths: Sequence[Path], vocabulary: Vocabulary | None, settings: Settings
) -> Inputs:
    """The files under the paths, without those to hold out; everything checked that can be before reading."""
    if not 0 <= settings.valid_share < 1:
        raise ConfigError(f"valid_share is {settings.valid_share}: the share held out goes from 0 to below 1")
    if vocabulary is not None:
        vocabulary.check_training_order()
    valid = open_texts(valid_paths, lines=settings.lines, field=settings.field)
    held_out = {file.path.resolve() for file in valid}
    found = open_texts(paths, lines=settings.lines, field=settings.field)
    train = [file for file in found if file.path.resolve() not in held_out]
    if not train:
        raise DataError(f"no files to train on{': all of them are held out' if valid else ''}: name some more")
    return Inputs(train, valid, vocabulary, settings)


def fingerprint(inputs: Inputs, *, version: int) -> str:
    """A hash of the files' contents, endings and order, and of every setting that changes the ids."""
    described = {
        "version": version,
        "settings": asdict(inputs.settings),
        "vocabulary": inputs.vocabulary and inputs.vocabulary.words,
        "train": [(ending(file.path), file.lines, file.digest()) for file in inputs.train],
        "valid": [(ending(file.path), file.lines, file.digest()) for file in inputs.valid],
    }
    return blake2b(json.dumps(described).encode(), digest_size=32).hexdigest()


def iter_pieces(inputs: Inputs) -> Iterator[Piece]:
    """The documents of each part put together until there is enough text for a task."""
    waiting: tuple[list[str], list[str]] = ([], [])
    sizes = [0, 0]
    position = 0
    for (text, _, position), part in _documents(inputs):
        waiting[part].append(text)
        sizes[part] += len(text)
        if sizes[part] >= TASK_CHARACTERS:
            yield Piece("\n".join(waiting[part]), part, position)
            waiting[part].clear()
            sizes[part] = 0
    for part in (TRAIN, VALID):
        yield Piece("\n".join(waiting[part]), part, position)


def _documents(inputs: Inputs) -> Iterator[tuple[Document, int]]:
    """Every document with its part."""
    share, trained = inputs.settings.valid_share, total_bytes(inputs.train)
    block = min(BLOCK_BYTES, int(trained * share / FEWEST_BLOCKS)) if share else BLOCK_BYTES
    yield from _divided(iter_documents(inputs.train, block_bytes=block), share)
    for text, name, position in iter_documents(inputs.valid):
        yield Document(text, name, trained + position), VALID


def _divided(documents: Iterable[Document], share: float) -> Iterator[tuple[Document, int]]:
    """Hold out a document when the share has fallen behind by half of it, and the last if none was until then."""
    read = held = 0
    last = None
    for document in documents:
        if last is not None:
            size = len(last.text)
            read += size
            due = share > 0 and read * share - held >= size / 2
            held += size if due else 0
            yield last, VALID if due else TRAIN
        last = document
    if last is not None:
        yield last, VALID if share and not held else TRAIN
