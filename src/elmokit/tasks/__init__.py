"""Tasks that learn from labelled data: readers, scores, one training loop, one file per task; any embedder will do."""

from typing import TYPE_CHECKING

from elmokit.lazy import attach

if TYPE_CHECKING:
    from elmokit.tasks.predictor import Predictor
    from elmokit.tasks.task import FitOptions, FitSettings, InputSettings
    from elmokit.tasks.training import TASKS, fit, load, read, train

__all__ = ["TASKS", "FitOptions", "FitSettings", "InputSettings", "Predictor", "fit", "load", "read", "train"]

_HOMES = dict.fromkeys(("TASKS", "fit", "load", "read", "train"), "elmokit.tasks.training")
_HOMES |= dict.fromkeys(("FitOptions", "FitSettings", "InputSettings"), "elmokit.tasks.task")
_HOMES["Predictor"] = "elmokit.tasks.predictor"
__getattr__, __dir__ = attach(__name__, _HOMES)
