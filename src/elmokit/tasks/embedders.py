"""Which embedder a saved task was trained with, and where it is found again.

Everything else in this room is handed its embedders; a saved task alone has to fetch them.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

import elmokit
from elmokit.bundled import bundled_path
from elmokit.embedder import Embedder
from elmokit.errors import CheckpointError, ConfigError, ElmoError
from elmokit.files import replacing_folder
from elmokit.static.embedders import OneHot, StaticVectors

COPIES = "embedders"


class EmbedderId(msgspec.Struct, frozen=True, kw_only=True):
    """An embedder by its name and by what it holds."""

    kind: str
    name: str
    """Where it can be loaded from."""
    digest: str
    """A hash of all that its vectors depend on."""
    lower_case: bool = False
    """Whether static vectors are asked for a word's lower-case form too."""
    bundled: str | None = None
    """Its copy within the task's folder."""


def identify(name: str, embedder: Embedder) -> EmbedderId:
    """Tell an embedder from all others."""
    if isinstance(embedder, elmokit.Elmo):
        from elmokit.lexicon.index import identify as identify_model

        return EmbedderId(kind="elmo", name=name, digest=identify_model(embedder, name).digest)
    if isinstance(embedder, StaticVectors | OneHot):
        kind = "static" if isinstance(embedder, StaticVectors) else "one-hot"
        hashed = blake2b("\n".join(embedder.words).encode("utf-8", "surrogatepass"), digest_size=32)
        if isinstance(embedder, StaticVectors):
            hashed.update(embedder.vectors.data)
        return EmbedderId(kind=kind, name=name, digest=hashed.hexdigest(), lower_case=embedder.lower_case)
    return EmbedderId(kind="other", name=name, digest="")


def write_copies(folder: Path, known: Sequence[EmbedderId], embedders: Sequence[Any]) -> tuple[EmbedderId, ...]:
    """Copy embedders into a task's folder, where they appear together when all are complete."""
    for one in known:
        if one.kind == "other":
            raise ConfigError(f"the embedder {one.name!r} is of a kind that cannot be copied")
    names = [f"{number}" if one.kind == "elmo" else f"{number}.safetensors" for number, one in enumerate(known)]
    with replacing_folder(folder / COPIES, files=names, overwrite=True) as partial:
        for name, embedder in zip(names, embedders, strict=True):
            embedder.save(partial / name)
    return tuple(
        msgspec.structs.replace(one, bundled=f"{COPIES}/{name}") for one, name in zip(known, names, strict=True)
    )


LOADERS: Mapping[str, Callable[[str | Path, EmbedderId], Embedder]] = {
    "elmo": lambda path, _: elmokit.load(path),
    "static": lambda path, known: StaticVectors.load(path, lower_case=known.lower_case),
    "one-hot": lambda path, known: OneHot.load(path, lower_case=known.lower_case),
}


def fetch(folder: Path, known: EmbedderId) -> Embedder:
    """Load an embedder from its copy or from where it was."""
    if known.kind not in LOADERS:
        raise CheckpointError(f"{folder}: the embedder {known.name!r} was made in Python: pass it to load(embedders=…)")
    try:
        return LOADERS[known.kind](_location(folder, known), known)
    except ElmoError as error:
        raise CheckpointError(f"{folder} needs the {known.kind} vectors it was trained with: {error}") from None


def _location(folder: Path, known: EmbedderId) -> str | Path:
    """The copy, which stands within the folder; or a bundled model, whatever folder has its name here."""
    if known.bundled is None:
        return bundled_path(known.name) or known.name
    copy = Path(known.bundled)
    if copy.is_absolute() or ".." in copy.parts:
        raise CheckpointError(f"{folder}: the copy {known.bundled!r} of an embedder is said to be outside of it")
    return folder / copy


def check_same(folder: Path, known: Sequence[EmbedderId], embedders: Sequence[Embedder]) -> None:
    """Refuse embedders other than those that a task was trained with."""
    if len(known) != len(embedders):
        raise ConfigError(f"{folder} was trained with {len(known)} embedders, not {len(embedders)}")
    for one, embedder in zip(known, embedders, strict=True):
        found = identify(one.name, embedder)
        if (found.kind, found.digest) != (one.kind, one.digest):
            raise CheckpointError(
                f"{folder} was trained with another {one.kind} embedder than {one.name} is now; if several are given, "
                "their order counts"
            )
        if found.lower_case != one.lower_case:
            raise CheckpointError(f"{folder}: {one.name}: lower_case was {one.lower_case}, not {found.lower_case}")
