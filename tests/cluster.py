"""Two machines that are network namespaces on this one: Dask and torchrun on them, and the deaths of workers."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from uuid import uuid4

HOSTS = ("10.213.0.1", "10.213.0.2")
SCHEDULER = f"tcp://{HOSTS[0]}:8786"


def why_not() -> str:
    """Why there can be no namespaces here; nothing if there can."""
    if sys.platform != "linux" or os.getuid() != 0:
        return "only root on Linux may make network namespaces"
    if not shutil.which("ip"):
        return "needs the program ip (iproute2)"
    made = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return made.stderr.strip()


@contextmanager
def two_machines() -> Iterator[tuple[str, str]]:
    """The names of two namespaces, joined by a cable."""
    names = f"elmokit-{uuid4().hex}", f"elmokit-{uuid4().hex}"
    with ExitStack() as stack:
        for name in names:
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
        _ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable", "netns", names[1])
        for name, host in zip(names, HOSTS, strict=True):
            _ip("-n", name, "address", "add", f"{host}/24", "dev", "cable")
            for device in ("cable", "lo"):
                _ip("-n", name, "link", "set", device, "up")
        yield names


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def inside(machine: str, *command: str | Path) -> list[str]:
    """The command on that machine."""
    return ["ip", "netns", "exec", machine, *map(str, command)]


@contextmanager
def started(command: Sequence[str], folder: Path, name: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A program in the background, which writes what it says to a file of that name."""
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, text=True, start_new_session=True, env=os.environ | environment
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def running(
    machines: Sequence[str], folder: Path, *, python: str = sys.executable, **environment: str
) -> Iterator[None]:
    """A scheduler on the first machine and a worker on each, ready; a worker that dies is started again."""
    dask = (python, "-m", "distributed.cli.dask_scheduler"), (python, "-m", "distributed.cli.dask_worker")
    with ExitStack() as stack:
        scheduler = inside(machines[0], *dask[0], "--host", HOSTS[0], "--port", "8786", "--no-dashboard")
        stack.enter_context(started(scheduler, folder, "scheduler", **environment))
        for number, machine in enumerate(machines):
            work = folder / f"worker-{number}"
            options = ("--nthreads", "1", "--host", HOSTS[number], "--no-dashboard", "--local-directory", work)
            stack.enter_context(
                started(inside(machine, *dask[1], SCHEDULER, *options), folder, work.name, **environment)
            )
        for number in range(len(machines)):
            _wait_for(folder / f"worker-{number}.log", "Registered to")
        yield


def _wait_for(log: Path, words: str, *, seconds: float = 300) -> None:
    """Wait until a program has said so: on a busy machine it takes longer to start than anybody waits for it."""
    end = time.monotonic() + seconds
    while words not in (said := log.read_text()):
        assert time.monotonic() < end, said
        time.sleep(0.1)


@contextmanager
def torchrun(machines: Sequence[str], folder: Path, *arguments: str | Path) -> Iterator[list["subprocess.Popen[str]"]]:
    """torchrun on each machine, for one process of elmokit there; they meet on the first."""
    meet = [f"--nnodes={len(machines)}", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-backend=c10d"]
    meet += ["--rdzv-id=elmokit", f"--rdzv-endpoint={HOSTS[0]}:29400"]
    with ExitStack() as stack:
        agents = []
        for number, machine in enumerate(machines):
            # By default an agent that waits for a core for 15 seconds is taken for dead.
            conf = f"is_host={number == 0:d},keep_alive_max_attempt=60,read_timeout=300"
            own = [f"--rdzv-conf={conf}", f"--local-addr={HOSTS[number]}"]
            command = [sys.executable, "-m", "torch.distributed.run", *meet, *own, "-m", "elmokit", *arguments]
            inner, network = inside(machine, *_own_core(number), *command), {"GLOO_SOCKET_IFNAME": "cable"}
            agents.append(
                stack.enter_context(started(inner, folder, f"agent-{number}", OMP_NUM_THREADS="1", **network))
            )
        try:
            yield agents
        finally:
            for agent in agents:  # told to end, it ends its processes too
                agent.terminate()
                agent.wait()


def _own_core(number: int) -> list[str]:
    """What binds a command to one of this machine's cores."""
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "--cpu-list", str(cores[number % len(cores)])] if shutil.which("taskset") else []


def running_commands(*words: bytes, without: bytes = b"\0") -> list[int]:
    """The numbers of the processes whose command lines have these words, and not that one."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                line = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended
            if set(words) <= set(line) and without not in line:
                found.append(int(process.name))
    return found


def kill_workers(driver: "subprocess.Popen[str]", output: Path, kills: int, pick: Random, *, seconds: float = 2) -> int:
    """Kill workers while their shards are at work, every so many seconds at most; how many before the driver ended."""
    done = 0
    while done < kills and driver.poll() is None:
        time.sleep(pick.uniform(0, seconds))
        for process in pick.sample(found := running_commands(b"--shard", os.fsencode(output)), min(1, len(found))):
            with suppress(OSError):  # it may have ended since
                worker = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
                if worker in running_commands(b"--multiprocessing-fork"):  # not what takes in a dead worker's children
                    os.kill(worker, signal.SIGKILL)
                    done += 1
    return done
