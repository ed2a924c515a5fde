#!/usr/bin/env python3
"""Sentences per second of many callers of one model, each with a sentence at a time.

    python benchmarks/batching.py                   32 callers of 20-token sentences, and one thread against two

"unbatched" calls `Elmo.embed` from every thread, "batched" a `Batcher`; both with the compiled layers and without, as
`reproducible=True` has it. "wait" is the longest that a call took. The last lines are one thread and two, a core each.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

import torch

import elmokit
from elmokit.batching import Batcher
from elmokit.bench import make_workload
from elmokit.latency import shaped

CALLS = 12  # of each caller
TOKENS = 20


def main() -> None:
    """Measure in turns, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en")
    parser.add_argument("--callers", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    words = [word for sentence in make_workload(None, 512)[0] for word in sentence]
    sentences = shaped(words, args.callers * CALLS, TOKENS)
    models = {kind: elmokit.load(args.model, reproducible=kind != "compiled") for kind in ("compiled", "reproducible")}
    print("| | sentences/s | longest wait |\n|---|---|---|")
    torch.set_num_threads(2)
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(args.rounds):
        for kind, elmo in models.items():
            found.setdefault(f"{kind}, unbatched", []).append(run(elmo.embed, sentences, args.callers))
            with Batcher(elmo) as batcher:
                found.setdefault(f"{kind}, batched", []).append(run(batcher.embed, sentences, args.callers))
    torch.set_num_threads(1)
    for _ in range(args.rounds):
        for threads in (1, 2):
            name = f"compiled, one core a call, threads: {threads}"
            found.setdefault(name, []).append(run(models["compiled"].embed, sentences, threads))
    for name, rounds in found.items():
        speed, longest = max(rounds)
        print(f"| {name} | {speed:.0f} | {1000 * longest:.0f} ms |")


def run(embed, sentences, callers) -> tuple[float, float]:
    """Sentences per second, and the longest that a call took."""
    embed(sentences[:64])

    def call(sentence) -> float:
        start = time.perf_counter()
        embed([sentence])
        return time.perf_counter() - start

    with ThreadPoolExecutor(callers) as pool:
        start = time.perf_counter()
        waits = list(pool.map(call, sentences))
        return len(sentences) / (time.perf_counter() - start), max(waits)


if __name__ == "__main__":
    main()
