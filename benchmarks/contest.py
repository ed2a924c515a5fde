"""Contestants that take turns on one machine, each in a process of its own."""

import json
import math
import os
import subprocess
from dataclasses import dataclass, field
from statistics import median

from elmokit.bench import Figures
from elmokit.errors import ElmoError


@dataclass
class Contestant:
    """A process that loads a model and does what it is told, one command a line: see peers/protocol.py."""

    name: str
    command: list[str]
    threads: int
    rounds: list[tuple[float, float, list[float]]] = field(default_factory=list)

    def __enter__(self) -> "Contestant":
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(self.command, text=True, env=environment, **pipes)
        self._answer()  # it says so when it is ready
        return self

    def __exit__(self, *error) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, command: str) -> dict:
        """Have it do something, and wait for the answer."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict:
        for line in self.process.stdout:
            if line.startswith("{"):  # libraries may have printed something else
                return json.loads(line)
        raise ElmoError(f"{self.name} stopped with exit code {self.process.wait()}; see its messages above")

    def run_once(self) -> None:
        """One turn."""
        answer = self.ask("round")
        self.rounds.append((answer["cold"], answer.get("warm", math.nan), answer["alone"]))

    def figures(self) -> Figures:
        """All rounds, and of elmokit what need be asked only once."""
        answer = self.ask("figures")
        return Figures(self.rounds, answer.get("megabytes", math.nan), answer.get("lstm_share", math.nan))


def ratio_row(model: str, ours: Contestant, peer: Contestant) -> str:
    """How many times as fast."""
    together = min(cold for cold, _, _ in peer.rounds) / min(cold for cold, _, _ in ours.rounds)
    alone = _latency(peer) / _latency(ours)
    return f"| {model} | {ours.name} against {peer.name} | {together:.1f} × | | {alone:.1f} × | | | |"


def _latency(contestant: Contestant) -> float:
    return median(seconds for _, _, alone in contestant.rounds for seconds in alone)
