"""Models by name: the bundled ones, and those that others have published, in the table published.toml."""

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from elmokit.bundled import bundled_names, bundled_path
from elmokit.errors import ConfigError

TABLE = Path(__file__).with_suffix(".toml")


class KnownModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that can be loaded by its name; what is not known of it is empty."""

    name: str
    language: str
    """Its code."""
    purpose: str
    """What it is for, and what it has read."""
    size: str = ""
    licence: str = ""
    tried: bool = False
    """Whether this very model was loaded by elmokit."""
    page: str = ""
    """Where its makers describe it."""
    files: tuple[str, ...] = ()
    """Its addresses: the one to load, then what belongs beside it; none if it is bundled."""


def known_models(language: str | None = None) -> list[KnownModel]:
    """All of them, the bundled ones first, or those for a language."""
    models = [*map(_bundled, bundled_names()), *published_models().values()]
    found = [model for model in models if language in (None, model.language)]
    if not found:
        languages = ", ".join(sorted({model.language for model in models}))
        raise ConfigError(f"no model is known for {language!r}: there are some for {languages}")
    return found


@cache
def published_models() -> dict[str, KnownModel]:
    """Those of the table, by name; what a collection says holds for each of its models."""
    rows = [
        collection | row
        for collection in tomllib.loads(TABLE.read_text(encoding="utf-8"))["collection"]
        for row in collection.pop("models")
    ]
    return {row["name"]: msgspec.convert(row, KnownModel) for row in rows}


def _bundled(name: str) -> KnownModel:
    folder = bundled_path(name) or Path()
    about = msgspec.json.decode((folder / "config.json").read_bytes()).get("about", {})
    size = f"{(folder / 'model.safetensors').stat().st_size / 1e6:.1f} MB"
    licence = about.get("licence", "").removeprefix("weights: ").partition(";")[0]
    purpose = "; ".join(filter(None, ("bundled: needs no network", about.get("text"))))
    settings = {"language": about.get("language", name), "purpose": purpose, "licence": licence}
    return KnownModel(name=name, size=size, tried=True, **settings)
