"""Pages beyond Markdown: code by its name, below a line `# src/…/mix.py::ScalarMix`; formulas; lines of Chinese."""

import ast
import html
import re
from pathlib import Path

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor

ROOT = Path(__file__).parents[1]
INCLUDE = re.compile(r"^# (?P<path>src/[\w/]+\.py)::(?P<name>[\w.]+)$", re.MULTILINE)
WIDE = "\u3000-\u303f\u4e00-\u9fff\uff00-\uffef“”"
CHINESE_BREAK = re.compile(rf"(?<=[{WIDE}])\n {{0,3}}(?=[{WIDE}])")
FORMULA = re.compile(r'<(?:span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</(?:span|div)>', re.DOTALL)


def source(path: str, name: str) -> str:
    """The text of a function, class or method of a file of this repository."""
    text = (ROOT / path).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        found = [child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part]
        if not found:
            raise LookupError(f"{path}: there is no {name}")
        node = found[0]
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]  # type: ignore[attr-defined]
    return "\n".join(line[node.col_offset :] for line in lines)  # type: ignore[attr-defined]


def with_sources(text: str) -> str:
    """The page, with the code below its names."""
    return INCLUDE.sub(lambda found: f"{found[0]}\n{source(found['path'], found['name'])}", text)


def joined(text: str) -> str:
    """The page without line breaks between Chinese characters, which browsers would show as blanks."""
    return CHINESE_BREAK.sub("", text)


class Sources(Preprocessor):
    """Code by its name, before blocks of code are read."""

    def run(self, lines: list[str]) -> list[str]:
        """The lines, with the code in them."""
        return with_sources("\n".join(lines)).splitlines()


class Joined(Preprocessor):
    """Chinese paragraphs as one line, after blocks of code are read."""

    def run(self, lines: list[str]) -> list[str]:
        """The lines, those of a paragraph in one."""
        return joined("\n".join(lines)).split("\n")


class Formulas(Postprocessor):
    """Formulas as MathML, which browsers draw by themselves."""

    def run(self, text: str) -> str:
        """The page, with MathML where arithmatex left TeX."""
        return FORMULA.sub(mathml, text)


def mathml(found: re.Match[str]) -> str:
    """One formula, between brackets `\\(…\\)` in a line or `\\[…\\]` on lines of its own."""
    inline = found[1] == "("
    formula = convert(html.unescape(found[2]).strip(), display="inline" if inline else "block")
    return formula if inline else f'<div class="formula">{formula}</div>'


class SiteMarkdown(Extension):
    """All of them."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Sources go before snippets and fences, paragraphs after fences, formulas after everything."""
        md.preprocessors.register(Sources(md), "sources", 40)
        md.preprocessors.register(Joined(md), "joined", 22)
        md.postprocessors.register(Formulas(md), "formulas", -10)


def makeExtension(**settings: object) -> Extension:  # noqa: N802
    """What Python-Markdown calls."""
    return SiteMarkdown(**settings)
