"""Models from addresses: real downloads from real servers on this machine."""

import hashlib
import json
import logging
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import Request

import numpy as np
import pytest
from conftest import SENTENCES, hear_interrupts

import elmokit
from elmokit import hub
from elmokit.errors import CheckpointError, ConfigError, MissingExtraError, OutputError
from elmokit.files import cache_folder
from elmokit.hub import web
from elmokit.integrations.allennlp import ElmoEmbedder

CONTENT = np.random.default_rng(0).bytes(3_000_000)  # more than two blocks


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves the server's files; an address may have a trick of its own."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self):
        if self.server.closed:
            self.close_connection = True  # one that was kept open
            return
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        name = unquote(urlsplit(self.path).path)
        trick = self.server.tricks.get(name, Handler.send)
        trick(self, self.server.files.get(name))

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

    def send(self, content, *, headers=(), status=200, cut=None):
        """Answer with the content, or with as much of it as was asked for; `cut` breaks off after so many bytes."""
        if content is None:
            self.send_error(404)
            return
        tag, start = f'"{sha256(content)[:8]}"', 0
        if self.server.ranges and self.headers["Range"] and self.headers["If-Range"] == tag:
            start, status = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-")), 206
        self.send_response(status)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - start))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        for header in headers:
            self.send_header(*header)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[start : None if cut is None else start + cut])
        self.close_connection = cut is not None

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.tricks: dict[str, Callable] = {}
        self.requests: list[tuple[str, str, dict]] = []
        self.ranges, self.closed = True, False
        self.url = f"http://127.0.0.1:{self.server_port}"

    def put(self, folder: Path, at: str) -> None:
        for file in folder.rglob("*"):
            if file.is_file():
                self.files[f"{at}/{file.relative_to(folder).as_posix()}"] = file.read_bytes()

    def handle_error(self, request, client_address):
        pass  # a client that has gone, as it should

    @contextmanager
    def running(self) -> Iterator["Server"]:
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.closed = True
            self.shutdown()
            self.server_close()
            thread.join()


@pytest.fixture
def server():
    with Server().running() as server:
        yield server


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache"


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def assert_same_model(one, folder):
    for found, expected in zip(one.embed(SENTENCES), elmokit.load(folder).embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(found, expected)


class TestModelsOfTheWeb:
    def test_weights_bring_their_options(self, server, model_folder):
        server.files["/elmo/small_weights.hdf5"] = (model_folder / "weights.hdf5").read_bytes()
        server.files["/elmo/small_options.json"] = (model_folder / "options.json").read_bytes()
        assert_same_model(elmokit.load(f"{server.url}/elmo/small_weights.hdf5"), model_folder)

    def test_native(self, server, tmp_path, elmo):
        elmo.save(tmp_path / "model")
        server.put(tmp_path / "model", "/my")
        assert_same_model(elmokit.load(f"{server.url}/my/model.safetensors"), tmp_path / "model")

    def test_archive(self, server, tmp_path, model_folder):
        archive = Path(shutil.make_archive(str(tmp_path / "193"), "zip", model_folder))
        server.files["/193.zip"] = archive.read_bytes()
        address = f"{server.url}/193.zip?download=1#sha256={sha256(archive.read_bytes())}"
        assert_same_model(elmokit.load(address), model_folder)

    def test_two_addresses_for_allennlp(self, server, model_folder):
        server.files["/a/my.json"] = (model_folder / "options.json").read_bytes()
        server.files["/b/pubmed.hdf5"] = (model_folder / "weights.hdf5").read_bytes()
        embedder = ElmoEmbedder(f"{server.url}/a/my.json", f"{server.url}/b/pubmed.hdf5")
        (expected,) = elmokit.load(model_folder).embed([["One", "two"]], layers="all")
        np.testing.assert_allclose(embedder.embed_sentence(["One", "two"]), expected, atol=1e-5)

    def test_without_a_network_the_second_time(self, model_folder):
        with Server().running() as server:
            server.put(model_folder, "/m")
            elmokit.load(f"{server.url}/m/weights.hdf5")
        assert_same_model(elmokit.load(f"{server.url}/m/weights.hdf5"), model_folder)


class TestFilesOfTheWeb:
    def test_fetched_once(self, server, cache):
        server.files["/a b/模型.bin"] = CONTENT
        address = f"{server.url}/a%20b/%E6%A8%A1%E5%9E%8B.bin"
        path = hub.fetch(address)
        assert path.name == "模型.bin"
        assert cache in path.parents
        assert path.read_bytes() == CONTENT
        assert hub.fetch(address) == path
        assert len(server.requests) == 1

    def test_same_name_elsewhere(self, server):
        server.files |= {"/a/x.bin": b"one", "/b/x.bin": b"two"}
        assert hub.fetch(f"{server.url}/a/x.bin").read_bytes() == b"one"
        assert hub.fetch(f"{server.url}/b/x.bin").read_bytes() == b"two"

    def test_checksum(self, server, cache):
        server.files["/x.bin"] = CONTENT
        hub.fetch(f"{server.url}/x.bin#sha256={sha256(CONTENT).upper()}")
        server.files["/x.bin"] = b"replaced"
        with pytest.raises(CheckpointError, match=f"its sha256 is {sha256(b'replaced')}, not the expected {'0' * 64}"):
            hub.fetch(f"{server.url}/x.bin#sha256={'0' * 64}")
        assert files_in(cache) == [".x.bin.json", "x.bin"]
        assert hub.fetch(f"{server.url}/x.bin").read_bytes() == CONTENT  # what was good is still there
        assert hub.fetch(f"{server.url}/x.bin#sha256={sha256(b'replaced')}").read_bytes() == b"replaced"

    def test_a_wrong_file_is_not_kept(self, server, cache):
        server.files["/x.bin"] = CONTENT
        with pytest.raises(CheckpointError, match="sha256"):
            hub.fetch(f"{server.url}/x.bin#sha256={'0' * 64}")
        assert files_in(cache) == []

    @pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"short"), Path.unlink])
    def test_a_damaged_cache_is_mended(self, server, damage):
        server.files["/x.bin"] = CONTENT
        damage(hub.fetch(f"{server.url}/x.bin"))
        assert hub.fetch(f"{server.url}/x.bin").read_bytes() == CONTENT

    def test_a_damaged_record_is_mended(self, server):
        server.files["/x.bin"] = CONTENT
        path = hub.fetch(f"{server.url}/x.bin")
        path.with_name(".x.bin.json").write_text("[")
        assert hub.fetch(f"{server.url}/x.bin").read_bytes() == CONTENT
        assert len(server.requests) == 2

    def test_many_at_once(self, server, cache):
        server.files["/x.bin"] = CONTENT
        found: list[bytes] = []
        threads = [
            threading.Thread(target=lambda: found.append(hub.fetch(f"{server.url}/x.bin").read_bytes()))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [CONTENT] * 4
        assert files_in(cache) == [".x.bin.json", "x.bin"]

    def test_progress_is_logged(self, server, caplog):
        server.files["/x.bin"] = CONTENT
        with caplog.at_level(logging.INFO, logger="elmokit.hub"):
            hub.fetch(f"{server.url}/x.bin")
        assert caplog.messages[0] == f"fetching {server.url}/x.bin"
        assert caplog.messages[-1].startswith("2.9 of 2.9 MB, ")


class TestBrokenConnections:
    def breaking(self, server, times, cut=1_200_000):
        """A server that breaks off so many times."""
        left = iter(range(times))

        def send(handler, content):
            handler.send(content, cut=cut if next(left, None) is not None else None)

        server.files["/x.bin"] = CONTENT
        server.tricks["/x.bin"] = send

    @pytest.mark.parametrize("ranges", [True, False])
    def test_taken_up_again(self, server, cache, ranges):
        server.ranges = ranges
        self.breaking(server, 2)
        assert hub.fetch(f"{server.url}/x.bin").read_bytes() == CONTENT
        starts = [headers.get("Range") for _, _, headers in server.requests]
        assert starts == [None, "bytes=1200000-", "bytes=2400000-" if ranges else "bytes=1200000-"]

    def test_a_file_that_changed_meanwhile_is_not_patched_together(self, server):
        self.breaking(server, 1)

        def change(handler, content):
            server.files["/x.bin"] = CONTENT[::-1]
            server.tricks.clear()
            handler.send(content, cut=1_200_000)

        server.tricks["/x.bin"] = change
        assert hub.fetch(f"{server.url}/x.bin").read_bytes() == CONTENT[::-1]

    def test_given_up_in_the_end(self, server, cache):
        self.breaking(server, 100, cut=400_000)
        with pytest.raises(CheckpointError, match="broke 5 times, the last time at byte 2,000,000"):
            hub.fetch(f"{server.url}/x.bin")
        assert files_in(cache) == []

    def test_nobody_there(self, cache):
        with Server().running() as server:
            pass
        with pytest.raises(CheckpointError, match=r"x\.bin: cannot be fetched: .*refused.*Is there a network\?"):
            hub.fetch(f"{server.url}/x.bin")
        assert files_in(cache) == []

    def test_not_found(self, server):
        with pytest.raises(CheckpointError, match=r"/x\.hdf5: the server answered 404"):
            elmokit.load(f"{server.url}/x.hdf5")

    def test_ctrl_c_leaves_nothing(self, server, cache):
        halfway, over = threading.Event(), threading.Event()

        def wait_halfway(handler, content):
            handler.send(content, cut=1_200_000)
            halfway.set()
            over.wait(60)

        server.files["/x.bin"], server.tricks["/x.bin"] = CONTENT, wait_halfway
        code = f"from elmokit.hub import fetch; fetch({server.url + '/x.bin'!r})"
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, preexec_fn=hear_interrupts)
        try:
            assert halfway.wait(60)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
        finally:
            over.set()
        assert b"KeyboardInterrupt" in error
        assert files_in(cache) == []


class TestRefused:
    def test_too_large_by_its_own_word(self, server, cache):
        server.files["/x.bin"] = CONTENT
        with pytest.raises(CheckpointError, match="3,000,000 bytes or more, and no more than 1,000,000 are fetched"):
            hub.fetch(f"{server.url}/x.bin", largest=1_000_000)
        assert files_in(cache) == []

    def test_endless(self, server, cache):
        def endless(handler, content):
            handler.send_response(200)
            handler.send_header("Connection", "close")
            handler.end_headers()
            while True:
                handler.wfile.write(CONTENT)

        server.tricks["/x.bin"] = endless
        with pytest.raises(CheckpointError, match="no more than 9,000,000 are fetched"):
            hub.fetch(f"{server.url}/x.bin", largest=9_000_000)
        assert files_in(cache) == []

    @pytest.mark.parametrize(
        ("address", "message"),
        [
            ("http://example.org/elmo.zip", "anybody may change it"),
            ("https://example.org/", "not the address of a file"),
            ("https://example.org/a/..", "not the address of a file"),
            ("https://example.org/%2e%2e%2fetc", "not the address of a file"),
            ("https://example.org/.hidden", "not the address of a file"),
            ("https://user:secret@example.org/elmo.zip", "not the address of a file"),
            ("https:///elmo.zip", "not the address of a file"),
            ("https://example.org/elmo.zip#md5=1", "not a checksum"),
            ("https://example.org/elmo.zip#sha256=12", "not a checksum"),
            ("http://[::1/elmo.zip", "not an address: Invalid IPv6 URL"),
            ("https://\ud800.org/elmo.zip", "not an address"),
            ("hf://owner", "not a repository's address"),
            ("hf://owner/name/../other", "not a repository's address"),
            ("hf://owner/name@", "not a repository's address"),
        ],
    )
    def test_addresses(self, address, message):
        with pytest.raises(ConfigError, match=message):
            hub.fetch(address)

    def test_directions_to_unencrypted_places(self, server):
        """What https would refuse at once it does not follow a server to either."""

        def elsewhere(handler, content):
            handler.send(b"", status=302, headers=[("Location", f"{server.url}/x.bin")])

        server.files["/x.bin"] = CONTENT
        server.tricks["/moved.bin"] = elsewhere
        assert hub.fetch(f"{server.url}/moved.bin").read_bytes() == CONTENT  # from this machine to itself

    @pytest.mark.parametrize(("origin", "target"), [("127.0.0.1", "example.org"), ("example.org", "127.0.0.1")])
    def test_directions_from_here_to_elsewhere_and_back(self, origin, target):
        directions = web._Redirects(vouched=False)
        scheme = "http" if origin == "127.0.0.1" else "https"
        with pytest.raises(ConfigError, match=f"http://{target}/x.bin: not fetched, for anybody may change it"):
            directions.redirect_request(
                Request(f"{scheme}://{origin}/x.bin"), None, 302, "", {}, f"http://{target}/x.bin"
            )

    def test_a_kept_file_is_checked_if_a_checksum_is_asked_for(self, server):
        server.files["/x.bin"] = CONTENT
        path = hub.fetch(f"{server.url}/x.bin#sha256={sha256(CONTENT)}")
        path.write_bytes(CONTENT[::-1])  # as long, and another
        assert hub.fetch(f"{server.url}/x.bin").read_bytes() == CONTENT[::-1]
        assert hub.fetch(f"{server.url}/x.bin#sha256={sha256(CONTENT)}").read_bytes() == CONTENT

    def test_a_server_that_feeds_drop_by_drop(self, server, cache, monkeypatch):
        def drip(handler, content):
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
            while not server.closed:
                handler.wfile.write(b"x")
                time.sleep(0.05)

        monkeypatch.setattr(web, "SECONDS_OF_GRACE", 0.5)
        server.tricks["/slow.bin"] = drip
        start = time.monotonic()
        with pytest.raises(CheckpointError, match=r"slow.bin: given up: \d+ bytes in \d+ seconds would never end"):
            hub.fetch(f"{server.url}/slow.bin")
        assert time.monotonic() - start < 5
        assert files_in(cache) == []

    def test_messages_are_one_line(self, server):
        def strange(handler, content):
            handler.wfile.write(b"HTTP/1.1 500 a\tb" + b"\x0b" + b"c\r\n\r\n")
            handler.close_connection = True

        server.tricks["/strange.bin"] = strange
        with pytest.raises(CheckpointError) as caught:
            hub.fetch(f"{server.url}/strange.bin")
        assert str(caught.value).endswith("the server answered 500 a b c")

    def test_a_cache_that_is_no_folder(self, server, cache):
        cache.write_text("in the way")
        server.files["/x.bin"] = CONTENT
        with pytest.raises(OutputError, match=r"x\.bin: cannot be written"):
            hub.fetch(f"{server.url}/x.bin")

    def test_paths_are_left_alone(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        assert hub.local_path("~/model") == tmp_path / "model"
        assert hub.local_path(tmp_path) == tmp_path


def test_default_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("ELMOKIT_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "elmokit"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert cache_folder() == tmp_path / "elsewhere" / "elmokit"


class Repository:
    """A model repository as the Hugging Face Hub serves one: what huggingface_hub asks for, and no more."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.commits: dict[str, dict[str, bytes]] = {}
        self.revisions: dict[str, str] = {}
        server.tricks = _Everything(self.answer)

    def commit(self, folder: Path, revision: str = "main") -> str:
        files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        commit = hashlib.sha1(b"".join(files.values())).hexdigest()
        self.commits[commit], self.revisions[revision] = files, commit
        return commit

    def answer(self, handler: Handler, content: bytes | None) -> None:
        path = unquote(urlsplit(handler.path).path)
        api, resolve = f"/api/models/{self.name}/", f"/{self.name}/resolve/"
        if path.startswith(api):
            kind, _, revision = path.removeprefix(api).partition("/")
            commit = self.revisions.get(revision, revision)
            if commit not in self.commits:
                handler.send(b"{}", status=404, headers=[("X-Error-Code", "RevisionNotFound")])
            else:
                handler.send(json.dumps(self.described(commit) if kind == "revision" else self.tree(commit)).encode())
        elif path.startswith(resolve):
            commit, _, name = path.removeprefix(resolve).partition("/")
            handler.send(self.commits[commit].get(name), headers=[("X-Repo-Commit", commit)])
        else:
            handler.send(b"{}", status=404, headers=[("X-Error-Code", "RepoNotFound")])

    def described(self, commit: str) -> dict:
        siblings = [{"rfilename": name, "size": len(content)} for name, content in self.commits[commit].items()]
        return {"id": self.name, "sha": commit, "private": False, "tags": [], "siblings": siblings}

    def tree(self, commit: str) -> list[dict]:
        return [
            {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
            for name, content in self.commits[commit].items()
        ]


class _Everything(dict):
    """The same trick at every address."""

    def __init__(self, trick):
        self.trick = trick

    def get(self, name, default=None):
        return self.trick


class TestHuggingFaceHub:
    @pytest.fixture(autouse=True)
    def hub_cache(self, tmp_path, monkeypatch) -> Path:
        pytest.importorskip("huggingface_hub")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))  # as HF_HUB_CACHE does
        return tmp_path / "hub"

    @pytest.fixture
    def folders(self, tmp_path, elmo, model_folder):
        """A repository's files: a model at its root and another in a folder."""
        elmo.save(tmp_path / "repository")
        shutil.copytree(model_folder, tmp_path / "repository" / "models" / "small")
        shutil.make_archive(str(tmp_path / "repository" / "packed"), "zip", model_folder)
        return tmp_path / "repository"

    @pytest.fixture
    def repository(self, server, folders, monkeypatch):
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        repository = Repository(server, "somebody/elmo-small")
        repository.commit(folders)
        return repository

    def test_a_model(self, repository, folders, hub_cache):
        assert_same_model(elmokit.load("hf://somebody/elmo-small"), folders)
        assert hub.fetch("hf://somebody/elmo-small").parent == hub_cache / "models--somebody--elmo-small" / "snapshots"

    def test_a_folder_alone(self, repository, folders):
        path = hub.fetch("hf://somebody/elmo-small/models/small")
        assert_same_model(elmokit.load("hf://somebody/elmo-small/models/small/"), folders / "models" / "small")
        assert files_in(path.parents[1]) == ["options.json", "weights.hdf5"]

    def test_a_file_and_its_checksum(self, repository, folders):
        digest = sha256((folders / "packed.zip").read_bytes())
        address = "hf://somebody/elmo-small/packed.zip#sha256="
        assert_same_model(elmokit.load(address + digest), folders / "models" / "small")
        with pytest.raises(CheckpointError, match="not the expected"):
            hub.fetch(address + "0" * 64)
        with pytest.raises(ConfigError, match="a checksum is for a file"):
            hub.fetch(f"hf://somebody/elmo-small/models#sha256={digest}")

    def test_revisions(self, repository, folders):
        first = repository.commit(folders, "v1.0")
        (folders / "notes.md").write_text("changed")
        repository.commit(folders, "refs/pr/1")
        assert not (hub.fetch("hf://somebody/elmo-small@v1.0") / "notes.md").exists()
        assert (hub.fetch("hf://somebody/elmo-small@refs%2Fpr%2F1") / "notes.md").exists()
        assert hub.fetch(f"hf://somebody/elmo-small@{first}") == hub.fetch("hf://somebody/elmo-small@v1.0")

    def test_what_has_changed_is_fetched(self, repository, folders):
        hub.fetch("hf://somebody/elmo-small")
        (folders / "notes.md").write_text("changed")
        repository.commit(folders)
        assert (hub.fetch("hf://somebody/elmo-small") / "notes.md").read_text() == "changed"
        fetched = [
            path for command, path, _ in repository.server.requests if command == "GET" and "safetensors" in path
        ]
        assert len(fetched) == 1

    def test_without_a_network(self, folders, monkeypatch):
        with Server().running() as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            Repository(server, "somebody/elmo-small").commit(folders)
            hub.fetch("hf://somebody/elmo-small")
        assert_same_model(elmokit.load("hf://somebody/elmo-small"), folders)
        with pytest.raises(CheckpointError, match=r"nothing of it is kept. Is there a network\?"):
            elmokit.load("hf://somebody/else")

    @pytest.mark.parametrize(
        ("address", "message"),
        [
            ("hf://somebody/else", "no such repository"),
            ("hf://somebody/elmo-small@v9", "no revision 'v9'"),
            ("hf://somebody/elmo-small/models/large", "no such file or folder"),
        ],
    )
    def test_not_there(self, repository, address, message):
        with pytest.raises(CheckpointError, match=f"{address}: .*{message}"):
            elmokit.load(address)

    def test_too_large(self, repository):
        with pytest.raises(CheckpointError, match="no more than 1,000 are fetched"):
            hub.fetch("hf://somebody/elmo-small", largest=1000)
        assert not any("resolve" in path for command, path, _ in repository.server.requests if command == "GET")

    def test_nothing_is_printed(self, repository, capfd, caplog):
        with caplog.at_level(logging.INFO, logger="elmokit.hub"):
            hub.fetch("hf://somebody/elmo-small")
        assert capfd.readouterr() == ("", "")
        assert caplog.messages[0].startswith("fetching hf://somebody/elmo-small, ")


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r'needs? huggingface_hub: pip install "elmokit\[hub\]"'):
        elmokit.load("hf://somebody/elmo-small")
