"""elmokit as a contestant: `python elmokit_runner.py MODEL WORKLOAD PRECISION`."""

import json
import pathlib
import sys

import numpy as np
from protocol import answer_commands

from elmokit.bench import lstm_share, peak_megabytes, ready, run_round


def main():
    """Load, then answer: the same commands as a peer, with more figures."""
    model, workload, precision = sys.argv[1:]
    together, alone = json.loads(pathlib.Path(workload).read_text(encoding="utf-8"))
    elmo = ready(model, precision)

    def run():
        cold, warm, seconds = run_round(model, precision, together, alone)
        return {"cold": cold, "warm": warm, "alone": seconds}

    def figures():
        return {"megabytes": peak_megabytes(), "lstm_share": lstm_share(model, precision)}

    def vectors(path):
        np.save(path, np.concatenate(elmo.embed(alone, layers="all"), axis=1))  # (L + 1, N, 2P)
        return {}

    answer_commands({"round": run, "figures": figures, "vectors": vectors})


if __name__ == "__main__":
    main()
