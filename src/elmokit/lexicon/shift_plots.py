"""One word over slices of time: its distance from the first slice and from the one before, and examples of each."""

import io
from collections.abc import Callable
from html import escape
from pathlib import Path
from string import Template

from elmokit.files import replace_file
from elmokit.lexicon.occurrences import Occurrence
from elmokit.lexicon.plots import COLORS, LONGEST_SHOWN, check_plot, drawable, figure_class, font_families
from elmokit.lexicon.settings import Measure
from elmokit.lexicon.shift import Change

PAGE = Path(__file__).with_name("shift.html")
NAMES = {"apd": "APD", "excess": "APD excess", "prt": "PRT", "jsd": "JSD", "static": "static distance"}
WIDTH, HEIGHT, MARGIN = 800, 320, 60  # of the chart of a page
REACH = 40  # characters beside the word in a picture
Line = list[tuple[int, float]]
"""A number of a slice and a distance, for those slices that have one."""


def write_shift_plot(path: Path | str, change: Change, *, by: Measure | None = None) -> None:
    """Write a .png or an .html by the measure that words are ranked by, or another; it appears when it is complete."""
    path = Path(path)
    check_plot(path)
    replace_file(path, DRAWERS[path.suffix](change, by or change.by))


def trajectories(change: Change, by: Measure) -> dict[str, Line]:
    """The distances of each later slice from the first, and from the one before.

    The first slice is at 0 from itself but by APD, the mean over all pairs.
    """
    pairs = {(one.first, one.last): getattr(one, by) for one in change.distances}
    later, names = range(1, len(change.slices)), change.slices
    earlier = {"from the first": [0] * len(later), "from the one before": [number - 1 for number in later]}
    lines = {}
    for label, starts in earlier.items():
        found = [(number, pairs[names[start], names[number]]) for start, number in zip(starts, later, strict=True)]
        lines[label] = [(number, value) for number, value in found if value is not None]
    if by != "apd":
        lines["from the first"].insert(0, (0, 0.0))
    return lines if len(later) > 1 else {"from the first": lines["from the first"]}


def about(change: Change) -> str:
    """All measures of the first slice and the last."""
    found = [(NAMES[name], getattr(change.overall, name)) for name in NAMES]
    values = [f"{name} {value:.3f}" for name, value in found if value is not None]
    chance = [f"p = {change.overall.p:.4f}"] if change.overall.p is not None else []
    return f"{change.overall.first} to {change.overall.last}: {', '.join(values + chance)}"


def draw_page(change: Change, by: Measure) -> bytes:
    """A page of its own that needs nothing from elsewhere."""
    slices = []
    for number, name in enumerate(change.slices):
        words = ", ".join(change.substitutes[number]) if change.substitutes else ""
        items = "".join(f"<li>{_marked(example)}</li>" for example in change.examples[number])
        head = f"<h2>{escape(name)}, {change.counts[number]:,}</h2>"
        slices.append(f'<section>{head}<div class="words">{escape(words)}</div><ul>{items}</ul></section>')
    values = {"title": escape(change.word), "about": escape(about(change)), "chart": _chart(change, by)}
    page = Template(PAGE.read_text(encoding="utf-8")).substitute(values, slices="\n".join(slices))
    return page.encode("utf-8", "replace")


def draw_picture(change: Change, by: Measure) -> bytes:
    """A PNG of the distances, with an example of each slice below."""
    from matplotlib import rc_context

    families = font_families()
    with rc_context({"font.family": families}):
        figure = figure_class()(figsize=(8, 5 + 0.5 * len(change.slices)), dpi=150, layout="constrained")
        axes = figure.add_subplot()
        for color, (label, line) in zip(COLORS, trajectories(change, by).items(), strict=False):
            axes.plot([x for x, _ in line], [y for _, y in line], marker="o", color=color, label=label)
        names = [
            drawable(f"{name}\n{count:,}", families) for name, count in zip(change.slices, change.counts, strict=True)
        ]
        axes.set_xticks(range(len(names)), names)
        axes.set_title(drawable(f"{change.word}\n{about(change)}", families), fontsize=10)
        axes.set(xlim=(-0.3, len(names) - 0.7), ylabel=NAMES[by])
        axes.axhline(0, color="#ddd", zorder=0)
        axes.legend(frameon=False)
        lines = [
            f"{name}: {example.context.bracketed(example.position, reach=REACH)}"
            for name, some in zip(change.slices, change.examples, strict=True)
            for example in some[:1]
        ]
        axes.set_xlabel(drawable("\n".join(lines), families), loc="left", fontsize=8, labelpad=12)
        picture = io.BytesIO()
        figure.savefig(picture, format="png")
    return picture.getvalue()


DRAWERS: dict[str, Callable[[Change, Measure], bytes]] = {".png": draw_picture, ".html": draw_page}


def _chart(change: Change, by: Measure) -> str:
    """The distances as SVG."""
    lines = trajectories(change, by)
    most = max([value for line in lines.values() for _, value in line], default=1.0) or 1.0
    step = (WIDTH - 2 * MARGIN) / max(len(change.slices) - 1, 1)

    def place(number: int, value: float) -> tuple[float, float]:
        return MARGIN + step * number, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * value / most

    parts = [
        f'<text x="{MARGIN + step * number:.1f}" y="{HEIGHT - MARGIN / 2}" text-anchor="middle">{escape(name)}</text>'
        for number, name in enumerate(change.slices)
    ]
    parts += [f'<text x="8" y="{place(0, value)[1]:.1f}">{value:.3f}</text>' for value in (0, most)]
    for row, (color, (label, line)) in enumerate(zip(COLORS, lines.items(), strict=False)):
        points = [place(*point) for point in line]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>' for x, y in points]
        legend = f"{NAMES[by]} {label}"
        parts.append(f'<text x="{MARGIN}" y="{20 + 18 * row}" style="fill: {color}">{escape(legend)}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Distances">{"".join(parts)}</svg>'


def _marked(example: Occurrence) -> str:
    before, word, after = map(escape, example.context.around(example.position, reach=LONGEST_SHOWN))
    return f"{before}<b>{word}</b>{after}"
