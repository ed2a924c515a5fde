"""Shards on a Dask cluster of two network namespaces: kills, missing things, and the same bytes in the end."""

import json
import re
import subprocess
import sys
import venv
from pathlib import Path
from random import Random

import cluster
import pytest
from conftest import BYTES, random_checkpoint

from elmokit.checkpoints import write_checkpoint
from elmokit.cli import main

distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
pytestmark = [
    pytest.mark.skipif(bool(cluster.why_not()), reason=f"two namespaces: {cluster.why_not()}"),
    pytest.mark.timeout(1800),  # dozens of processes that load torch, of which a busy machine runs few at a time
]
KILLS = 3


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A model and a text."""
    folder = tmp_path_factory.mktemp("home")
    write_checkpoint(random_checkpoint(BYTES), folder / "model", to="allenai")
    samples = (Path(__file__).parents[1] / "samples" / "en.txt").read_text(encoding="utf-8").splitlines()
    lines = (json.dumps({"text": line}) + "\n" for line in samples)
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def machines(home):
    with cluster.two_machines() as names, cluster.running(names, home):
        yield names


def begin(machines, home: Path, output: Path, *options: str) -> "subprocess.Popen[str]":
    """`elmokit embed --dask`, on the second machine."""
    command = [sys.executable, "-m", "elmokit", "embed", "a.jsonl", "-m", "model", "-o", output, *options]
    start = cluster.inside(machines[1], *command, "--dask", cluster.SCHEDULER)
    return subprocess.Popen(start, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_workers_are_killed_and_the_bytes_are_the_same(machines, home, tmp_path, monkeypatch):
    driver = begin(machines, home, tmp_path / "v.npz", "--shards", "6")
    killed = cluster.kill_workers(driver, tmp_path / "v.npz", KILLS, Random(0))
    _, err = driver.communicate(timeout=1200)
    assert driver.returncode == 0, err
    assert killed == KILLS  # some when their shard was done already
    assert re.search(r"6 shards computed on [12] machines?, [1-9]\d* begun again; 0 were done already", err)
    monkeypatch.chdir(home)
    main(["embed", "a.jsonl", "-m", "model", "-o", str(tmp_path / "whole.npz")])
    assert (tmp_path / "v.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.npz", "whole.npz"]


def test_a_worker_that_lacks_something_says_so_on_the_driver(machines, home, tmp_path):
    """The driver's own namespace of mounts hides the model's folder under another: the workers do not see it."""
    hidden = f"mount -t tmpfs none {tmp_path} && cp -r {home}/model {tmp_path}/model && cd {home} && exec "
    command = f"{sys.executable} -m elmokit embed a.jsonl -m {tmp_path}/model -o v.npz --dask {cluster.SCHEDULER}"
    start = cluster.inside(machines[0], "unshare", "--mount", "sh", "-c", hidden + command)
    done = subprocess.run(start, cwd=home, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("elmokit: worker tcp://10.213.0.")
    assert f"{tmp_path}/model" in last
    assert not (home / "v.npz").exists()


def test_a_worker_without_elmokit_says_so_on_the_driver(home, tmp_path):
    """Its interpreter finds Dask among our packages; where these lie, there is no elmokit but by a .pth file."""
    venv.create(tmp_path / "bare", symlinks=True)
    packages = str(Path(distributed.__file__).parents[1])
    with (
        cluster.two_machines() as machines,
        cluster.running(machines[:1], tmp_path, python=str(tmp_path / "bare" / "bin" / "python"), PYTHONPATH=packages),
    ):
        driver = begin((machines[0],) * 2, home, tmp_path / "v.npz")
        _, err = driver.communicate(timeout=900)
    assert driver.returncode == 2
    last = err.splitlines()[-1]
    assert last.startswith("elmokit: worker tcp://10.213.0.1:")
    assert last.endswith("elmokit is not installed there: pip install elmokit, or its clone, there too")


def test_nobody_answers(home, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setattr("elmokit.integrations.dask.WAIT", 1)
    with pytest.raises(SystemExit):
        main(["embed", "a.jsonl", "-m", "model", "-o", str(tmp_path / "v.npz"), "--dask", "tcp://127.0.0.1:9"])
    assert "tcp://127.0.0.1:9: no Dask scheduler answers: start one by `dask scheduler`" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_dask_its_install_line_is_said(home, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SystemExit):
        main(["embed", "a.jsonl", "-m", "model", "-o", str(tmp_path / "v.npz"), "--dask", "tcp://127.0.0.1:9"])
    assert 'pip install "elmokit[dask]", or in a clone pip install -e ".[dask]"' in capsys.readouterr().err
