"""Models pushed to a server that answers as the Hugging Face Hub does, and loaded from there again."""

import base64
import hashlib
import json
import sys
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from conftest import BYTES, CONFIGS, SENTENCES, random_elmo
from test_hub import Handler, Repository, Server

import elmokit
from elmokit.checkpoints import write_checkpoint
from elmokit.cli import main
from elmokit.errors import ConfigError, MissingExtraError, OutputError
from elmokit.hub.huggingface import push

hub = pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of how the library itself uploads
NAME, TOKEN = "somebody/elmo-small", "hf_write"


class WritableRepository(Repository):
    """What huggingface_hub asks of the Hub to write to a repository: small files in the commit, large ones by LFS."""

    def __init__(self, server: Server, name: str) -> None:
        super().__init__(server, name)
        self.large: dict[str, bytes] = {}
        self.cards: list[str] = []
        self.settings: dict = {}
        self.commits.clear()

    def answer(self, handler: Handler, content: bytes | None) -> None:
        if handler.command not in ("POST", "PUT"):
            super().answer(handler, content)
            return
        body = handler.rfile.read(int(handler.headers["Content-Length"] or 0))
        if handler.path.startswith("/large/"):
            self.keep(handler, handler.path.removeprefix("/large/"), body)
        elif handler.headers["Authorization"] != f"Bearer {TOKEN}":
            handler.send(b'{"error": "Invalid username or password."}', status=401)
        else:
            self.write(handler, body)

    def keep(self, handler: Handler, oid: str, body: bytes) -> None:
        assert hashlib.sha256(body).hexdigest() == oid
        self.large[oid] = body
        handler.send(b"")

    def write(self, handler: Handler, body: bytes) -> None:
        asked = [unquote(part) for part in handler.path.removeprefix(f"/api/models/{self.name}/").split("/")]
        if asked[0] == "commit":
            handler.send(json.dumps(self.add(asked[1], [json.loads(line) for line in body.splitlines()])).encode())
            return
        given, answer = json.loads(body), {}
        if handler.path == "/api/repos/create" and self.settings:
            handler.send(json.dumps({"url": f"{self.server.url}/{self.name}"}).encode(), status=409)
            return
        if handler.path == "/api/repos/create":
            self.settings = given
            self.commits["0" * 40], self.revisions["main"] = {".gitattributes": b""}, "0" * 40
            answer = {"url": f"{self.server.url}/{self.name}"}
        elif handler.path == "/api/validate-yaml":
            self.cards.append(given["content"])
        elif handler.path.endswith("/info/lfs/objects/batch"):
            upload = {"href": f"{self.server.url}/large/"}
            objects = [one | {"actions": {"upload": {"href": upload["href"] + one["oid"]}}} for one in given["objects"]]
            answer = {"transfer": "basic", "objects": objects}
        elif asked[0] == "preupload":
            modes = {
                file["path"]: "lfs" if file["path"].endswith("safetensors") else "regular" for file in given["files"]
            }
            answer = {"files": [{"path": at, "uploadMode": mode, "shouldIgnore": False} for at, mode in modes.items()]}
        elif asked[0] == "branch":
            self.revisions[asked[1]] = self.revisions["main"]
        else:
            handler.send(None)
            return
        handler.send(json.dumps(answer).encode())

    def add(self, revision: str, lines: list[dict]) -> dict:
        files = dict(self.commits[self.revisions[revision]])
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.large[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        commit = hashlib.sha1(json.dumps(lines).encode()).hexdigest()
        self.commits[commit], self.revisions[revision] = files, commit
        return {"commitUrl": f"{self.server.url}/{self.name}/commit/{commit}", "commitOid": commit}

    def names(self, revision: str = "main") -> set[str]:
        return set(self.commits[self.revisions[revision]])


@pytest.fixture(autouse=True)
def account(tmp_path, monkeypatch):
    """Nobody is logged in on this machine but by what the test says; large files go by LFS, which needs no service."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    constants = {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_TOKEN_PATH": str(tmp_path / "token")}
    for name, value in (constants | {"HF_HUB_DISABLE_XET": True}).items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)


@pytest.fixture
def repository(monkeypatch):
    with Server().running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield WritableRepository(server, NAME)


def assert_same(one, other):
    for found, expected in zip(one.embed(SENTENCES), other.embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_there_and_back(repository):
    elmo = random_elmo(CONFIGS["words_and_characters"])
    address = elmo.push_to_hub(NAME, private=True)
    assert address == f"hf://{NAME}"
    assert repository.settings["visibility"] == "private"
    assert repository.names() == {".gitattributes", "README.md", "config.json", "model.safetensors", "vocab.txt"}
    loaded = elmokit.load(address)
    assert_same(loaded, elmo)
    assert set(repository.cards) == {loaded.card}
    assert f'elmokit.load("{address}")' in loaded.card
    assert hub.ModelCard(loaded.card).data.library_name == "elmokit"


def test_again(repository):
    """What the new model lacks goes; other people's files stay."""
    random_elmo(CONFIGS["words"]).push_to_hub(NAME)
    repository.commits[repository.revisions["main"]]["notes.txt"] = b"ours"
    elmo = random_elmo(seed=1)
    elmo.push_to_hub(f"hf://{NAME}", message="Without words")
    assert repository.names() == {".gitattributes", "README.md", "config.json", "model.safetensors", "notes.txt"}
    assert_same(elmokit.load(f"hf://{NAME}"), elmo)


def test_a_branch(repository):
    address = push(random_elmo().checkpoint(), NAME, revision="half/v1", half=True)
    assert address == f"hf://{NAME}@half%2Fv1"
    assert "model.safetensors" not in repository.names()
    assert elmokit.load(address).config == BYTES


def test_the_command(repository, tmp_path, capsys, monkeypatch):
    """Any format is pushed as elmokit's own; the token may be the one that `hf auth login` keeps."""
    monkeypatch.delenv("HF_TOKEN")
    (tmp_path / "token").write_text(TOKEN)
    elmo = random_elmo()
    write_checkpoint(elmo.checkpoint(), tmp_path / "allenai", to="allenai")
    main(["push", str(tmp_path / "allenai"), NAME])
    out, error = capsys.readouterr()
    assert out == f"hf://{NAME}: pushed\n"
    assert error.startswith(f"pushing hf://{NAME}, ")
    assert "%|" not in error
    assert_same(elmokit.load(f"hf://{NAME}"), elmo)


class TestRefused:
    @pytest.mark.parametrize("token", [None, "hf_read"])
    def test_not_logged_in(self, repository, monkeypatch, token):
        monkeypatch.delenv("HF_TOKEN")
        with pytest.raises(OutputError, match=rf"hf://{NAME}: not pushed: not allowed: log in by `hf auth login`"):
            random_elmo().push_to_hub(NAME, token=token)
        assert not repository.settings

    def test_no_network(self, monkeypatch):
        with Server().running() as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(OutputError, match=rf"hf://{NAME}: not pushed: .*Is there a network\?"):
            random_elmo().push_to_hub(NAME, token=TOKEN)

    def test_a_server_in_trouble(self, repository):
        repository.write = lambda handler, body: handler.send(b"{}", status=507)
        with pytest.raises(OutputError, match="not pushed: the server answered .*507"):
            random_elmo().push_to_hub(NAME)

    def test_an_upload_that_breaks_off(self, repository, monkeypatch):
        monkeypatch.setattr(WritableRepository, "keep", lambda self, handler, oid, body: handler.send(b"", status=403))
        with pytest.raises(OutputError, match=r"not pushed: Error while uploading 'model\.safetensors'"):
            random_elmo().push_to_hub(NAME)
        assert repository.names() == {".gitattributes"}

    @pytest.mark.parametrize("name", ["elmo", "a/b/c", "a b/c", ""])
    def test_not_a_name(self, name):
        with pytest.raises(ConfigError, match="not a repository's name: expected owner/name"):
            random_elmo().push_to_hub(name)

    def test_missing_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(MissingExtraError, match=r'pip install "elmokit\[hub\]"'):
            random_elmo().push_to_hub(NAME)

    def test_nothing_is_left_behind(self, monkeypatch, tmp_path):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with Server().running() as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(OutputError):
            random_elmo().push_to_hub(NAME, token=TOKEN)
        assert not list(Path(tmp_path).glob("elmokit-*"))
