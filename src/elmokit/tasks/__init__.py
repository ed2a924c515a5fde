"""Tasks that learn from labelled data: readers, scores, one training loop, one file a task; any embedder will do."""

from typing import TYPE_CHECKING

from elmokit.lazy import attach

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
__getattr__, __dir__ = attach(__name__, _HOMES)
