"""A server in this process, and one in a process of its own with a socket."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from conftest import hear_interrupts
from starlette.testclient import TestClient

from elmokit.serve import make_app
from elmokit.serve.server import Server, address_of, configured, listen

SAMPLE = Path(__file__).parents[1] / "samples" / "en.txt"
HOST = "http://localhost"


@contextmanager
def client_of(service, **options):
    """A client of a service that runs in this process; corpora are opened meanwhile."""
    with TestClient(make_app(service), base_url=HOST, **options) as client:
        yield client


@contextmanager
def listening(service):
    """A service that listens at a port, on a thread; its address."""
    socket_, ready = listen("127.0.0.1", 0), threading.Event()
    server = Server(configured(service), ready=ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket_]})
    thread.start()
    try:
        assert ready.wait(60)
        yield address_of(socket_)
    finally:
        server.should_exit = True
        thread.join()
        socket_.close()


def wait_for_corpora(client, seconds=120):
    """Until all indexes are there."""
    end = time.monotonic() + seconds
    while any(one["state"] in ("waiting", "building") for one in client.get("/corpora").json()):
        assert time.monotonic() < end
        time.sleep(0.05)


class Running(NamedTuple):
    """A server in a process of its own."""

    process: subprocess.Popen
    port: int
    log: Path


@contextmanager
def running(*arguments):
    """A server in a process of its own; its log goes to a file, for a pipe that nobody reads would stop it."""
    command = [sys.executable, "-m", "elmokit", "serve", "--port", "0", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with NamedTemporaryFile("w", suffix=".log") as log:
        streams = {"stdout": subprocess.PIPE, "stderr": log, "text": True}
        with subprocess.Popen(command, env=environment, preexec_fn=hear_interrupts, **streams) as process:
            try:
                found = re.search(r":(\d+)/", process.stdout.readline())
                assert found, Path(log.name).read_text()
                yield Running(process, int(found[1]), Path(log.name))
            finally:
                process.kill()


def send(port, content, *, end=False, seconds=20):
    """All that the server answers to these bytes, until it closes the connection; with `end` we close our half."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(content)
        if end:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
        return answer


def post(path, body, **headers):
    """A request as bytes; the connection ends with its answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": len(content)}
    lines |= {"Connection": "close"} | {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + content
