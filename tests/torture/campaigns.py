"""All campaigns, and attempts of each for its share of the time."""

import shutil
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import torch

from torture.callers import threads
from torture.commands import full_disk, kill_any, two_writers
from torture.mutants import any_mutant
from torture.outcomes import CLEAR, RIGHT, Attempt, Outcomes, workshop
from torture.strangers import server_tricks, wild_text

CAMPAIGNS: dict[str, tuple[Attempt, float]] = {  # and its share of the time
    "mutants of every format": (any_mutant, 0.06),
    "kills": (kill_any, 0.64),
    "full and read-only disks": (full_disk, 0.18),
    "two writers": (two_writers, 0.05),
    "wild text": (wild_text, 0.03),
    "servers with tricks": (server_tricks, 0.02),
    "threads": (threads, 0.02),
}


def attempt(name: str, seed: int, number: int) -> Outcomes:
    """One attempt, the same for the same numbers but for the moments of kills."""
    folder = Path(mkdtemp(dir=workshop()))
    try:
        return CAMPAIGNS[name][0](Random(f"{name} {seed} {number}"), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(seed: int, names: list[str], *, minutes: float) -> dict[str, Outcomes]:
    """Attempts of all campaigns, each for its share of the time; tries are counted by what they came to."""
    torch.set_num_threads(1)
    found: dict[str, Outcomes] = defaultdict(Outcomes)
    spent, numbers = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end or 0 in numbers.values():
        name = min(names, key=lambda one: spent[one] / CAMPAIGNS[one][1])
        begin = time.monotonic()
        outcome = attempt(name, seed, numbers[name])
        spent[name] += time.monotonic() - begin
        found[name] += outcome
        for kind in outcome.keys() - {RIGHT, CLEAR}:
            print(f"{name}, number {numbers[name]} of seed {seed}: {kind}", flush=True)
        numbers[name] += 1
    return found
