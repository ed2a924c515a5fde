"""The server in a process of its own: signals, slow and broken connections, and requests that were spoiled."""

import json
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from serving import post, running, send

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from hostile_requests import bad, campaign, memory

from elmokit.cli import main

BODY = {"inputs": "A quiet harbour."}
LIMITS = ("--limit.slow-seconds", "1", "--limit.connections", "60")


@pytest.fixture(scope="module")
def server():
    with running("--model", "en", *LIMITS) as server:
        yield server


@pytest.fixture
def port(server):
    assert server.process.poll() is None
    return server.port


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer else None


def takes_nothing(port):
    """Whether a connection is refused, or at least not answered."""
    try:
        return send(port, post("/embed", BODY)) == b""
    except OSError:
        return True


def test_an_ordinary_request(port):
    answer = send(port, post("/embed", BODY))
    assert status(answer) == 200
    assert len(json.loads(answer.partition(b"\r\n\r\n")[2])[0]) == 384
    assert b"server:" not in answer.lower().partition(b"\r\n\r\n")[0]


def test_headers_that_do_not_come(port):
    for content in (b"", b"POST /embed HT", b"POST /embed HTTP/1.1\r\nHost: localhost\r\nX-Slow: "):
        start = time.monotonic()
        assert send(port, content) == b""
        assert 0.5 < time.monotonic() - start < 10


def test_headers_that_come_byte_by_byte(port):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.settimeout(0.05)
        end = time.monotonic() + 8
        while time.monotonic() < end:
            try:
                connection.sendall(b"x")
                if connection.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
        pytest.fail("the connection is open still")


def test_a_body_that_does_not_come(port):
    request = post("/embed", BODY)
    start = time.monotonic()
    assert status(send(port, request[:-5])) == 408
    assert time.monotonic() - start < 10


def test_half_closed(port):
    assert status(send(port, post("/embed", BODY)[:-5], end=True)) in (None, 408)
    assert status(send(port, post("/embed", BODY), end=True)) in (None, 200)
    assert status(send(port, post("/embed", BODY))) == 200


def test_a_body_that_is_too_large_is_told_so(port):
    large = b'{"inputs": "' + b"a" * (3 << 20) + b'"}'
    answer = send(port, post("/embed", large))
    assert status(answer) == 413
    assert b"256 kB" in answer
    assert status(send(port, post("/embed", b"", Content_Length=10**13))) in (408, 413)


def test_headers_that_are_too_large(port):
    assert status(send(port, post("/embed", BODY, X_Long="a" * 200_000))) in (400, None)


def test_more_connections_than_may_be(port):
    open_ones = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(80)]
    refused = 0
    for connection in open_ones[60:]:
        connection.settimeout(5)
        refused += connection.recv(1) == b""
    for connection in open_ones:
        connection.close()
    assert refused >= 20
    time.sleep(0.3)
    assert status(send(port, post("/embed", BODY))) == 200


def test_two_requests_on_one_connection(port):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        for _ in range(2):
            connection.sendall(post("/embed", BODY, Connection="keep-alive"))
            head, _, rest = connection.recv(65536).partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split()[0])
            while len(rest) < size:
                rest += connection.recv(65536)
            assert status(head) == 200


def test_spoiled_requests(server, port):
    campaign(port, 400)  # the largest of them decides how much memory is taken once
    before = memory(server.process)
    found = campaign(port, 400)
    assert not bad(found), found
    assert found["422"] > 20
    assert found["200"] > 5  # half of them do not wait for an answer
    assert memory(server.process) - before < 60
    assert status(send(port, post("/embed", BODY))) == 200


def test_sigterm_finishes_what_is_under_way(tmp_path):
    with running("--model", "en") as (process, port, log):
        text = " ".join(f"word{number}" for number in range(8000))
        long = post("/embed", {"inputs": text})
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(long)
            time.sleep(0.15)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
            assert takes_nothing(port)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        assert status(answer) == 200
        assert process.wait(30) == 0
        lines = log.read_text()
    assert "/embed 200" in lines
    assert "Traceback" not in lines


def test_interrupted(tmp_path):
    with running("--model", "en") as (process, _, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_mistakes_of_the_command_line(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            (["--port", port], f"cannot listen at 127.0.0.1 port {port}: Address already in use"),
            (["--corpus", "no-such.txt"], "there is no such file or folder"),
            (["--task", str(tmp_path)], "no trained task"),
            (["--limit.texts", "0"], "texts is 0"),
        ):
            with pytest.raises(SystemExit) as left:
                main(["serve", "--model", "en", *arguments])
            assert (left.value.code, words in capsys.readouterr().err) == (2, True)


def test_without_the_extra(monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["elmokit.cli.serve"], "find_spec", lambda _: None)
    with pytest.raises(SystemExit):
        main(["serve"])
    assert 'pip install "elmokit[serve]"' in capsys.readouterr().err
