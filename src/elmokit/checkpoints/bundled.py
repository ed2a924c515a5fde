"""Models that come with elmokit: a folder each, with a card that says what it was made of."""

from pathlib import Path

from elmokit.checkpoints import native

FOLDER = Path(__file__).parents[1] / "bundled"


def bundled_names() -> list[str]:
    """The names under which they are loaded."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{native.WEIGHTS}"))


def bundled_path(name: str) -> Path | None:
    """The folder of the model of that name, if there is one."""
    return FOLDER / name if name in bundled_names() else None
