"""`make torture`: all campaigns for so many minutes, and a table of what they came to."""

import argparse
import os
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from torture.campaigns import CAMPAIGNS, attempt, run
from torture.outcomes import CLEAR, RIGHT, Outcomes


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
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many at once, each with a seed of its own")
    options = parser.parse_args()
    names = options.only or [name for name in CAMPAIGNS if os.getuid() == 0 or name != "full and read-only disks"]
    print(f"seed {options.seed}", flush=True)
    if options.number is not None:
        print(attempt(names[0], options.seed, options.number))
        return
    found: dict[str, Outcomes] = defaultdict(Outcomes)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:  # fresh ones: an attempt may fork
        one = partial(run, names=names, minutes=options.minutes)
        for outcomes in pool.map(one, range(options.seed, options.seed + options.jobs)):
            for name in names:
                found[name] += outcomes[name]
    print(table(found))
    sys.exit(any(kind not in (RIGHT, CLEAR) for outcomes in found.values() for kind in outcomes))


if __name__ == "__main__":
    main()
