"""The models in the package: a folder each, with a card that says what it was made of."""

from pathlib import Path

FOLDER = Path(__file__).parent


def bundled_names() -> list[str]:
    """The names under which they are loaded."""
    return sorted(path.parent.name for path in FOLDER.glob("*/model.safetensors"))


def bundled_path(name: str) -> Path | None:
    """The folder of the model of that name, if there is one."""
    return FOLDER / name if name in bundled_names() else None
