"""What comes from strangers: text of any kind, and servers with tricks."""

import contextlib
import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
from test_hub import Handler, Server, sha256

from elmokit import hub
from elmokit.cli import main
from elmokit.errors import ElmoError
from elmokit.hub import web
from elmokit.vectors import read_vectors
from torture.commands import home
from torture.outcomes import Outcomes, isolated

PIECES = (
    "The bank of the river. ",
    "今天天气很好。",
    "\n",
    "\r\n",
    "\t\u00a0\u3000",
    "\u2028\u2029\x85",
    "a" * 5000,
    "x\u0301" * 300,
    "👩‍👩‍👧‍👦" * 50,
    "\u202eمرحبا\u202c ",
    "\ufeff\u200b\u00ad",
    "[] 【】 <S> </S> <UNK> ",
    "\x1b[31m\x07\x08",
    "ก็ดี",
    '{"text": 1}',
)


def wild_text(pick: Random, folder: Path) -> Outcomes:
    """Embed it: every vector is a number, or one sentence says what is wrong."""
    text = "".join(pick.choice(PIECES) for _ in range(pick.randrange(1, 60))).encode()
    if pick.random() < 0.4:
        at = pick.randrange(len(text) + 1)
        text = text[:at] + pick.randbytes(pick.randrange(1, 30)) + text[at:]
    source = folder / f"wild{pick.choice(('.txt', '.txt', '.jsonl', '.txt.gz', '.fasta'))}"
    target = folder / f"v{pick.choice(('.h5', '.npz', '.safetensors', '.parquet'))}"
    source.write_bytes(text)
    lines = pick.choice(("auto", "sentences", "paragraphs"))
    arguments = ["embed", source, "-m", home() / "model", "-o", target, "--lines", lines, "--batch-tokens", "500"]
    return isolated(lambda: _embedded(list(map(str, arguments)), target))


def _embedded(arguments: list[str], target: Path) -> str | None:
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
        try:
            main(arguments)
        except SystemExit as left:
            message = errors.getvalue().splitlines()[-1]
            if left.code == 2 and message.startswith("elmokit: ") and not target.exists():
                raise ElmoError(message) from None
            return f"exit {left.code}: {message}"
    finite = all(np.isfinite(vectors).all() for vectors in read_vectors(target))
    return None if finite else "vectors that are no numbers"


def server_tricks(pick: Random, folder: Path) -> Outcomes:
    """Fetch a file from a server that is up to something: the right bytes, or one sentence; and nothing half."""
    content = pick.randbytes(pick.randrange(200_000))
    trick = pick.choice(TRICKS)
    vouched = f"#sha256={sha256(content)}" if pick.random() < 0.5 else ""

    def work() -> str | None:
        web.SECONDS_OF_GRACE, web.SECONDS_OF_SILENCE = 0.5, 2.0
        with Server().running() as server:
            server.files["/x.bin"], server.ranges = content, pick.random() < 0.5
            server.tricks["/x.bin"] = lambda handler, served: trick(handler, served, Random(pick.random()))
            try:
                found = hub.fetch(f"{server.url}/x.bin{vouched}").read_bytes()
            finally:
                server.closed = True
        return None if found == content or (not vouched and trick in LIES) else "other bytes"

    with _cache(folder):
        found = isolated(work)
    left = [path.name for path in folder.rglob("*.partial.*")]
    return Outcomes([f"left behind: {left}"]) if left else found


@contextlib.contextmanager
def _cache(folder: Path) -> Iterator[None]:
    before = os.environ.get("ELMOKIT_CACHE"), os.environ.get("no_proxy")
    os.environ |= {"ELMOKIT_CACHE": str(folder / "cache"), "no_proxy": "127.0.0.1"}
    yield
    for name, value in zip(("ELMOKIT_CACHE", "no_proxy"), before, strict=True):
        os.environ.pop(name)
        os.environ |= {} if value is None else {name: value}


def _honest(handler: Handler, content: bytes, pick: Random) -> None:
    handler.send(content)


def _cut(handler: Handler, content: bytes, pick: Random) -> None:
    handler.send(content, cut=pick.randrange(len(content) + 1))


def _other(handler: Handler, content: bytes, pick: Random) -> None:
    handler.send(content[::-1])


def _status(handler: Handler, content: bytes, pick: Random) -> None:
    handler.send(b"<html>", status=pick.choice((204, 206, 301, 302, 304, 401, 404, 416, 500, 503)))


def _elsewhere(handler: Handler, content: bytes, pick: Random) -> None:
    target = pick.choice(
        ("http://example.org/x.bin", "ftp://x/y", "file:///etc/passwd", "/x.bin", "http://[::1/", "\\")
    )
    handler.send(b"", status=302, headers=[("Location", target)])


def _garbage(handler: Handler, content: bytes, pick: Random) -> None:
    handler.wfile.write(
        pick.choice((pick.randbytes(200), b"HTTP/1.1 \xff\r\n\r\n", b"\r\n" * 300, b"HTTP/9 200\r\n\r\n"))
    )
    handler.close_connection = True


def _lengths(handler: Handler, content: bytes, pick: Random) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", pick.choice(("-1", "x", "9" * 30, "0", str(len(content) + 7))))
    handler.end_headers()
    handler.wfile.write(content)
    handler.close_connection = True


def _drip(handler: Handler, content: bytes, pick: Random) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b"x")
        time.sleep(0.02)
    handler.close_connection = True


TRICKS = (_honest, _cut, _other, _status, _elsewhere, _garbage, _lengths, _drip)
LIES = (_other, _status, _lengths)  # of which nobody can know without a checksum
