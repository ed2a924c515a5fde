"""Pretraining on two machines by torchrun: a process is killed, torchrun starts all again, and the run goes on."""

import os
import signal
import subprocess
import sys
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
def test_a_process_is_killed_and_training_goes_on(text, tmp_path):  # noqa: F811
    main(["pretrain", str(text), "-o", str(tmp_path / "one"), *TRAINING])
    folder, agents = tmp_path / "two", []
    with cluster.two_machines() as machines:
        for machine, host in zip(machines, cluster.HOSTS, strict=True):
            agents.append(start(machine, host, "pretrain", text, "-o", folder, *TRAINING, "--resume"))
        killed_at = wait_for_step(folder, 5, agents)
        victim = processes(folder)[-1]
        os.kill(victim, signal.SIGKILL)
        told = [agent.communicate(timeout=500)[1] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], "\n".join(told)
    one, two = (metrics(tmp_path / name) for name in ("one", "two"))
    assert killed_at < one[-1]["step"] == two[-1]["step"]
    values = [[line["loss"], *line["perplexity"].values()] for run in (one, two) for line in run[-1:]]
    np.testing.assert_allclose(*values, rtol=1e-4)  # gradients are added up in another order
    assert len(elmokit.load(folder).embed(["the cat sees the moon ."])[0]) == 6


def start(machine: str, host: str, *arguments: str | Path) -> "subprocess.Popen[str]":
    """torchrun on a machine, for one process; the first machine is where they meet."""
    meet = ["--nnodes=2", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-backend=c10d", "--rdzv-id=test"]
    meet += [f"--rdzv-endpoint={cluster.HOSTS[0]}:29400", f"--rdzv-conf=is_host={host == cluster.HOSTS[0]:d}"]
    command = [sys.executable, "-m", "torch.distributed.run", *meet, f"--local-addr={host}", "-m", "elmokit"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "cable"}
    started = cluster.inside(machine, *command, *arguments)
    return subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for_step(folder: Path, wanted: int, agents) -> int:
    end = time.monotonic() + 300
    while (found := step(folder)) < wanted:
        assert time.monotonic() < end
        for agent in agents:
            assert agent.poll() is None, agent.communicate()[1]
        time.sleep(0.05)
    return found
