"""elmokit as a contestant: `python -m elmokit.bench.runner MODEL PRECISION WORKLOAD`.

It reads a command a line and answers each with a line of JSON:
`throughput` (seconds for all sentences together, no word known before), `warm` (the same again), `latency` (seconds for
each sentence by itself), `memory` (peak megabytes), `gemm` (how the LSTM layers compare with plain matrix products),
`vectors FILE` (every layer of the single sentences, as .npy).
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch

from elmokit.bench.workload import Workload, read_workload
from elmokit.elmo import Elmo, load

GEMM_ROWS = 256
LSTM_STEPS = 8
REPEATS = 3


class Runner:
    """Does what a command asks."""

    def __init__(self, elmo: Elmo, workload: Workload) -> None:
        self.elmo, self.workload = elmo, workload
        elmo.embed(workload.single)  # weights are made ready before the clock runs

    def throughput(self) -> dict[str, float]:
        """All sentences, with an empty cache of words."""
        self.elmo.engine.prepared.cache.clear()
        return self.warm()

    def warm(self) -> dict[str, float]:
        """All sentences, the cache as it is."""
        start = time.perf_counter()
        self.elmo.embed(self.workload.sentences)
        return {"seconds": time.perf_counter() - start}

    def latency(self) -> dict[str, list[float]]:
        """Each sentence by itself, with an empty cache at first."""
        self.elmo.engine.prepared.cache.clear()
        seconds = []
        for sentence in self.workload.single:
            start = time.perf_counter()
            self.elmo.embed([sentence])
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds}

    def memory(self) -> dict[str, float]:
        """The most this process has held so far."""
        return {"megabytes": _peak_kilobytes() / 1024}

    def gemm(self) -> dict[str, float]:
        """Billions of operations a second of the LSTM layers, and of plain products of the same sizes."""
        config = self.elmo.config
        sizes = 2 * [(config.projection, 4 * config.hidden)]  # what multiplies the input, and the last output
        sizes += [(config.hidden, config.projection)] if config.projected else []
        operations = 2 * GEMM_ROWS * sum(inner * outer for inner, outer in sizes)
        plain = sum(_fastest_product(inner, outer) for inner, outer in sizes)
        x = torch.randn(GEMM_ROWS * LSTM_STEPS, config.projection)
        lstm = min(self._lstm_seconds(x) for _ in range(REPEATS))
        return {"plain": operations / plain / 1e9, "lstm": operations * LSTM_STEPS * 2 * config.layers / lstm / 1e9}

    def _lstm_seconds(self, x: torch.Tensor) -> float:
        with torch.inference_mode():
            start = time.perf_counter()
            self.elmo.engine.layers(x, [LSTM_STEPS] * GEMM_ROWS)
        return time.perf_counter() - start

    def vectors(self, path: str) -> dict[str, str]:
        """Every layer of the single sentences, end to end."""
        arrays = self.elmo.embed(self.workload.single, layers="all")
        np.save(path, np.concatenate(arrays, axis=1))  # (L + 1, N, 2P)
        return {"path": path}


def _peak_kilobytes() -> int:
    """On Linux `ru_maxrss` would count what the parent process held when it started this one."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def _fastest_product(inner: int, outer: int) -> float:
    x, weight, out = torch.randn(GEMM_ROWS, inner), torch.randn(outer, inner), torch.empty(GEMM_ROWS, outer)
    seconds = []
    for _ in range(3 * REPEATS):
        start = time.perf_counter()
        torch.mm(x, weight.t(), out=out)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Load, then answer line by line until standard input ends."""
    model, precision, workload = sys.argv[1:]
    runner = Runner(load(model, precision=precision), read_workload(Path(workload)))  # type: ignore[arg-type]
    sys.stdout.write('{"ready": true}\n')
    sys.stdout.flush()
    for line in sys.stdin:
        command, *arguments = line.split()
        sys.stdout.write(json.dumps(getattr(runner, command)(*arguments)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
