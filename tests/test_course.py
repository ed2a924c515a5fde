"""The course says what its code prints: every chapter runs, in both languages, and one of each as a real notebook."""

import ast
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.course import COURSE, cells, differences, notebook, pages, run, with_outputs  # noqa: E402
from benchmarks.site_markdown import INCLUDE, source  # noqa: E402

CHAPTERS = [page for page in pages() if page.name != "index.md"]


def title(page):
    return f"{page.parent.name}/{page.stem}"


@pytest.mark.parametrize("page", CHAPTERS, ids=title)
def test_a_chapter_prints_what_it_says(page):
    text = page.read_text(encoding="utf-8")
    assert not differences(text, run(text, page.parent.name)), "`make course` writes what is printed now"


@pytest.mark.parametrize("page", CHAPTERS, ids=title)
def test_a_chapter_has_all_its_parts(page):
    text = page.read_text(encoding="utf-8")
    assert "$$" in text
    assert INCLUDE.search(text)
    assert any(cell.output for cell in cells(text))
    assert re.search(r"!\[.+\]\(\.\./pictures/.+\.svg\)", text)
    answers = text.split("<details")[1]
    assert answers.startswith(' markdown="1"><summary>')
    assert "\n1. " in answers
    assert "\n2. " in answers


def test_both_languages_have_the_same_chapters_and_code():
    english, chinese = ([page for page in pages() if page.parent.name == language] for language in ("en", "zh"))
    assert [page.name for page in english] == [page.name for page in chinese]
    for one, other in zip(english, chinese, strict=True):
        texts = [page.read_text(encoding="utf-8") for page in (one, other)]
        assert INCLUDE.findall(texts[0]) == INCLUDE.findall(texts[1])
        assert [cell.language for cell in cells(texts[0])] == [cell.language for cell in cells(texts[1])]


def test_differences_are_found():
    page = "```python\nprint()\n```\n\n```text\nbank 0.80 12,000\n```\n"
    assert not differences(page, ["bank 0.81  12,100\n"])
    assert differences(page, ["bank 0.83 12,000\n"])
    assert differences(page, ["bank 0.80 13,000\n"])
    assert differences(page, ["tank 0.80 12,000\n"])
    assert differences(page, ["bank 0.80 12,000\nmore\n"])
    trained = f"<!-- trained here -->\n\n{page}"
    assert not differences(trained, ["tank 1.80 1\n"])
    assert differences(trained, [""])
    assert cells(with_outputs(page, ["new\n"]))[0].output == "new\n"
    assert with_outputs(trained, ["bank 0.80 12,000\n"]) == trained


def test_code_is_included_by_its_name():
    code = source("src/elmokit/model/mix.py", "ScalarMix.forward")
    assert ast.parse(code).body[0].name == "forward"
    with pytest.raises(LookupError, match="there is no ScalarMix.backward"):
        source("src/elmokit/model/mix.py", "ScalarMix.backward")


@pytest.mark.parametrize("page", pages(), ids=title)
def test_notebooks_stand_alone(page, tmp_path):
    made = notebook(page, tmp_path)
    nbformat.validate(made)
    text = "".join(cell.source for cell in made.cells)
    assert ".svg)" not in text
    for path, name in INCLUDE.findall(text):
        assert f"::{name}\n{source(path, name)}" in text


def test_a_notebook_runs_in_a_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    monkeypatch.setenv("LANGUAGE", "zh_CN.UTF-8")
    page = COURSE / "zh" / "01-one-hot.md"
    made = notebook(page, tmp_path)
    made.cells[0].source = f"%cd -q {tmp_path}"
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    NotebookClient(made, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in made.cells[1:] if cell.cell_type == "code"]
    printed = ["".join(one.text for one in cell.outputs if one.get("name") == "stdout") for cell in code]
    assert not differences(page.read_text(encoding="utf-8"), printed)
