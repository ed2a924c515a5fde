"""The demo's page: one file that needs nothing from elsewhere, its plots in SVG."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from math import log10
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from elmokit.cli.demo import SAME_OR_NOT, Uses, blank
from elmokit.lexicon.plots import COLORS, HEIGHT, MARGIN, WIDTH, plane, scatter_svg, svg
from elmokit.translation import in_chinese, translate

if TYPE_CHECKING:
    from elmokit.cli.demo import Guess
    from elmokit.lexicon.substitution import Substitutes
    from elmokit.text.brackets import BracketedWord

PAGE = Path(__file__).with_name("demo.html")
TEXT = re.compile(r"(<(title|h1|h2|p)>)(.*?)(?=</\2>)", re.DOTALL)
SHADES = ("#333", "#bbb")


def draw(uses: Iterable[Uses], guesses: "Iterable[Guess]", points: Mapping[int, float]) -> str:
    """The whole page; `points` are held-out perplexities by step."""
    page = PAGE.read_text(encoding="utf-8").replace('lang="en"', 'lang="zh"' if in_chinese() else 'lang="en"')
    return Template(TEXT.sub(lambda found: f"{found[1]}{translate(found[3])}", page)).substitute(
        words="\n".join(map(word_section, uses)),
        guesses="\n".join(guess_section(*guess) for guess in guesses),
        curve=_figure(curve_plot(points), "steps of training, perplexity on a logarithmic scale"),
    )


def word_section(uses: Uses) -> str:
    """The two plots of a word, and its sentences."""
    lists = {sense: f'<ol style="border-color: {COLORS[sense]}">' for sense in sorted(set(uses.senses.tolist()))}
    for use, sense in zip(uses.sentences, uses.senses.tolist(), strict=True):
        before, word, after = map(escape, use.context.around(use.position))
        lists[sense] += f"<li>{before}<b>{word}</b>{after}</li>"
    plots = _figure(cosine_plot(uses), "mean cosine of two uses") + _figure(scatter_plot(uses), "each use, top layer")
    return f'<h3>{escape(uses.word)}</h3>\n<div class="word">{plots}{"</ol>".join(lists.values())}</ol></div>'


def cosine_plot(uses: Uses) -> str:
    """A pair of bars for each layer."""
    layers, base = len(uses.vectors), HEIGHT - MARGIN
    group = (WIDTH - MARGIN) / layers
    parts = [_line(MARGIN, base, WIDTH, base)]
    for side, (name, cosines) in enumerate(zip(SAME_OR_NOT, uses.cosines, strict=True)):
        for layer, cosine in enumerate(cosines.tolist()):
            x, top = MARGIN + group * (layer + 0.18 + 0.34 * side), base - max(0, cosine) * (base - 2 * MARGIN)
            box = f'x="{x:.1f}" y="{top:.1f}" width="{0.3 * group:.1f}" height="{base - top:.1f}"'
            parts.append(f'<rect {box} fill="{SHADES[side]}"/>')
            parts.append(_text(x + 0.15 * group, top - 5, f"{cosine:.2f}"))
        x = MARGIN + 10 + 150 * side
        parts.append(f'<rect x="{x}" y="4" width="12" height="12" fill="{SHADES[side]}"/>')
        parts.append(_text(x + 18, 14, translate(name), anchor="start"))
    names = ("static, layer 0", *(f"layer {layer}" for layer in range(1, layers)))
    parts.extend(_text(MARGIN + group * (layer + 0.5), base + 18, translate(name)) for layer, name in enumerate(names))
    return svg(parts, translate(f"Cosines of {uses.word} by layer"))


def scatter_plot(uses: Uses) -> str:
    """A dot for each sentence."""
    titles = [use.context.text for use in uses.sentences]
    name = translate(f"Uses of {uses.word}, coloured by sense")
    return scatter_svg(plane(uses.vectors[-1]), uses.senses.tolist(), titles, name)


def guess_section(query: "BracketedWord", guess: "Substitutes") -> str:
    """A bar for each word that could stand in the gap."""
    largest = guess.candidates[0].probability
    rows = (
        f'<span>{escape(one.word)}</span><i style="width: {100 * one.probability / largest:.1f}%"></i>'
        f"<small>{one.probability:.1%}</small>"
        for one in guess.candidates
    )
    return f'<h3>{escape(blank(query))}</h3>\n<div class="bars">{"".join(rows)}</div>'


def curve_plot(points: Mapping[int, float]) -> str:
    """Perplexity by step, on a logarithmic scale."""
    last, values = max(points), [log10(value) for value in points.values()]
    low, span = min(values), max(max(values) - min(values), 1e-6)
    base = HEIGHT - MARGIN
    dots = [
        (MARGIN + (WIDTH - 3 * MARGIN) * step / last, base - (value - low) / span * (base - MARGIN))
        for step, value in zip(points, values, strict=True)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
    parts = [
        _line(MARGIN, base + 8, WIDTH - MARGIN, base + 8),
        f'<polyline points="{path}" fill="none" stroke="{COLORS[0]}" stroke-width="2"/>',
    ]
    for (x, y), (step, perplexity) in zip(dots, points.items(), strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLORS[0]}"/>')
        parts.append(_text(x + 6, y - 8, f"{perplexity:,.0f}", anchor="start"))
        parts.append(_text(x, base + 24, f"{step:,}"))
    return svg(parts, translate("Perplexity falls"))


def _figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{translate(caption)}</figcaption></figure>"


def _line(left: float, top: float, right: float, bottom: float) -> str:
    return f'<path d="M{left} {top}L{right} {bottom}" stroke="#999"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
