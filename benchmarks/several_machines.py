#!/usr/bin/env python3
"""Work on two machines, which are network namespaces of this one; only root may make them.

    python benchmarks/several_machines.py scaling novel.txt    `embed --dask`: one worker on one core, then two on two
    python benchmarks/several_machines.py kills novel.txt      `embed --dask`: 100 kills of workers; bytes are compared
    python benchmarks/several_machines.py torchrun novel.txt   `pretrain`: one process on one core, then two on two

Scheduler, driver and workers run on the same cores. The time of `embed` is that of the whole command, with loading and
joining; that of `pretrain` the speed of its steps after the first ten.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from statistics import harmonic_mean, median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import cluster

from elmokit.pretrain.recipe import make_recipe

WARM_UP = 10


def main() -> None:
    """Measure, and print a table in Markdown or what became of the kills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["scaling", "kills", "torchrun"])
    parser.add_argument("text", type=Path, nargs="+", help="files or folders of text")
    parser.add_argument("--model", default="en", help="a model's name, folder or file")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recipe", default="small")
    parser.add_argument("--steps", type=int, default=60, help="of pretraining, in each round")
    parser.add_argument("--average-steps", type=int, help="two processes learn apart, each with a whole batch")
    args = parser.parse_args()
    if reason := cluster.why_not():
        sys.exit(reason)
    with TemporaryDirectory() as folder, cluster.two_machines() as machines:
        {"scaling": scaling, "kills": kills, "torchrun": torchrun}[args.what](args, machines, Path(folder))


def command(args: argparse.Namespace, output: Path) -> list[str]:
    """`elmokit embed`, not divided."""
    texts = [str(path.resolve()) for path in args.text]
    return [sys.executable, "-m", "elmokit", "embed", *texts, "--model", args.model, "-o", str(output)]


def on_workers(args: argparse.Namespace, machine: str, output: Path, *options: str) -> "subprocess.Popen[str]":
    """The same, divided among the workers."""
    divided = [*command(args, output), "--shards", str(args.shards), "--dask", cluster.SCHEDULER, *options]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}  # where it wrote is no result
    return subprocess.Popen(cluster.inside(machine, *divided), text=True, **pipes)


def scaling(args: argparse.Namespace, machines: tuple[str, str], folder: Path) -> None:
    """How long one worker and two take for the same shards."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for workers in [1, 2] * args.rounds:
        with cluster.running(machines[:workers], folder):
            begin = time.monotonic()
            process = on_workers(args, machines[0], folder / "vectors.npz")
            _, told = process.communicate()
            seconds[workers].append(time.monotonic() - begin)
        if process.returncode:
            sys.exit(told)
        print(told.splitlines()[-2], file=sys.stderr)
    one, two = (median(times) for times in seconds.values())
    print(f"| {args.shards} shards, {args.rounds} rounds | seconds, median |\n|---|---:|")
    print(f"| one worker | {one:.1f} |\n| two workers | {two:.1f} |\n| times as fast | {one / two:.2f} |")


def kills(args: argparse.Namespace, machines: tuple[str, str], folder: Path) -> None:
    """Kill workers at random moments until there were so many kills, through as many commands as that takes."""
    begin = time.monotonic()
    subprocess.run(command(args, folder / "whole.npz"), check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    seconds = time.monotonic() - begin
    whole, done, commands, pick = (folder / "whole.npz").read_bytes(), 0, 0, Random(args.seed)
    with cluster.running(machines, folder):
        while done < args.kills:
            output = folder / f"{commands}.npz"
            process = on_workers(args, machines[1], output, "--retries", str(args.kills))
            done += cluster.kill_workers(process, output, args.kills - done, pick, seconds=seconds)
            commands += 1
            _, told = process.communicate()
            if process.returncode or output.read_bytes() != whole:
                sys.exit(f"{told}\nafter {done} kills: not the same bytes")
            print(f"{done} kills: {told.splitlines()[-2]}", flush=True)
    print(f"{done} kills, {commands} commands, the same bytes each time")


def torchrun(args: argparse.Namespace, machines: tuple[str, str], folder: Path) -> None:
    """How many tokens a second one process and two train on, each with its share of the same batch, or a whole one."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    texts = [path.resolve() for path in args.text]
    every = ["-s", "training.evaluate_steps=1", "-s", "training.evaluate_tokens=1"]
    batch, average = make_recipe(args.recipe).training.batch, args.average_steps
    apart = ["-s", f"training.average_steps={average}", "-s", f"training.batch={2 * batch}"] if average else []
    for number, processes in enumerate([1, 2] * args.rounds):
        run = folder / f"run-{number}"
        command = ["pretrain", *texts, "-o", run, "--recipe", args.recipe, *every, "--resume"]
        command += apart if processes == 2 else []
        with cluster.torchrun(machines[:processes], folder, *command) as agents:
            while len(rates_of(run)) < args.steps:
                time.sleep(1)
                if agents[0].poll() is not None:
                    sys.exit((folder / "agent-0.log").read_text())
        rates[processes].append(harmonic_mean(rates_of(run)[WARM_UP:]))
    one, two = (median(found) for found in rates.values())
    print(f"| recipe {args.recipe}, {args.rounds} rounds | tokens a second |\n|---|---:|")
    print(f"| one process | {one:,.0f} |\n| two processes | {two:,.0f} |\n| times as fast | {two / one:.2f} |")


def rates_of(run: Path) -> list[float]:
    """Tokens a second of each step that a run has written down."""
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [rate for line in lines if (rate := json.loads(line)["tokens_per_second"])]


if __name__ == "__main__":
    main()
