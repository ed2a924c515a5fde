"""Long commands in fresh interpreters: killed at random moments, two at once, on disks that are full or read-only."""

import random
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np
import torch
from conftest import BYTES, random_checkpoint

from elmokit.checkpoints import read_checkpoint, write_checkpoint
from elmokit.lexicon.index import open_index
from elmokit.vectors import read_vectors
from torture.outcomes import CLEAR, LONGEST_SECONDS, RIGHT, Outcomes, ended, isolated, leftovers, start, workshop

WORDS = "the a small old cat dog bird river moon house sees likes follows remembers and never again 小猫 月亮".split()
MOST_KILLS, MOST_FAULTS = 8, 4
WHILE_WRITING = 0.75  # of the kills come after a command has begun to write, the others at any moment
INTERRUPTED = (130, -signal.SIGINT)  # the second where Python itself was not ready yet
RECIPE = ("--recipe", "tiny", "--workers", "1", "-s", "model.hidden=16", "-s", "model.projection=8")
QUICK = ("-s", "training.batch=8", "-s", "training.epochs=0.6", "-s", "training.save_minutes=0.002")


@cache
def home() -> Path:
    """A text, whole and in parts, labels for its words, and a small model."""
    folder, pick = Path(mkdtemp(dir=workshop())), random.Random(0)
    sentences = [pick.choices(WORDS, k=pick.randint(3, 9)) for _ in range(400)]
    text = [" ".join(words) + " .\n" for words in sentences]
    (folder / "text.txt").write_text("".join(text), encoding="utf-8")
    (folder / "texts").mkdir()
    for number in range(8):
        (folder / "texts" / f"{number}.txt").write_text("".join(text[number::8]), encoding="utf-8")
    lines = ("".join(f"{word} {'X' if len(word) > 3 else 'O'}\n" for word in words) for words in sentences[:100])
    (folder / "labels.conll").write_text("\n".join(lines), encoding="utf-8")
    write_checkpoint(random_checkpoint(BYTES), folder / "model", to="allenai")
    return folder


def same_bytes(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


class Command(NamedTuple):
    """What is run to make something at a path, and when two results are the same."""

    arguments: Callable[[Path], list[str | Path]]
    target: str
    same: Callable[[Path, Path], bool]
    resume: tuple[str, ...] = ()

    def begin(self, folder: Path, *, again: bool = False) -> "subprocess.Popen[str]":
        """Run it, or go on where it left something."""
        target = folder / self.target
        resume = self.resume if again and target.exists() else ()
        return start(*self.arguments(target), *resume)


def same_weights(one: Path, other: Path) -> bool:
    weights = read_checkpoint(other).weights
    return all(torch.equal(weight, weights[name]) for name, weight in read_checkpoint(one).weights.items())


def same_vectors(one: Path, other: Path) -> bool:
    return all(np.array_equal(*pair) for pair in zip(read_vectors(one), read_vectors(other), strict=True))


def same_index(one: Path, other: Path) -> bool:
    first, second = open_index(one), open_index(other)
    return first.manifest.rows == second.manifest.rows and np.array_equal(first.types.vectors, second.types.vectors)


def same_file(name: str) -> Callable[[Path, Path], bool]:
    return lambda one, other: (one / name).read_bytes() == (other / name).read_bytes()


def seen(folder: Path) -> list[tuple[str, int, int]]:
    """All files of a folder, their sizes and times."""
    found = []
    for path in folder.rglob("*"):
        with suppress(OSError):  # it went just now
            found.append((str(path), (about := path.lstat()).st_size, about.st_mtime_ns))
    return sorted(found)


def begins_to_write(process: "subprocess.Popen[str]", folder: Path) -> None:
    """Wait until a command that was just started changes the folder, or ends."""
    before, deadline = seen(folder), time.monotonic() + LONGEST_SECONDS
    while process.poll() is None and time.monotonic() < deadline and seen(folder) == before:
        time.sleep(0.01)


def labels() -> list[str | Path]:
    return ["--train", home() / "labels.conll", "--dev", home() / "labels.conll", "--epochs", "3"]


def sharded(target: Path) -> list[str | Path]:
    return [home() / "texts", "-m", home() / "model", "-o", target, "--shards", "3"]


COMMANDS = {
    "pretrain": Command(
        lambda target: ["pretrain", home() / "text.txt", "-o", target, *RECIPE, *QUICK],
        "run",
        same_weights,
        ("--resume",),
    ),
    "task train": Command(
        lambda target: ["task", "train", "tagging", *labels(), "-m", home() / "model", "-o", target],
        "task",
        same_file("task.safetensors"),
        ("--resume",),
    ),
    "finetune": Command(
        lambda target: ["finetune", whole("pretrain").path, home() / "text.txt", "-o", target, *QUICK, "--workers=1"],
        "tuned",
        same_weights,
        ("--resume",),
    ),
    "static train": Command(
        lambda target: ["static", "train", "skip-gram", home() / "text.txt", "-o", target, "--threads", "1"],
        "words.bin",
        same_bytes,
    ),
    "surprisal": Command(
        lambda target: ["surprisal", home() / "text.txt", "-m", whole("pretrain").path, "-o", target],
        "s.csv",
        same_bytes,
    ),
    "index build": Command(
        lambda target: ["index", "build", home() / "text.txt", "-m", home() / "model", "-o", target], "i", same_index
    ),
    "index build in shards": Command(lambda target: ["index", "build", *sharded(target)], "i", same_index),
    "embed in shards": Command(lambda target: ["embed", *sharded(target)], "v.h5", same_vectors),
    **{
        f"embed {ending}": Command(
            lambda target: ["embed", home() / "text.txt", "-m", home() / "model", "-o", target],
            f"v{ending}",
            same_vectors,
        )
        for ending in (".h5", ".npz", ".safetensors", ".parquet")
    },
    "convert": Command(
        lambda target: ["convert", home() / "model", target, "--overwrite"], "model", same_file("model.safetensors")
    ),
}


class Made(NamedTuple):
    """What a command makes when nothing happens to it, the seconds it takes, and those after it begins to write."""

    path: Path
    seconds: float
    writing: float


@cache
def whole(name: str) -> Made:
    """What a command makes when nothing happens to it."""
    folder = home() / "whole" / name.replace(" ", "-")
    folder.mkdir(parents=True)
    begin, process = time.monotonic(), COMMANDS[name].begin(folder)
    begins_to_write(process, folder)
    writing = time.monotonic()
    if (found := ended(process)) != RIGHT:
        raise RuntimeError(f"{name}: {found}")
    end = time.monotonic()
    return Made(folder / COMMANDS[name].target, end - begin, end - writing)


def compared(name: str, folder: Path, found: str) -> str:
    """What a command has come to: its result must be that of a command to which nothing happened, and nothing else."""
    if found != RIGHT:
        return f"{name}: {found}"
    same, paths = COMMANDS[name].same, (whole(name).path, folder / COMMANDS[name].target)
    [found] = isolated(lambda: None if same(*paths) else "another result")  # LanceDB's threads do not bear a fork
    return leftovers(folder) or (RIGHT if found == RIGHT else f"{name}: {found}")


LATEST: dict[str, float] = defaultdict(lambda: 1.2)
"""The last moments of kills, in units of the time that a command takes: about a sixth of them come too late."""


def kill(name: str, pick: Random, folder: Path) -> Outcomes:
    """Kill a command several times, let it go on to the end, and compare; only kills that ended it are counted."""
    made, kills = whole(name), 0
    for number in range(pick.randint(1, MOST_KILLS)):
        process = COMMANDS[name].begin(folder, again=number > 0)
        moment, seconds = pick.uniform(0, LATEST[name]), made.seconds
        if pick.random() < WHILE_WRITING:
            begins_to_write(process, folder)
            seconds = made.writing
        try:
            process.wait(timeout=moment * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(pick.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT)))
        found = ended(process)
        if process.returncode not in (0, -signal.SIGKILL, *INTERRUPTED) or "Traceback" in found:
            return Outcomes([f"{name}: after {kills} kills: {found}"])  # none must refuse what a kill has left
        if number == 0:  # the machine may have more or less to do by now
            LATEST[name] *= 0.8 if process.returncode == 0 else 1.05
        if process.returncode == 0:
            break
        kills += 1
    done = process.returncode == 0
    last = compared(name, folder, RIGHT if done else ended(COMMANDS[name].begin(folder, again=True)))
    return Outcomes({last: kills if last == RIGHT else max(1, kills)})


def kill_any(pick: Random, folder: Path) -> Outcomes:
    """One of the commands."""
    return kill(pick.choice(sorted(COMMANDS)), pick, folder)


def two_writers(pick: Random, folder: Path) -> Outcomes:
    """The same command twice at once: one does the work, the other does it too or says why not."""
    name = pick.choice(sorted(COMMANDS))
    first = COMMANDS[name].begin(folder)
    time.sleep(pick.uniform(0, whole(name).seconds))
    found = [ended(COMMANDS[name].begin(folder)), ended(first)]
    if wrong := [one for one in found if one not in (RIGHT, CLEAR)]:
        return Outcomes([f"{name}: {wrong[0]}"])
    return Outcomes([compared(name, folder, RIGHT if RIGHT in found else "both refused")])


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A disk of its own of that size; only root may make one."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(name: str, pick: Random, folder: Path) -> Outcomes:
    """A command says that a disk is too small or read-only, each time; with room enough it comes to the right end."""
    target, faults, found = whole(name).path, 0, CLEAR
    files = [target] if target.is_file() else [file for file in target.rglob("*") if file.is_file()]
    needed = sum(file.stat().st_size for file in files) // 1024
    size = 4 + pick.randrange(needed)
    with small_disk(folder / "disk", size) as disk:
        for _ in range(pick.randint(1, MOST_FAULTS)):
            read_only = pick.random() < 0.2
            remount(disk, f"{'ro' if read_only else 'rw'},size={size}k")
            found = ended(COMMANDS[name].begin(disk, again=faults > 0))
            if found not in (RIGHT, CLEAR) or (found == RIGHT and read_only):
                return Outcomes([f"{name} on a {'read-only' if read_only else 'full'} disk: {found}"])
            if found == RIGHT:
                break
            faults += 1
            size += pick.randrange(needed)
        remount(disk, "rw,size=200m")
        last = compared(name, disk, RIGHT if found == RIGHT else ended(COMMANDS[name].begin(disk, again=True)))
    return Outcomes({last: faults if last == RIGHT else max(1, faults)})


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)


def full_disk(pick: Random, folder: Path) -> Outcomes:
    """One of the commands."""
    return fill(pick.choice(sorted(COMMANDS)), pick, folder)
