"""What a run writes down: what it knows of the model, measurements, a line each, and curves where TensorBoard is."""

import json
import math
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.files import replace_file, writing
from elmokit.pretrain.corpus import Manifest
from elmokit.pretrain.evaluation import Perplexity
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.trainer import StepResult
from elmokit.text.languages import AUTO

METRICS, CURVES = "metrics.jsonl", "tensorboard"
EVERY = 10  # steps between two points of a training curve: the file of weeks of steps can still be opened
INHERITED = {"language": "language", "name": "trained further from"}  # of a model that training starts from
MOST_FILES = 10  # named in a model's card


class Records:
    """The records in the folder of a run; what was written after the step, by a run that broke off, is taken back."""

    def __init__(self, folder: Path, *, step: int) -> None:
        self.path, self.curves, self.step = folder / METRICS, folder / CURVES, step
        self.concluded: int | None = None  # the step of the measurement that ended the run, if it ended
        if self.path.exists():
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = [line for line in lines if _step(line) <= step]
            replace_file(self.path, "".join(f"{line}\n" for line in kept).encode())
            last = json.loads(kept[-1]) if kept else {}
            self.concluded = last.get("step") if last.get("tokens_per_second") is None else None
        self._writer: Any = None
        if find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            with writing(self.curves):  # later points of a run that broke off do not count
                self._writer = SummaryWriter(str(self.curves), purge_step=step + 1, flush_secs=10)

    def add_step(self, result: StepResult, tokens_per_second: float) -> None:
        """Note how a step went, now and then."""
        if result.step // EVERY > self.step // EVERY:
            values = {"loss": result.loss, "learning_rate": result.learning_rate}
            self._draw(result.step, values | {"tokens_per_second": tokens_per_second})
        self.step = result.step

    def add_measurement(self, result: StepResult, tokens_per_second: float | None, held_out: Perplexity | None) -> None:
        """Note where the run stands, and its perplexity where text was held out; its last measurement but once."""
        if tokens_per_second is None and result.step == self.concluded:
            return
        names = ("forward", "backward", "average")
        found = held_out and {name: _number(getattr(held_out, name)) for name in names}
        line = {
            "step": result.step,
            "tokens": result.tokens,
            "loss": _number(result.loss),
            "learning_rate": result.learning_rate,
            "tokens_per_second": tokens_per_second,
            "perplexity": found,
            "held_out_targets": held_out and held_out.targets,
        }
        with writing(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        drawn = {f"perplexity/{name}": value for name, value in (found or {}).items() if value is not None}
        self._draw(result.step, drawn)

    def close(self) -> None:
        if self._writer is not None:
            with writing(self.curves):
                self._writer.close()

    def _draw(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is not None:
            with writing(self.curves):
                for name, value in values.items():
                    self._writer.add_scalar(name, value, step)


def known_before(name: str, recipe: Recipe, manifest: Manifest | None, start: Checkpoint | None) -> dict[str, str]:
    """What is known of a model before it is trained: its name, language, text and training; the recipe's word goes."""
    about, settings = {"name": name}, recipe.training
    if start is not None:
        about |= {ours: start.about[its] for its, ours in INHERITED.items() if its in start.about}
    if recipe.corpus.language != AUTO:
        about["language"] = recipe.corpus.language
    for part, title in (("train", "files"), ("valid", "held-out files")):
        if manifest and (names := [Path(file).name for file in manifest.files.get(part, ())]):
            more = [f"and {len(names) - MOST_FILES:,} more"] if len(names) > MOST_FILES else []
            about[title] = ", ".join(names[:MOST_FILES] + more)
    read = f"{settings.epochs:g} epochs, batches of {settings.batch} × {settings.unroll}"
    learnt = f"{settings.optimizer}, rate {settings.learning_rate:g} at most, dropout {settings.dropout:g}"
    return about | {"training": f"{read}; {learnt}"} | recipe.about


def _number(value: float) -> float | None:
    """None for what JSON has no number for."""
    return value if math.isfinite(value) else None


def _step(line: str) -> Any:
    """The step of a line; none counts for half a line, the last that a killed run has left."""
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return math.inf
