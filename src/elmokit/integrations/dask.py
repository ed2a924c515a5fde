"""Shards on the workers of a Dask cluster: each runs the same command with --shard, in a folder that all can see."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from elmokit.errors import ElmoError, MissingExtraError
from elmokit.progress import SILENCE, Progress, counted
from elmokit.shards import Shard, Shards

WAIT = 30  # seconds, for the scheduler to answer and for the first worker
USER_MISTAKE = 2  # the exit code of a command that says what is wrong
NOT_INSTALLED = "No module named elmokit"


def compute_shards(
    address: str, arguments: Sequence[str], shards: Shards, *, retries: int = 3, progress: Progress = SILENCE
) -> None:
    """Have the workers at a scheduler's address compute the shards that are missing, each by the same command.

    Dask itself moves a shard to another worker when its own has died, a few times; then, and where the command ended
    without a word, it is given out again, so many times at most.
    """
    missing, futures, tries = shards.missing(), dict[str, Shard](), Counter[Shard]()
    topic, machines = f"elmokit-{uuid4().hex}", set[str | None]()
    with _connected(address) as client:
        run = _make_task()

        def submit(shard: Shard) -> Any:
            tries[shard] += 1
            key, command = f"{topic}-{shard.number}-{tries[shard]}", [*arguments, "--shard", str(shard)]
            futures[key] = shard
            return client.submit(run, command, str(Path.cwd()), topic, key=key, pure=False)

        waiting, done = import_distributed().as_completed(map(submit, missing)), 0
        for future in waiting:
            shard = futures[future.key]
            failure = _failure(future, shards.path(shard))
            if failure is None:
                done += 1
                machines.add(urlsplit(future.result()[0]).hostname)
                progress.update("computing", done, len(missing), unit="shards")
            elif tries[shard] <= retries:
                progress.message(f"shard {shard} is given out again: {failure}")
                waiting.add(submit(shard))
            else:
                raise ElmoError(f"shard {shard} failed {counted(tries[shard], 'time')}, at last so: {failure}")
        begun = len(client.get_events(topic))
    computed = f"{counted(len(missing), 'shard')} computed on {counted(len(machines), 'machine')}"
    progress.message(f"{computed}, {begun - done} begun again; {shards.count - done} were done already")


def import_distributed() -> Any:
    """Dask's distributed, or how to get it."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("workers of a cluster need Dask", "dask") from None
    return distributed


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A scheduler that has workers."""
    distributed = import_distributed()
    try:
        client = distributed.Client(address, timeout=WAIT)
    except (OSError, ValueError) as error:
        raise ElmoError(f"{address}: no Dask scheduler answers: start one by `dask scheduler` ({error})") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=WAIT)
        except TimeoutError:
            start = f"start them by `dask worker {address}`"
            raise ElmoError(f"{address}: the Dask scheduler has no workers: {start}") from None
        yield client


def _failure(future: Any, path: Path) -> str | None:
    """Why a shard is to be computed again; nothing if it is done. What no repetition would mend is raised."""
    if future.status != "finished":
        return " ".join(str(future.exception() if future.status == "error" else future.status).split())
    worker, code, errors = future.result()
    last = (errors.strip().splitlines() or ["nothing was said"])[-1].removeprefix("elmokit: ")
    if NOT_INSTALLED in errors:
        raise ElmoError(
            f"worker {worker}: elmokit is not installed there: pip install elmokit, or its clone, there too"
        )
    if code == USER_MISTAKE:
        raise ElmoError(f"worker {worker}: {last}")
    if code:
        return f"worker {worker}: exit code {code}, {last}"
    if not path.exists():
        needs = "machines need the same text, model, elmokit and torch, and one folder for the output that all can see"
        raise ElmoError(f"worker {worker}: done there, but {path} is not here: {needs}")
    return None


def _make_task() -> Callable[[list[str], str, str], tuple[str, int, str]]:
    """What a worker runs: a function within a function, which is sent as code, so that elmokit may be missing there."""

    def run(arguments: list[str], folder: str, topic: str) -> tuple[str, int, str]:
        import subprocess
        import sys
        from pathlib import Path
        from shutil import which

        from distributed import get_worker

        worker = get_worker()
        worker.log_event(topic, arguments[-1])
        if not Path(folder).is_dir():
            return worker.address, 2, f"there is no folder {folder}: all machines must see it under this name"
        # A worker that is killed takes the command with it, where the system can.
        dies_with_worker = ["setpriv", "--pdeathsig", "KILL"] if which("setpriv") else []
        command = [*dies_with_worker, sys.executable, "-m", "elmokit", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        return worker.address, done.returncode, done.stderr

    return run
