"""`make torture`: all campaigns for so many minutes, and a table of what they came to."""

import argparse
import os
import shutil
import sys
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
    "mutants of every format": (any_mutant, 0.25),
    "kills": (kill_any, 0.42),
    "full and read-only disks": (full_disk, 0.15),
    "two writers": (two_writers, 0.07),
    "wild text": (wild_text, 0.05),
    "servers with tricks": (server_tricks, 0.03),
    "threads": (threads, 0.03),
}


def attempt(name: str, seed: int, number: int) -> Outcomes:
    """One attempt, the same for the same numbers but for the moments of kills."""
    folder = Path(mkdtemp(dir=workshop()))
    try:
        return CAMPAIGNS[name][0](Random(f"{name} {seed} {number}"), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(names: list[str], *, minutes: float, seed: int) -> dict[str, Outcomes]:
    """Attempts of all campaigns, each for its share of the time; tries are counted by what they came to."""
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


def table(found: dict[str, Outcomes]) -> str:
    """Campaign × tries × outcomes, as Markdown."""
    lines = [f"| campaign | tries | {RIGHT} | {CLEAR} | neither |", "|---|---:|---:|---:|---:|"]
    for name, outcomes in found.items():
        bad = outcomes.total() - outcomes[RIGHT] - outcomes[CLEAR]
        lines.append(f"| {name} | {outcomes.total():,} | {outcomes[RIGHT]:,} | {outcomes[CLEAR]:,} | {bad:,} |")
    return "\n".join(lines)


def main() -> None:
    """Run, print the table, and fail on anything that is neither right nor a clear error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="this campaign alone")
    parser.add_argument("--number", type=int, help="this attempt of it alone, with the seed that was printed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = options.only or [name for name in CAMPAIGNS if os.getuid() == 0 or name != "full and read-only disks"]
    print(f"seed {options.seed}", flush=True)
    if options.number is not None:
        print(attempt(names[0], options.seed, options.number))
        return
    found = run(names, minutes=options.minutes, seed=options.seed)
    print(table(found))
    sys.exit(any(kind not in (RIGHT, CLEAR) for outcomes in found.values() for kind in outcomes))


if __name__ == "__main__":
    main()
