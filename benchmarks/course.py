"""The course in docs/course: run its chapters, write what they print into them, make notebooks of them.

python benchmarks/course.py outputs [PAGES]         every block of code runs; what it prints is written below it
python benchmarks/course.py notebooks [-o FOLDER]   the chapters as notebooks, with the outputs they have
"""

import argparse
import base64
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.site_markdown import joined, with_sources  # noqa: E402

COURSE = ROOT / "docs" / "course"
CELL = re.compile(
    r"^(?P<mark><!-- trained here -->\n\n)?"  # its numbers differ from one processor to another
    r"```(?P<language>python|bash)\n(?P<code>(?!# src/).*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.svg)\)")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


class Cell(NamedTuple):
    """A block of code, and what the page says it prints."""

    language: str
    code: str
    output: str
    trained: bool


def pages() -> list[Path]:
    """Every chapter, in both languages."""
    return sorted(COURSE.glob("*/*.md"))


def cells(text: str) -> list[Cell]:
    """The blocks of code of a chapter that run."""
    found = CELL.finditer(text)
    return [Cell(one["language"], one["code"], one["output"] or "", bool(one["mark"])) for one in found]


@contextmanager
def workshop(language: str) -> Iterator[Path]:
    """A folder like the repository's, with the samples, in which a chapter may write; commands speak its language."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ, {"LANGUAGE": language}):
        shutil.copytree(ROOT / "samples", "samples")
        Path("runs").mkdir()
        yield Path(folder)


def run(text: str, language: str) -> list[str]:
    """What each block of a chapter prints in its language, one after the other, as in a notebook."""
    names: dict[str, object] = {"__name__": "__main__"}
    outputs = []
    with workshop(language):
        for cell in cells(text):
            with redirect_stdout(io.StringIO()) as printed:
                if cell.language == "python":
                    exec(compile(cell.code, "<chapter>", "exec"), names)
                else:
                    _run_bash(cell.code)
            outputs.append(printed.getvalue())
    return outputs


def _run_bash(code: str) -> None:
    """The command line's own function for `elmokit …`, which spares each command the imports; a shell for the rest."""
    from elmokit.cli import main

    for line in code.replace("\\\n", " ").splitlines():
        if line.startswith("elmokit "):
            main(shlex.split(line)[1:])
        else:
            print(subprocess.run(["bash", "-euc", line], capture_output=True, text=True, check=True).stdout, end="")


def with_outputs(text: str, outputs: list[str]) -> str:
    """The chapter with these outputs below its blocks."""
    printed = iter(outputs)

    def block(found: re.Match[str]) -> str:
        output = "\n".join(line.rstrip() for line in next(printed).strip("\n").splitlines())
        shown = f"\n```text\n{output}\n```\n" if output else ""
        return f"{found['mark'] or ''}```{found['language']}\n{found['code']}```\n{shown}"

    return CELL.sub(block, text)


def differences(text: str, outputs: list[str]) -> list[str]:
    """Where a chapter says something else than what its blocks printed.

    Words are to be the same, and numbers within 2% or 0.02, for processors add in different orders. Of a block that
    trains something, or asks what was trained, only the number of lines is compared: there such differences grow.
    """
    found = []
    for cell, output in zip(cells(text), outputs, strict=True):
        said, printed = cell.output.strip("\n").splitlines(), output.strip("\n").splitlines()
        if len(said) != len(printed):
            found.append(f"{cell.code}prints {len(printed)} lines, the page has {len(said)}")
        elif not cell.trained:
            lines = zip(said, printed, strict=True)
            found += [f"{one!r} is now {other!r}" for one, other in lines if _differ(one, other)]
    return found


def _differ(one: str, other: str) -> bool:
    if NUMBER.sub("#", one).split() != NUMBER.sub("#", other).split():
        return True
    numbers = ([float(number.replace(",", "")) for number in NUMBER.findall(line)] for line in (one, other))
    return any(abs(a - b) > max(0.02, 0.02 * abs(a)) for a, b in zip(*numbers, strict=True))


def notebook(page: Path, folder: Path) -> object:
    """The chapter as a notebook that lies in a folder: text, code and the outputs the page has."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    text, parts, end = page.read_text(encoding="utf-8"), [], 0
    parts.append(new_code_cell(f"%cd -q {os.path.relpath(ROOT, folder)}"))
    for found in CELL.finditer(text):
        parts.append(new_markdown_cell(_standing_alone(text[end : found.start()], page)))
        code = found["code"].strip()
        code = f"%%bash\nmkdir -p runs\n{code}" if found["language"] == "bash" else code
        outputs = [new_output("stream", text=found["output"])] if found["output"] else []
        parts.append(new_code_cell(code, outputs=outputs))
        end = found.end()
    parts.append(new_markdown_cell(_standing_alone(text[end:], page)))
    for number, part in enumerate(parts):
        part["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=[part for part in parts if part["source"].strip()], metadata={"kernelspec": kernel})


def _standing_alone(text: str, page: Path) -> str:
    """Markdown with the code and the pictures it names in it."""

    def picture(found: re.Match[str]) -> str:
        data = base64.b64encode((page.parent / found[2]).read_bytes()).decode()
        return f'<img alt="{found[1]}" src="data:image/svg+xml;base64,{data}">'

    return PICTURE.sub(picture, with_sources(joined(text))).strip()


def write_notebooks(folder: Path) -> None:
    """A notebook for every chapter, by language."""
    import nbformat

    for page in pages():
        target = folder / page.parent.name / f"{page.stem}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(page, target.parent.resolve()), target)
        print(target)


def write_outputs(chosen: list[Path]) -> None:
    """Run the chapters and write what they print."""
    for page in chosen:
        text = page.read_text(encoding="utf-8")
        outputs = run(text, page.parent.name)
        for difference in differences(text, outputs):
            print(f"{page.parent.name}/{page.name}: {difference}")
        page.write_text(with_outputs(text, outputs), encoding="utf-8")
        print(page.relative_to(ROOT))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("outputs").add_argument("pages", nargs="*", type=Path, metavar="PAGES")
    commands.add_parser("notebooks").add_argument("-o", "--output", type=Path, default=ROOT / "build" / "notebooks")
    arguments = parser.parse_args()
    if arguments.command == "outputs":
        write_outputs([page.resolve() for page in arguments.pages] or pages())
    else:
        write_notebooks(arguments.output)


if __name__ == "__main__":
    main()
