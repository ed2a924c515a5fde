"""What an attempt comes to, and processes in which nothing that happens can harm the campaign."""

import atexit
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import NoReturn

from conftest import hear_interrupts

from elmokit.errors import ElmoError

RIGHT, CLEAR = "right result", "clear error"
LONGEST_SECONDS = 120
MOST_MEMORY = 1 << 20  # kilobytes more than before: what is damaged is small


Outcomes = Counter[str]
"""How often an attempt came to RIGHT, to CLEAR, or else to what went wrong; it may try several times."""
Attempt = Callable[[Random, Path], Outcomes]
"""Everything that it does follows from the random numbers; the folder is empty, and goes afterwards."""


@cache
def workshop() -> Path:
    """Where all that is made for the campaigns lies; it goes with the process."""
    folder = Path(mkdtemp(prefix="elmokit-torture-"))
    owner = os.getpid()  # a process that was forked has the same things to do at its end
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return folder


def judged(work: Callable[[], str | None]) -> str:
    """What a piece of work comes to: what it finds wrong itself, an error in one line, or all is right."""
    try:
        return work() or RIGHT
    except ElmoError as error:
        return CLEAR if str(error).strip() and len(str(error).splitlines()) == 1 else f"message of lines: {error!r}"
    except BaseException as error:  # noqa: BLE001  (what else escapes is what is looked for)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "elmokit" in frame.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        return f"traceback: {type(error).__name__} at {place}: {str(error)[:100]}"


def isolated(*works: Callable[[], str | None]) -> Outcomes:
    """The same in a process of its own, where a crash, a hang or too much memory are seen."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _judge(works, writer)
    os.close(writer)
    deadline = time.monotonic() + LONGEST_SECONDS
    while not (left := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.001)
    if not left[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reader, encoding="utf-8") as file:
        found = file.read().splitlines()
    if len(found) < len(works):
        found.append(f"crash: status {left[1]}" if left[0] else "hang")
    return Outcomes(found)


def _judge(works: Sequence[Callable[[], str | None]], writer: int) -> NoReturn:
    """Write a line for each piece of work, and leave without a word."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for work in works:
        found = judged(work)
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        found = found if taken < MOST_MEMORY else f"took {taken >> 10} MB"
        os.write(writer, (" ".join(found.split()) + "\n").encode("utf-8", "replace"))
    os._exit(0)


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """An elmokit command in a fresh interpreter, on one core."""
    return subprocess.Popen(
        [sys.executable, "-m", "elmokit", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        preexec_fn=hear_interrupts,
    )


def ended(process: subprocess.Popen[str]) -> str:
    """What a command comes to."""
    try:
        _, errors = process.communicate(timeout=LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "hang"
    if process.returncode == 0:
        return RIGHT
    last = (errors.splitlines() or [""])[-1]
    if process.returncode == 2 and last.startswith("elmokit: ") and "Traceback" not in errors:
        return CLEAR
    return f"exit {process.returncode}: {last[:200]}"


def leftovers(folder: Path) -> str | None:
    """Hidden files below a folder, of which none should be left."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))
    return f"left behind: {', '.join(found)}" if found else None
