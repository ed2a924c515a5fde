"""What is written is there whole or not at all, whatever happens on the way."""

import os
import subprocess
import sys
import threading

import pytest

from elmokit.errors import CheckpointError, ConfigError, OutputError
from elmokit.files import check_same_settings, locked, read_state, replace_file, replacing, replacing_folder

HOLDER = """
import sys
from pathlib import Path
from elmokit.files import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def written(folder, content: str, **options) -> None:
    with replacing_folder(folder, files={"a.txt"}, **options) as partial:
        (partial / "a.txt").write_text(content)


class TestFiles:
    def test_a_file_is_replaced_in_one_move(self, tmp_path):
        replace_file(tmp_path / "a.txt", b"first")
        replace_file(tmp_path / "a.txt", b"second")
        assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
        assert (tmp_path / "a.txt").read_bytes() == b"second"

    def test_an_error_leaves_what_was_there(self, tmp_path):
        replace_file(tmp_path / "a.txt", b"first")
        with pytest.raises(FileNotFoundError), replacing(tmp_path / "a.txt") as partial:
            partial.write_bytes((tmp_path / "missing").read_bytes())
        assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
        assert (tmp_path / "a.txt").read_bytes() == b"first"

    def test_a_place_that_cannot_be_written_is_told(self, tmp_path):
        """And not that nothing could be removed there."""
        (tmp_path / "file").touch()
        with pytest.raises(OutputError, match="a.txt: cannot be written: Not a directory"):
            replace_file(tmp_path / "file" / "a.txt", b"first")

    def test_a_read_only_file_system(self, tmp_path):
        mounted = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(tmp_path)]
        if os.name != "posix" or os.getuid() or subprocess.run(mounted, capture_output=True, check=False).returncode:
            pytest.skip("needs root and mount")
        try:
            with pytest.raises(OutputError, match="a.txt: cannot be written: Read-only file system$"):
                replace_file(tmp_path / "a.txt", b"first")
            with pytest.raises(OutputError, match="cannot be written: Read-only file system$"):
                written(tmp_path / "model", "first")
            with pytest.raises(OutputError, match="cannot be written: Read-only file system$"), locked(tmp_path):
                pass
        finally:
            subprocess.run(["umount", str(tmp_path)], check=True)

    def test_a_full_disk_that_has_no_room_for_a_lock(self, tmp_path):
        mounted = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(tmp_path)]
        if os.name != "posix" or os.getuid() or subprocess.run(mounted, capture_output=True, check=False).returncode:
            pytest.skip("needs root and mount")
        try:
            (tmp_path / "full").write_bytes(bytes(4096))
            with pytest.raises(OutputError, match="cannot be written: No space left on device$"), locked(tmp_path):
                pass
            assert [file.name for file in tmp_path.iterdir()] == ["full"]
        finally:
            subprocess.run(["umount", str(tmp_path)], check=True)

    def test_what_killed_processes_left_of_the_same_file_goes(self, tmp_path, dead):
        for name in (f".7.{dead}.partial.a.txt", f".7.{dead}.partial.a.txt.flat", f".7.{dead}.partial.b.txt"):
            (tmp_path / name).touch()
        (tmp_path / f".7.{os.getppid()}.partial.a.txt").touch()
        replace_file(tmp_path / "a.txt", b"first")
        left = {f".7.{dead}.partial.b.txt", f".7.{os.getppid()}.partial.a.txt", "a.txt"}
        assert {file.name for file in tmp_path.iterdir()} == left

    def test_a_state_that_is_none(self, tmp_path):
        replace_file(tmp_path / "training.pt", b"no state")
        with pytest.raises(CheckpointError, match="cannot be read as the state of a run"):
            read_state(tmp_path / "training.pt")


class TestFolders:
    def test_only_what_is_ours_is_overwritten(self, tmp_path):
        written(tmp_path / "model", "first")
        with pytest.raises(OutputError, match="is not empty"):
            written(tmp_path / "model", "second")
        written(tmp_path / "model", "second", overwrite=True)
        assert (tmp_path / "model" / "a.txt").read_text() == "second"
        (tmp_path / "model" / "mine.txt").touch()
        with pytest.raises(OutputError, match=r"holds other files too \('mine.txt'\)"):
            written(tmp_path / "model", "third", overwrite=True)
        assert [file.name for file in tmp_path.iterdir()] == ["model"]

    def test_killed_between_two_moves_the_old_one_comes_back(self, tmp_path, dead):
        written(tmp_path / "model", "first")
        (tmp_path / "model").rename(tmp_path / f".model.{dead}.old")
        (tmp_path / f".model.{dead}.partial").mkdir()
        with pytest.raises(OutputError, match="is not empty"):
            written(tmp_path / "model", "second")
        assert (tmp_path / "model" / "a.txt").read_text() == "first"
        assert [file.name for file in tmp_path.iterdir()] == ["model"]

    def test_killed_after_both_moves_the_old_one_goes(self, tmp_path, dead):
        written(tmp_path / "model", "second")
        (tmp_path / f".model.{dead}.old").mkdir()
        written(tmp_path / "model", "third", overwrite=True)
        assert [file.name for file in tmp_path.iterdir()] == ["model"]

    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere two moves are needed")
    def test_overwriting_leaves_no_moment_without_a_folder(self, tmp_path):
        written(tmp_path / "model", "first")
        missing, done = [], threading.Event()

        def watch():
            while not done.is_set():
                missing.extend([] if (tmp_path / "model" / "a.txt").exists() else ["missing"])

        watcher = threading.Thread(target=watch)
        watcher.start()
        for number in range(100):
            written(tmp_path / "model", str(number), overwrite=True)
        done.set()
        watcher.join()
        assert not missing
        assert [file.name for file in tmp_path.iterdir()] == ["model"]

    def test_what_a_running_process_writes_is_left_alone(self, tmp_path):
        (tmp_path / f".model.{os.getppid()}.partial").mkdir()
        written(tmp_path / "model", "first")
        assert (tmp_path / f".model.{os.getppid()}.partial").exists()


class TestLock:
    def test_the_second_is_told_who_has_it(self, tmp_path):
        command = [sys.executable, "-c", HOLDER, str(tmp_path / "run")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "locked\n"
            with pytest.raises(OutputError, match=f"in use by process {holder.pid} on "), locked(tmp_path / "run"):
                pass
            holder.kill()
            holder.wait()
            with locked(tmp_path / "run"):  # the lock of a process that died is free
                assert (tmp_path / "run" / ".lock").read_text().startswith(f"process {os.getpid()} on ")

    def test_a_folder_that_stays_empty_goes_again(self, tmp_path):
        with locked(tmp_path / "run"):
            assert (tmp_path / "run").exists()
        assert not (tmp_path / "run").exists()


def test_a_message_is_one_line():
    """Whatever a file is called."""
    assert str(OutputError("a\nb\u2028\ud800\x1b[31m 今天")) == r"a\nb\u2028\ud800\x1b[31m 今天"


def test_settings_that_changed_are_named(tmp_path):
    before, now = {"training": {"batch": 8, "seed": 0}}, {"training": {"batch": 16, "seed": 0}}
    with pytest.raises(ConfigError, match=r"training\.batch was 8 and is 16$"):
        check_same_settings(tmp_path, before, now)
    check_same_settings(tmp_path, before, before)
