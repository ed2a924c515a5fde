#!/usr/bin/env python3
"""Run a command and keep what it prints as data: benchmarks/data/NAME.json, which the docs name beside their tables.

    python benchmarks/record.py en-substitutes python benchmarks/evaluation.py en en . --parts substitutes

The command runs where this one does, such as in the folder of data; what begins with `benchmarks/` is found all the
same. Kept are the command, the day, elmokit's version, the processor, the seconds, every Markdown table as columns and
rows, and all other lines. Nothing is kept of a command that fails.
"""

import json
import os
import re
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

from elmokit import __version__
from elmokit.files import replacing

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks/data"
PROGRAMS = {"python": [sys.executable], "elmokit": [sys.executable, "-m", "elmokit"]}


def main() -> None:
    """Run, show, keep."""
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    name, command = sys.argv[1], sys.argv[2:]
    program, *arguments = (str(ROOT / word) if word.startswith("benchmarks/") else word for word in command)
    start, lines = time.monotonic(), []
    with subprocess.Popen(
        [*PROGRAMS.get(program, [program]), *arguments], stdout=subprocess.PIPE, text=True
    ) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    if running.returncode:
        sys.exit(running.returncode)
    found = {
        "command": " ".join(command),
        "date": date.today().isoformat(),
        "elmokit": __version__,
        "processor": processor(),
        "seconds": round(time.monotonic() - start),
        **parted(lines),
    }
    FOLDER.mkdir(exist_ok=True)
    with replacing(FOLDER / f"{name}.json") as partial:
        partial.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def processor() -> str:
    """What it is, and how many cores of it there are here."""
    name = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return f"{name[1] if name else 'unknown'}, {os.cpu_count()} cores"


def parted(lines: list[str]) -> dict[str, list]:
    """Markdown tables, and the lines that belong to none."""
    tables, others, inside = [], [], False
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
            others.append(line)
        elif not inside:
            inside = True
            tables.append({"columns": cells, "rows": []})
        elif set(line) - set("|-: "):
            tables[-1]["rows"].append(cells)
    return {"tables": tables, "lines": [line for line in others if line]}


if __name__ == "__main__":
    main()
