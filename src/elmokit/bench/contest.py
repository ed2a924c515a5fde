"""Contestants that take turns on one machine, each in a process of its own."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from types import TracebackType
from typing import Any

from elmokit.bench.workload import Workload
from elmokit.errors import ElmoError


@dataclass
class Figures:
    """What was seen of one contestant."""

    name: str
    tokens_per_second: float = 0.0
    warm_tokens_per_second: float = 0.0
    latencies: list[float] = field(default_factory=list)
    """Seconds, one for each sentence embedded by itself."""
    megabytes: float = 0.0
    lstm_share: float = math.nan
    """The speed of the LSTM layers as a share of plain matrix products of the same sizes."""

    @property
    def latency(self) -> float:
        """Median milliseconds of a sentence by itself."""
        return 1000 * median(self.latencies)

    @property
    def latency_95(self) -> float:
        """95th percentile of the same."""
        return 1000 * quantiles(self.latencies, n=20)[-1]


class Contestant:
    """A process that loads a model and does what it is told, a line at a time."""

    def __init__(self, name: str, command: Sequence[str], *, threads: int) -> None:
        self.figures = Figures(name)
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __enter__(self) -> "Contestant":
        self._answer()  # it says so when it is ready
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, command: str) -> Any:
        """Have it do something, and wait for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):  # libraries may have printed something else
                return json.loads(line)
        raise ElmoError(f"{self.figures.name} stopped with exit code {self.process.wait()}; see its messages above")

    def run_once(self, workload: Workload, *, ours: bool) -> None:
        """One turn: the best throughput so far is kept, and every latency."""
        figures = self.figures
        figures.tokens_per_second = max(figures.tokens_per_second, workload.tokens / self.ask("throughput")["seconds"])
        if ours:
            warm = workload.tokens / self.ask("warm")["seconds"]
            figures.warm_tokens_per_second = max(figures.warm_tokens_per_second, warm)
        figures.latencies += self.ask("latency")["seconds"]


def elmokit_contestant(model: Path, precision: str, workload: Path, *, threads: int) -> Contestant:
    """elmokit itself."""
    command = [sys.executable, "-m", "elmokit.bench.runner", str(model), precision, str(workload)]
    return Contestant(f"elmokit {precision}", command, threads=threads)


def measure(ours: Contestant, workload: Workload, *, rounds: int, report: Callable[[str], None]) -> Figures:
    """Rounds of one contestant alone."""
    for number in range(rounds):
        report(f"{ours.figures.name}: round {number + 1} of {rounds}")
        ours.run_once(workload, ours=True)
    return finish(ours)


def finish(ours: Contestant) -> Figures:
    """What need be asked of elmokit only once."""
    ours.figures.megabytes = ours.ask("memory")["megabytes"]
    rates = ours.ask("gemm")
    ours.figures.lstm_share = rates["lstm"] / rates["plain"]
    return ours.figures
