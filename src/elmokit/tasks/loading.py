"""Any trained task from its folder."""

from collections.abc import Sequence
from pathlib import Path

from elmokit.embedder import Embedder
from elmokit.errors import ConfigError
from elmokit.tasks import saved, wsd


def load(folder: str | Path, *, embedders: Sequence[Embedder] | None = None) -> saved.Predictor | wsd.SenseCentroids:
    """Load a trained task; its embedders are found where they were, unless they are given."""
    folder = Path(folder).expanduser()
    if not wsd.holds_senses(folder):
        return saved.load(folder, embedders=embedders)
    if embedders is not None and len(embedders) != 1:
        raise ConfigError(f"{folder} holds senses: they have one embedder, and {len(embedders)} are given")
    return wsd.load(folder, embedder=embedders[0] if embedders else None)
