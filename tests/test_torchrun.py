"""Pretraining on two machines by torchrun: a process is killed, torchrun starts all again, and the run goes on."""

import os
import signal
import time
from pathlib import Path

import cluster
import numpy as np
import pytest
import torch
from test_pretrain_edges import SMALL, metrics, text  # noqa: F401 (a fixture)

import elmokit
from elmokit.cli import main

needs_namespaces = pytest.mark.skipif(bool(cluster.why_not()), reason=f"two namespaces: {cluster.why_not()}")
TRAINING = [*SMALL, "-s", "training.dropout=0", "-s", "training.epochs=2", "-s", "training.save_minutes=0.0001"]


def step(folder: Path) -> int:
    path = folder / "training.pt"
    return torch.load(path, weights_only=True)["step"] if path.exists() else 0


def processes(folder: Path) -> list[int]:
    """Those that train in this folder."""
    return cluster.running_commands(b"elmokit", os.fsencode(folder), without=b"torch.distributed.run")


@needs_namespaces
@pytest.mark.timeout(1800)  # two processes that wait for each other at every step, however busy the machine is
def test_a_process_is_killed_and_training_goes_on(text, tmp_path):  # noqa: F811
    main(["pretrain", str(text), "-o", str(tmp_path / "one"), *TRAINING])
    folder, command = tmp_path / "two", ["pretrain", text, "-o", tmp_path / "two", *TRAINING, "--resume"]
    with cluster.two_machines() as machines, cluster.torchrun(machines, tmp_path, *command) as agents:
        killed_at = wait_for_step(folder, 5, agents)
        os.kill(processes(folder)[-1], signal.SIGKILL)
        codes = [agent.wait(timeout=800) for agent in agents]
    assert codes == [0, 0], (tmp_path / "agent-0.log").read_text()
    one, two = (metrics(tmp_path / name) for name in ("one", "two"))
    assert killed_at < one[-1]["step"] == two[-1]["step"]
    values = [[line["loss"], *line["perplexity"].values()] for run in (one, two) for line in run[-1:]]
    np.testing.assert_allclose(*values, rtol=1e-4)  # gradients are added up in another order
    assert len(elmokit.load(folder).embed(["the cat sees the moon ."])[0]) == 6


def wait_for_step(folder: Path, wanted: int, agents) -> int:
    end = time.monotonic() + 800
    while (found := step(folder)) < wanted:
        assert time.monotonic() < end
        assert [agent.poll() for agent in agents] == [None, None]
        time.sleep(0.05)
    return found
