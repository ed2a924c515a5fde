"""The occurrences of a word as points in a plane, coloured by sense: a picture, or a page to point at."""

import io
import json
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from elmokit.embedder import Vectors
from elmokit.errors import ConfigError, MissingExtraError
from elmokit.files import replace_file, replacing
from elmokit.lexicon.occurrences import Occurrence
from elmokit.lexicon.senses import Sense, Senses, sense_vectors

# Okabe and Ito's colours, which the colour-blind can tell apart too; yellow, too pale on white, is left out.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
LONGEST_SHOWN = 300  # characters on either side of the word
LONGEST_INLINE = 60  # the same in a notebook, which keeps whatever it shows
WIDTH, HEIGHT, MARGIN = 480, 260, 36  # of a plot in SVG
PAGE = Path(__file__).with_name("senses.html")
CHINESE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("Microsoft YaHei", "SimHei", "PingFang SC", "Heiti SC", "Arial Unicode MS"),
)


def plane(vectors: Vectors) -> Vectors:
    """The two principal components of the directions in which occurrences differ from their mean, (N, 2)."""
    units = sense_vectors(vectors)
    left, singular, _ = np.linalg.svd(units - units.mean(axis=0), full_matrices=False)
    points = np.zeros((len(units), 2), np.float32)
    points[:, : len(singular)] = (left * singular)[:, :2]
    return points


def check_plot(path: Path) -> None:
    """Raise at once what `write_plot` would raise in the end."""
    if path.suffix not in DRAWERS:
        raise ConfigError(f"{path}: unknown ending {path.suffix!r}: a plot is written as {' or '.join(DRAWERS)}")
    if path.suffix == ".png":
        figure_class()
    with replacing(path, keep=False):
        pass


def write_plot(path: Path | str, senses: Senses) -> None:
    """Write a .png or an .html; the file appears when it is complete."""
    path = Path(path)
    check_plot(path)
    replace_file(path, DRAWERS[path.suffix](senses))


def draw_page(senses: Senses) -> bytes:
    """A page of its own that needs nothing from elsewhere: pointing at an occurrence shows its sentence."""
    points = plane(np.stack([one.vector for one in senses.occurrences])).tolist()
    apart = "" if len(senses.senses) == 1 or senses.silhouette is None else f", silhouette {senses.silhouette:.2f}"
    content = {
        "about": f"{len(senses.occurrences):,} occurrences, two principal components; {senses.claim}{apart}",
        "senses": [
            {**_legend(number, sense, senses.noun), "examples": [_pieces(example) for example in sense.examples]}
            for number, sense in enumerate(senses.senses)
        ],
        "points": [
            {"x": x, "y": y, "sense": label, "sentence": _pieces(found), "document": found.context.document}
            for (x, y), label, found in zip(points, senses.labels.tolist(), senses.occurrences, strict=True)
        ],
    }
    # Within a page's script "<" could end it; as \u003c it means the same to JSON.
    data = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    page = Template(PAGE.read_text(encoding="utf-8")).substitute(title=escape(senses.word), data=data)
    return page.encode("utf-8", "replace")


def draw_inline(senses: Senses) -> str:
    """What a notebook shows: the plot, and each sense with its share, keywords and most central sentences."""
    points = plane(np.stack([one.vector for one in senses.occurrences]))
    titles = ["".join(_pieces(one, LONGEST_INLINE)) for one in senses.occurrences]
    plot = scatter_svg(points, senses.labels.tolist(), titles, f"Occurrences of {senses.word}, coloured by sense")
    parts = [f"<h4>{escape(senses.word)}: {senses.claim}</h4>", f'<div style="max-width: {WIDTH}px">{plot}</div>']
    for number, sense in enumerate(senses.senses):
        legend = _legend(number, sense, senses.noun)
        parts.append(f'<p><b style="color: {legend["color"]}">{legend["title"]}</b> {escape(legend["words"])}</p><ul>')
        for example in sense.examples:
            before, word, after = map(escape, _pieces(example))
            parts.append(f"<li>{before}<b>{word}</b>{after}</li>")
        parts.append("</ul>")
    return "".join(parts)


def scatter_svg(points: Vectors, labels: Sequence[int], titles: Sequence[str], label: str) -> str:
    """A dot for each point, (N, 2), in the colour of its label; pointing at it shows its title."""
    low, high = points.min(axis=0), points.max(axis=0)
    scale = min((WIDTH - 2 * MARGIN) / max(high[0] - low[0], 1e-6), (HEIGHT - 2 * MARGIN) / max(high[1] - low[1], 1e-6))
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#fafafa" stroke="#ddd"/>']
    radius = 8 if len(points) < 100 else 4
    for point, number, title in zip(points, labels, titles, strict=True):
        x, y = (point - (low + high) / 2) * scale + (WIDTH / 2, HEIGHT / 2)
        look = f'r="{radius}" fill="{COLORS[number % len(COLORS)]}" fill-opacity=".8"'
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" {look}><title>{escape(title)}</title></circle>')
    return svg(parts, label)


def svg(parts: Iterable[str], label: str) -> str:
    """A plot of these parts; the label is for those who cannot see it."""
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def draw_picture(senses: Senses) -> bytes:
    """A PNG of the scatter plot, with the senses' shares and keywords beside their colours."""
    from matplotlib import rc_context

    families = font_families()
    points = plane(np.stack([one.vector for one in senses.occurrences]))
    with rc_context({"font.family": families}):
        figure = figure_class()(figsize=(8, 6), dpi=150, layout="constrained")
        axes = figure.add_subplot()
        for number, sense in enumerate(senses.senses):
            legend = _legend(number, sense, senses.noun, count=5)
            label = drawable(f"{legend['title']}: {legend['words']}", families)
            x, y = points[senses.labels == number].T
            axes.scatter(x, y, s=18, alpha=0.75, linewidths=0, color=legend["color"], label=label)
        axes.set_title(drawable(f"{senses.word}: {len(points):,} occurrences", families))
        axes.set(xticks=[], yticks=[], xlabel="two principal components")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), frameon=False)
        picture = io.BytesIO()
        figure.savefig(picture, format="png")
    return picture.getvalue()


DRAWERS: dict[str, Callable[[Senses], bytes]] = {".png": draw_picture, ".html": draw_page}


def figure_class() -> Any:
    """matplotlib's figure; an error says how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a picture needs matplotlib", "plots") from None
    return Figure


def font_families() -> list[str]:
    """The fonts of a picture: one for most scripts, and those for Chinese that are here."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(font for font in CHINESE_FONTS if font in installed)]


def drawable(text: str, families: list[str]) -> str:
    """The text with a question mark for what no font has, and nothing that would be taken for a formula."""
    from matplotlib import font_manager

    fonts = [font_manager.get_font(font_manager.findfont(family)) for family in families]
    known = (c == "\n" or any(font.get_char_index(ord(c)) for font in fonts) for c in text)
    return "".join(c if seen else "?" for c, seen in zip(text, known, strict=True)).replace("$", r"\$")


def _legend(number: int, sense: Sense, noun: str, count: int | None = None) -> dict[str, str]:
    """The colour of a sense, its share and its first keywords."""
    words, title = ", ".join(keyword.word for keyword in sense.words[:count]), f"{noun} {number + 1}, {sense.share:.0%}"
    return {"color": COLORS[number % len(COLORS)], "title": title, "words": words}


def _pieces(occurrence: Occurrence, reach: int = LONGEST_SHOWN) -> tuple[str, str, str]:
    return occurrence.context.around(occurrence.position, reach=reach)
