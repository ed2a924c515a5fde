"""Every link within the project leads to a file that is there, and to a heading that is in it."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/elmokit/bundled/*/README.md")])
CODE = re.compile(r"^(```+).*?^\1|``?[^`\n]+``?", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"""(?:\]\(\s*<?|\bsrc=")([^)\s>"]+)""")
HEADING = re.compile(r"^#+ (.+?)(?: \{[^}]*\})?$", re.MULTILINE)
ID = re.compile(r"""\bid=["']([^"']+)|\{[^}\n]*#([\w-]+)[^}\n]*\}""")


def links(page: Path) -> list[str]:
    """Where a page's links and pictures lead, those within blocks and pieces of code apart."""
    return LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))


@cache
def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub and the site make them, and of elements that have one."""
    text = re.sub(r"^(```+).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "") for heading in HEADING.findall(text)]
    return {slugify(case="lower")(heading, "-") for heading in headings} | {a or b for a, b in ID.findall(text)}


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in links(page):
        path, _, anchor = unquote(link).partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target.resolve())):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert not broken(page)


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One `code` heading\n[a](#one-code-heading) [b](page.md#one-code-heading) [c](https://x.y) `[d](no.md)`\n"
        "```text\n[e](no.md)\n# two\n```\n[f](no.md) [g](#two) ![h](no.png) [i](page.md#three)\n"
        "## 中文标题\n[j](#中文标题)\n",
        encoding="utf-8",
    )
    assert broken(page) == ["no.md", "#two", "no.png", "page.md#three"]


def test_there_are_links_to_check():
    assert sum(len(links(page)) for page in PAGES) > 100
