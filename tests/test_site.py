"""The site is built without a warning, opens from a disk in both languages, and is searched without a server."""

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SLOW = 60_000  # milliseconds, on a busy machine


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built beside a copy of the pages, for several processes may run these tests."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for name in ("src", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


def test_every_page_is_in_the_navigation(site):
    nav = re.search(r"^nav:\n(.*)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    named = set(re.findall(r": (\S+\.md)$", nav[1], re.MULTILINE))
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")}
    assert pages <= named
    assert all((site / page).with_suffix(".html").exists() for page in pages)


def test_nothing_is_fetched_from_elsewhere(site):
    for page in site.glob("**/*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="https?:', text), page
        assert not re.findall(r'<link[^>]+rel="(?:stylesheet|preload|preconnect)"[^>]+href="https?:', text), page


def test_links_of_the_built_pages_lead_somewhere(site):
    texts = {page: page.read_text(encoding="utf-8") for page in site.glob("**/*.html")}
    names = {page: set(re.findall(r' id="?([^" >]+)', text)) for page, text in texts.items()}
    for page, text in texts.items():
        for link in re.findall(r'<(?:a|img|link|script)\b[^>]*? (?:href|src)="([^"]+)"', text):
            path, _, anchor = unquote(html.unescape(link)).partition("#")
            if page.name == "404.html" or re.match(r"[a-z]+:", path):
                continue
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), (page, link)
            assert not anchor or anchor in names[target], (page, link)


def test_docstrings_code_and_formulas_are_in_it(site):
    reference = (site / "reference.html").read_text(encoding="utf-8")
    assert "Load a model by name" in reference
    assert 'id="elmokit.Elmo.embed"' in reference
    chapter = (site / "course" / "zh" / "08-mix.html").read_text(encoding="utf-8")
    assert "tensordot" in chapter
    assert chapter.count("<math") > 10
    for page in site.glob("**/*.html"):
        text = page.read_text(encoding="utf-8")
        assert "arithmatex" not in text, page
        assert not [formula for formula in re.findall(r"<math.*?</math>", text, re.DOTALL) if "\\" in formula], page


def test_chinese_has_no_blanks_where_lines_end(site):
    chapter = (site / "course" / "zh" / "04-language-model.html").read_text(encoding="utf-8")
    assert "要把几步的惊异度相加才能比" in chapter


def test_a_chinese_page_has_chinese_tabs(site):
    tabs = re.search(r'<ul class="md-tabs__list">.*?</ul>', (site / "zh" / "words.html").read_text("utf-8"), re.DOTALL)
    assert "课程" in tabs[0]
    assert "Guides" not in tabs[0]


@pytest.fixture(scope="module")
def browser(site):
    if not CHROMIUM:
        pytest.skip("needs Chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=SLOW)
        yield browser
        browser.close()


@pytest.mark.parametrize(
    ("start", "language", "query", "found"),
    [
        ("index.html", "en", "bilm-tf checkpoints", "formats.html"),
        ("zh/index.html", "zh", "词向量", "/zh/"),
    ],
)
def test_search_works_from_a_disk(site, browser, start, language, query, found):
    page = browser.new_page()
    page.goto((site / start).as_uri())
    assert page.evaluate("document.documentElement.lang") == language
    page.keyboard.press("Control+k")
    page.keyboard.type(query)
    page.wait_for_selector(f'a[href*="{found}"][href*="?h="]', timeout=SLOW)
    page.close()
