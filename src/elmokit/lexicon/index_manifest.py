"""What an index of occurrences holds: who read which text, and how much of it is committed."""

from pathlib import Path
from typing import Literal

import msgspec

from elmokit.config import TokenizerName
from elmokit.elmo import Elmo
from elmokit.embedder import Layers
from elmokit.errors import ConfigError, DataError, OutputError

MANIFEST = "manifest.json"
PARTIAL = f".{MANIFEST}.partial"
EXACT_ROWS = 100_000


class ModelId(msgspec.Struct, frozen=True):
    """Which model it is."""

    name: str
    """Where it can be loaded from."""
    digest: str
    """A hash of all that its vectors depend on."""

    def __str__(self) -> str:
        return f"{self.name} ({self.digest[:12]})"


class Reading(msgspec.Struct, frozen=True):
    """How the text was read."""

    model: ModelId
    layer: Layers
    tokenizer: TokenizerName


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of an index beside its rows."""

    format: Literal["elmokit index"] = "elmokit index"
    version: Literal[1] = 1
    reading: Reading
    width: int
    """Of a vector."""
    corpus: str
    """A hash of all sentences, tokens and documents."""
    total: int
    """Sentences of the corpus."""
    exact_rows: int = EXACT_ROWS
    """Among so many rows the nearest are found by comparing all of them."""
    sentences: int = 0
    """Sentences committed."""
    rows: int = 0
    """Occurrences committed."""
    finished: bool = False
    """Whether all is there."""

    def check_same(self, wanted: "Manifest", folder: Path) -> None:
        """Refuse to go on with another model, in another way or in another text."""
        check_model(folder, self.reading.model, wanted.reading.model)
        for name in ("layer", "tokenizer"):
            ours, theirs = getattr(self.reading, name), getattr(wanted.reading, name)
            if ours != theirs:
                raise ConfigError(f"{folder} was built with the {name} {ours!r}, not {theirs!r}: choose another folder")
        if self.corpus != wanted.corpus:
            raise ConfigError(
                f"{folder} was built from another text, or the files were named otherwise: choose another folder"
            )


def identify(elmo: Elmo, name: str) -> ModelId:
    """A model by its digest."""
    return ModelId(name, elmo.digest)


def check_model(folder: Path, built: ModelId, given: ModelId) -> None:
    """Refuse a model other than that which built the index."""
    if built.digest != given.digest:
        raise ConfigError(f"{folder} was built by the model {built}, not by {given}: their vectors cannot be compared")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the index in a folder."""
    path = folder / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{folder} is not an index: it has no {MANIFEST}; `elmokit index build` makes one") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: damaged, or of another version of elmokit: {error}. Build the index anew") from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put a manifest into its place in one step."""
    partial = folder / PARTIAL
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        partial.replace(folder / MANIFEST)
    except OSError as error:
        raise OutputError(f"{folder}: the index cannot be written here: {error.strerror}") from error
