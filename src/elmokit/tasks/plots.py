"""Pictures of a training run: what the layers came to count for, and how the scores went."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elmokit.errors import MissingExtraError
from elmokit.files import replace_file
from elmokit.tasks.report import Report, read_report

WEIGHTS, CURVE = "layer-weights.png", "learning-curve.png"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


def write_plots(folder: Path) -> None:
    """Draw both from the report in a task's folder."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError('pictures of a run need matplotlib: pip install "elmokit[plots]"') from None
    report = read_report(folder)
    replace_file(folder / CURVE, _drawn(Figure, _draw_curve, report))
    if report.epochs[report.best - 1].mixes:
        replace_file(folder / WEIGHTS, _drawn(Figure, _draw_weights, report))


def _drawn(figure_class: Any, draw: Callable[[Any, Report], None], report: Report) -> bytes:
    figure = figure_class(figsize=(6, 4), dpi=150, layout="constrained")
    draw(figure.add_subplot(), report)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _draw_curve(axes: Any, report: Report) -> None:
    numbers = [epoch.number for epoch in report.epochs]
    for name, color in zip(report.epochs[0].scores, COLORS, strict=False):
        axes.plot(numbers, [epoch.scores[name] for epoch in report.epochs], color=color, label=f"dev {name}")
    axes.axvline(report.best, color="#999999", linestyle=":", label="kept")
    axes.set(xlabel="epoch", ylabel="score")
    losses = axes.twinx()
    losses.plot(numbers, [epoch.loss for epoch in report.epochs], color="#999999", label="training loss")
    losses.set(ylabel="loss")
    axes.legend(handles=[*axes.lines, *losses.lines], frameon=False)


def _draw_weights(axes: Any, report: Report) -> None:
    mixes = report.epochs[report.best - 1].mixes
    width = 0.8 / len(mixes)
    for number, mix in enumerate(mixes):
        places = [layer + number * width for layer in range(len(mix.weights))]
        name = Path(report.embedders[mix.embedder]).name.replace("$", r"\$")
        label = f"{name}, {mix.place}, γ = {mix.gamma:.2f}"
        axes.bar(places, mix.weights, width, align="edge", color=COLORS[number % len(COLORS)], label=label)
    layers = max(len(mix.weights) for mix in mixes)
    axes.set(xlabel="layer", ylabel="weight", xticks=[layer + 0.4 for layer in range(layers)])
    axes.set_xticklabels(range(layers))
    axes.legend(frameon=False)
