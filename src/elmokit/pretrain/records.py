"""What a run writes down as it goes: its measurements, a line each, and curves for TensorBoard."""

import json
import math
from pathlib import Path
from typing import Any

from elmokit.errors import OutputError
from elmokit.pretrain.perplexity import Perplexity
from elmokit.pretrain.tensorboard import Curves
from elmokit.pretrain.trainer import Progress

METRICS, CURVES = "metrics.jsonl", "tensorboard"
EVERY = 10  # steps between two points of a training curve: the file of weeks of steps can still be opened


class Records:
    """The records in the folder of a run; what was written after the step, by a run that broke off, is taken back."""

    def __init__(self, folder: Path, *, step: int) -> None:
        self.path = folder / METRICS
        if self.path.exists():
            self._write("w", _lines_until(step, self.path))
        self.curves = Curves(folder / CURVES, step=step)
        self.step = step

    def stepped(self, progress: Progress, tokens_per_second: float) -> None:
        """Note how a step went, now and then."""
        if progress.step // EVERY > self.step // EVERY:
            values = {"loss": progress.loss, "learning_rate": progress.learning_rate}
            self.curves.add(progress.step, values | {"tokens_per_second": tokens_per_second})
        self.step = progress.step

    def measured(self, progress: Progress, tokens_per_second: float | None, held_out: Perplexity | None) -> None:
        """Note where the run stands, and its perplexity where text was held out."""
        found = held_out and {name: getattr(held_out, name) for name in ("forward", "backward", "average")}
        line = {
            "step": progress.step,
            "tokens": progress.tokens,
            "loss": progress.loss if math.isfinite(progress.loss) else None,
            "learning_rate": progress.learning_rate,
            "tokens_per_second": tokens_per_second,
            "perplexity": found,
            "held_out_targets": held_out and held_out.targets,
        }
        self._write("a", json.dumps(line) + "\n")
        self.curves.add(progress.step, {f"perplexity/{name}": value for name, value in (found or {}).items()})

    def close(self) -> None:
        """Write what is still waiting."""
        self.curves.close()

    def _write(self, mode: str, text: str) -> None:
        try:
            with self.path.open(mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror}") from error


def _lines_until(step: int, path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return "".join(f"{line}\n" for line in lines if _step(line) <= step)


def _step(line: str) -> Any:
    """The step of a line; none counts for half a line, the last that a killed run has left."""
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return math.inf
