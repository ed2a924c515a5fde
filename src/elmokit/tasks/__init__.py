"""Tasks that learn from labelled data: readers, scores, one training loop, one file a task; any embedder will do."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmokit.tasks.loading import load
    from elmokit.tasks.saved import Predictor
    from elmokit.tasks.settings import FitSettings, InputSettings
    from elmokit.tasks.training import train

__all__ = ["FitSettings", "InputSettings", "Predictor", "load", "train"]

_HOMES = {
    "load": "elmokit.tasks.loading",
    "train": "elmokit.tasks.training",
    "Predictor": "elmokit.tasks.saved",
    "FitSettings": "elmokit.tasks.settings",
    "InputSettings": "elmokit.tasks.settings",
}


def __getattr__(name: str) -> Any:
    """Import torch only when something that needs it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'elmokit.tasks' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
