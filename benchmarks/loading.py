#!/usr/bin/env python3
"""How long a model takes to load, and how much memory, against the least it could take.

    python benchmarks/loading.py                    a random model of the original size
    python benchmarks/loading.py MODEL              AllenAI's files in a folder of your own

Seconds are those of the processor, best of several, with the file in the disk cache: on one thread and a machine with
nothing else to do they are those of the clock. "bytes" reads the file into memory and does nothing else, "h5py" reads
every dataset of it into an array, "read_checkpoint" gives the weights in elmokit's own layout, "load" a model ready to
embed. Memory is the peak of the first time, above what the process had when all was imported.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from elmokit.bench import write_random_model

WAYS = ("bytes", "h5py", "read_checkpoint", "load")
MEASURE = """
import json, resource, sys, time
from pathlib import Path
import h5py
import elmokit
from elmokit.checkpoints import read_checkpoint

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def arrays(path):
    found = []
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.append(item[()]) if isinstance(item, h5py.Dataset) else None)
    return found

ways = {"bytes": Path.read_bytes, "h5py": arrays, "read_checkpoint": read_checkpoint, "load": elmokit.load}
path, before = Path(sys.argv[2]), peak()
seconds, memory = [], None
for _ in range(int(sys.argv[3])):
    start = time.process_time()
    kept = ways[sys.argv[1]](path)
    seconds.append(time.process_time() - start)
    memory = memory or peak() - before
    del kept
print(json.dumps([min(seconds), memory]))
"""


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if args.model is None:
            args.model = Path(place, "original")
            write_random_model("original", args.model)
        report(next(args.model.glob("*.hdf5")), args.rounds)


def report(path: Path, rounds: int) -> None:
    """All ways, one after another."""
    size = path.stat().st_size
    found = {way: measure(way, path, rounds) for way in WAYS}
    print(f"{path.name}, {size / 1e6:.0f} MB, best of {rounds}\n")
    print("| | seconds | against h5py | peak memory | against the file |\n|---|---|---|---|---|")
    for way, (seconds, memory) in found.items():
        times = seconds / found["h5py"][0]
        print(f"| {way} | {seconds:.2f} | {times:.2f} × | {memory / 1e6:.0f} MB | {memory / size:.2f} × |")


def measure(way: str, path: Path, rounds: int) -> tuple[float, int]:
    """Seconds and bytes, in a process of its own."""
    command = [sys.executable, "-c", MEASURE, way, str(path), str(rounds)]
    seconds, memory = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return seconds, memory


if __name__ == "__main__":
    main()
