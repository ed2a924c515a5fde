"""Tasks that learn from labelled data: readers, scores, one training loop, one file per task; any embedder will do."""

from typing import TYPE_CHECKING

from elmokit.lazy import attach

if TYPE_CHECKING:
    from elmokit.tasks.predictor import Predictor
    from elmokit.tasks.registry import TASKS, load, read
    from elmokit.tasks.settings import FitOptions, FitSettings, InputSettings
    from elmokit.tasks.training import fit, train

__all__ = ["TASKS", "FitOptions", "FitSettings", "InputSettings", "Predictor", "fit", "load", "read", "train"]

_HOMES = {
    "TASKS": "elmokit.tasks.registry",
    "load": "elmokit.tasks.registry",
    "read": "elmokit.tasks.registry",
    "fit": "elmokit.tasks.training",
    "train": "elmokit.tasks.training",
    "Predictor": "elmokit.tasks.predictor",
    "FitOptions": "elmokit.tasks.settings",
    "FitSettings": "elmokit.tasks.settings",
    "InputSettings": "elmokit.tasks.settings",
}
__getattr__, __dir__ = attach(__name__, _HOMES)
