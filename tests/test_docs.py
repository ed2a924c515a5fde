"""Every block of code in the documentation runs."""

import re
import shutil
import subprocess
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest
from specimens import FIXTURES

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/zh/*.md")])  # the course: test_course.py
PAGES_WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]
EACH_BY_ITSELF = "import sys\nfor code in sys.argv[1:]: exec(code, {'__name__': '__main__'})"  # torch is imported once
PUBLISHED = "elmo_2x4096_512_2048cnn_2xhighway"


@pytest.fixture
def workshop(tmp_path, model_folder):
    """A folder with what the examples read."""
    shutil.copy(model_folder / "weights.hdf5", tmp_path / f"{PUBLISHED}_weights.hdf5")
    shutil.copy(model_folder / "options.json", tmp_path / f"{PUBLISHED}_options.json")
    days = ("The ferry was late on day", "Nobody minded the rain on day", "“好。”他说。 It was day")
    novel = "\n\n".join(f"{days[number % 3]} {number}. The harbour was quiet." for number in range(200))
    (tmp_path / "novel.txt").write_text(novel, encoding="utf-8")
    shutil.copytree(FIXTURES / "manylangs", tmp_path / "zhs.model")
    shutil.copytree(FIXTURES / "bilm_tf", tmp_path / "checkpoints")
    shutil.copy(FIXTURES / "nlpl" / "model.zip", tmp_path / "193.zip")
    shutil.copy(FIXTURES / "bilm_tf" / "vocab.txt", tmp_path / "words.txt")
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    return tmp_path


def path_in_repository(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=path_in_repository)
def test_blocks_run_in_order(page, workshop):
    for language, blocks in groupby(BLOCK.findall(page.read_text(encoding="utf-8")), key=itemgetter(0)):
        codes = [code for _, code in blocks]
        commands = [[sys.executable, "-c", EACH_BY_ITSELF, *codes]]
        if language == "bash":
            commands = [["bash", "-euc", f'PATH="{Path(sys.executable).parent}:$PATH"\n{code}'] for code in codes]
        for command in commands:
            done = subprocess.run(command, cwd=workshop, capture_output=True, text=True, check=False)
            assert done.returncode == 0, "\n".join([path_in_repository(page), *command[2:], done.stderr])
