"""How training went: written down, and drawn."""

from pathlib import Path
from typing import Any

import msgspec

from elmokit.errors import MissingExtraError
from elmokit.files import read_json, replacing, writing
from elmokit.tasks.inputs import MixReport
from elmokit.tasks.task import FitSettings, Scores

REPORT, WEIGHTS, CURVE = "report.json", "layer-weights.png", "learning-curve.png"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


class EpochReport(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over the training data."""

    number: int
    loss: float
    """The mean over batches."""
    rate: float
    """Of learning."""
    scores: Scores
    """On the dev data; the first is the one that counts."""
    mixes: list[MixReport]
    seconds: float

    @property
    def score(self) -> float:
        """The one that counts."""
        return next(iter(self.scores.values()))


class TrainingReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of a training run that is worth keeping."""

    training: FitSettings
    train_examples: int
    dev_examples: int
    sample: float
    """The share of the training data that was learned from."""
    parameters: int
    """Those that may learn."""
    embedders: list[str]
    """Their names; mixes tell them by number."""
    epochs: list[EpochReport]
    best: int
    """The number of the epoch whose weights are kept."""
    seconds: float


def best_of(epochs: list[EpochReport]) -> EpochReport:
    """The first epoch with the highest score; the last one while all score 0."""
    best = max(epochs, key=lambda epoch: epoch.score)
    return best if best.score > 0 else epochs[-1]


def stalls(epochs: list[EpochReport]) -> int:
    """How many times two epochs in a row brought no new best score."""
    best, waited, count = 0.0, 0, 0
    for epoch in epochs:
        if epoch.score > best or not best:
            best, waited = epoch.score, 0
            continue
        waited += 1
        count += waited % 2 == 0
    return count


def write_plots(folder: Path) -> None:
    """Draw the learning curve and the layers' weights from the report in a task's folder."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError('pictures of a run need matplotlib: pip install "elmokit[plots]"') from None
    report = read_json(folder / REPORT, TrainingReport, missing="there is no finished run to draw")
    for name, draw in ((CURVE, _draw_curve), (WEIGHTS, _draw_weights)):
        if name == CURVE or report.epochs[report.best - 1].mixes:
            figure = Figure(figsize=(6, 4), dpi=150, layout="constrained")
            draw(figure.add_subplot(), report)
            with replacing(folder / name) as partial, writing(folder / name):
                figure.savefig(partial, format="png")


def _draw_curve(axes: Any, report: TrainingReport) -> None:
    numbers = [epoch.number for epoch in report.epochs]
    for name, color in zip(report.epochs[0].scores, COLORS, strict=False):
        axes.plot(numbers, [epoch.scores[name] for epoch in report.epochs], color=color, label=f"dev {name}")
    axes.axvline(report.best, color="#999999", linestyle=":", label="kept")
    axes.set(xlabel="epoch", ylabel="score")
    losses = axes.twinx()
    losses.plot(numbers, [epoch.loss for epoch in report.epochs], color="#999999", label="training loss")
    losses.set(ylabel="loss")
    axes.legend(handles=[*axes.lines, *losses.lines], frameon=False)


def _draw_weights(axes: Any, report: TrainingReport) -> None:
    mixes = report.epochs[report.best - 1].mixes
    width = 0.8 / len(mixes)
    for number, mix in enumerate(mixes):
        left = [layer + number * width for layer in range(len(mix.weights))]
        name = Path(report.embedders[mix.embedder]).name.replace("$", r"\$")
        label = f"{name}, {mix.place}, γ = {mix.gamma:.2f}"
        axes.bar(left, mix.weights, width, align="edge", color=COLORS[number % len(COLORS)], label=label)
    layers = max(len(mix.weights) for mix in mixes)
    axes.set(xlabel="layer", ylabel="weight", xticks=[layer + 0.4 for layer in range(layers)])
    axes.set_xticklabels(range(layers))
    axes.legend(frameon=False)
