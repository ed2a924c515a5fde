"""Who may ask, how much and for how long; and that what is asked is not written down."""

import logging
import re
import threading
import time

import pytest
from serving import client_of

from elmokit.errors import ConfigError
from elmokit.serve import Limits, ServeSettings, Service, make_app
from elmokit.serve.budget import Memory
from elmokit.serve.refusals import RefusedError

TEXT = "a quiet harbour"


def service_of(elmo, limits=None, **settings):
    return Service({"en": elmo}, settings=ServeSettings(**settings), limits=Limits(**(limits or {})))


def refused(answer, status, *words):
    """Whether an answer has the status and says why, with the limit."""
    message = answer.json()["error"]
    message = message if isinstance(message, str) else message["message"]
    return answer.status_code == status and all(word in message for word in words)


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8009", "127.0.0.1:80", "[::1]:80", "192.168.1.7", "LOCALHOST"]
)
def test_hosts_that_may_ask(elmo, host):
    with client_of(service_of(elmo)) as client:
        assert client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "", "localhost.evil.example", "[::1", "a b", "127.0.0.1.evil.example"]
)
def test_hosts_that_may_not(elmo, host):
    with client_of(service_of(elmo)) as client:
        assert refused(client.get("/health", headers={"Host": host}), 403, "--allow-host")


def test_a_host_that_was_named(elmo):
    with client_of(service_of(elmo, allow_host=("words.example",), host="box.lan")) as client:
        for host, status in (("Words.example:8009", 200), ("box.lan", 200), ("other.example", 403)):
            assert client.get("/health", headers={"Host": host}).status_code == status


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://localhost:1", "http://[", "localhost"])
def test_origins_that_may_not_ask(elmo, origin):
    with client_of(service_of(elmo)) as client:
        answer = client.post("/embed", json={"inputs": TEXT}, headers={"Origin": origin})
        assert refused(answer, 403, "--cors")
        assert "access-control-allow-origin" not in answer.headers


def test_the_page_itself_may_ask(elmo):
    with client_of(service_of(elmo)) as client:
        for origin in ("http://localhost", "https://localhost"):
            assert client.post("/embed", json={"inputs": TEXT}, headers={"Origin": origin}).status_code == 200


def test_cors(elmo):
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    with client_of(service_of(elmo, cors=("https://a.example",), key="secret")) as client:
        allowed = client.options("/embed", headers=asked | {"Access-Control-Request-Headers": "authorization"})
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        answer = client.post("/embed", json={"inputs": TEXT}, headers={"Origin": "https://a.example"})
        assert answer.status_code == 401
        assert answer.headers["access-control-allow-origin"] == "https://a.example"  # its page may read why
        assert client.options("/embed", headers=asked | {"Origin": "https://b.example"}).status_code == 400
        assert client.get("/health", headers={"Origin": "https://b.example"}).status_code == 403


def test_the_key(elmo):
    with client_of(service_of(elmo, key="sécret")) as client:
        for given in ({}, {"Authorization": "Bearer no"}, {"Authorization": "Basic x"}, {"Authorization": "Bearer"}):
            answer = client.post("/embed", json={"inputs": TEXT}, headers=given)
            assert refused(answer, 401, "Authorization: Bearer")
            assert answer.headers["www-authenticate"] == "Bearer"
        right = {"Authorization": "Bearer sécret".encode()}
        assert client.post("/embed", json={"inputs": TEXT}, headers=right).status_code == 200
        for path, status in (("/", 200), ("/docs", 200), ("/health", 200), ("/page/docs.css", 200), ("/info", 401)):
            assert client.get(path).status_code == status
        assert client.get("/metrics").status_code == 401
        assert refused(client.post("/v1/embeddings", json={"input": TEXT}), 401, "key")


def test_sizes(elmo):
    with client_of(service_of(elmo, {"body_kb": 1, "texts": 3, "tokens": 20})) as client:
        assert refused(client.post("/embed", json={"inputs": "a" * 2000}), 413, "1 kB")
        assert refused(client.post("/embed", json={"inputs": ["a"] * 4}), 413, "4 texts", "limit is 3")
        assert refused(client.post("/embed", json={"inputs": "a " * 21}), 413, "21 tokens", "limit is 20")
        assert refused(client.post("/v1/embeddings", json={"input": "a " * 21}), 413, "limit is 20")
        assert client.post("/embed", json={"inputs": "a " * 20}).status_code == 200


def test_a_body_without_a_length(elmo):
    def parts():
        yield b'{"inputs": "'
        for _ in range(300):
            yield b"word "
        yield b'"}'

    json = {"Content-Type": "application/json"}
    with client_of(service_of(elmo, {"body_kb": 1})) as client:
        assert refused(client.post("/embed", content=parts(), headers=json), 413, "1 kB")
    with client_of(service_of(elmo)) as client:
        assert client.post("/embed", content=parts(), headers=json).status_code == 200


def test_memory(elmo):
    memory = Memory(1)
    with memory.share() as one, memory.share() as other:
        one.take(600_000)
        with pytest.raises(RefusedError, match="limit of 1 MB") as busy:
            other.take(600_000)
        with pytest.raises(RefusedError, match="limit is 1 MB") as large:
            other.take(2_000_000)
        assert (busy.value.status, large.value.status) == (429, 413)
    assert memory.used == 0
    service = service_of(elmo, {"memory_mb": 1})
    with client_of(service) as client:
        text = "word " * 900
        assert refused(
            client.post("/embed_all", json={"inputs": text, "layers": "all"}), 413, "limit is 1 MB", "base64"
        )
        body = {"inputs": text, "layers": "all", "encoding_format": "base64"}
        assert client.post("/embed_all", json=body).status_code == 200
        assert refused(client.post("/cosines", json={"first": text, "second": text}), 413, "1 MB")
    assert service.memory.used == 0


class Gate:
    """Holds the embedder back until it is opened."""

    def __init__(self, service, monkeypatch):
        self.open, self.begun = threading.Event(), threading.Event()
        elmo = service.models["en"].elmo
        embed = elmo.embed

        def held(sentences, **settings):
            if sentences:
                self.begun.set()
                self.open.wait(30)
            return embed(sentences, **settings)

        monkeypatch.setattr(elmo, "embed", held)


def in_background(client, *requests):
    """Each request on a thread of its own, and where their answers will be."""
    answers = [None] * len(requests)

    def ask(number, text):
        answers[number] = client.post("/embed", json={"inputs": text})

    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(requests)]
    for thread in threads:
        thread.start()
    return threads, answers


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_the_queue(elmo, monkeypatch):
    service = service_of(elmo, {"queue_tokens": 10})
    gate = Gate(service, monkeypatch)
    with client_of(service) as client:
        threads, answers = in_background(client, "first")
        assert gate.begun.wait(20)
        more, others = in_background(client, "one two three four five six")
        until(lambda: service.models["en"].batcher.waiting_tokens == 8)
        answer = client.post("/embed", json={"inputs": "three more words"})
        assert refused(answer, 429, "8 tokens wait already, of 10")
        assert answer.headers["retry-after"] == "1"
        gate.open.set()
        for thread in threads + more:
            thread.join()
        assert [one.status_code for one in answers + others] == [200, 200]


def test_requests_under_way(elmo, monkeypatch):
    service = service_of(elmo, {"requests": 1})
    gate = Gate(service, monkeypatch)
    with client_of(service) as client:
        threads, answers = in_background(client, "first")
        assert gate.begun.wait(20)
        assert refused(client.get("/health"), 429, "1 requests are under way")
        gate.open.set()
        threads[0].join()
        assert answers[0].status_code == 200
        assert client.get("/health").status_code == 200


def test_timeout(elmo, monkeypatch):
    service = service_of(elmo, {"timeout": 0.3})
    gate = Gate(service, monkeypatch)
    with client_of(service) as client:
        assert refused(client.post("/embed", json={"inputs": TEXT}), 503, "0.3 seconds")
        gate.open.set()
        assert client.post("/embed", json={"inputs": TEXT}).status_code == 200
    assert service.memory.used == 0


def test_studies(elmo, monkeypatch):
    import elmokit

    service = Service({"en": elmokit.load("en")}, limits=Limits(studies=1))
    begun, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(
        "elmokit.serve.word_routes._surprisal", lambda *_: (begun.set(), go_on.wait(20), {"words": []})[2]
    )
    with client_of(service) as client:
        thread = threading.Thread(target=client.post, args=("/surprisal",), kwargs={"json": {"text": TEXT}})
        thread.start()
        assert begun.wait(20)
        assert refused(client.post("/surprisal", json={"text": TEXT}), 429, "of 1")
        go_on.set()
        thread.join()
        until(lambda: service.workers.count == 0)
        assert client.post("/surprisal", json={"text": TEXT}).status_code == 200


def test_one_line_a_request_without_its_text(elmo, caplog):
    caplog.set_level(logging.INFO, "elmokit.serve")
    with client_of(service_of(elmo)) as client:
        answer = client.post("/embed", json={"inputs": TEXT}, headers={"X-Request-ID": "mine-1"})
        client.get(f"/{TEXT}?q={TEXT}")
        client.post("/embed", json={"inputs": TEXT, "layers": TEXT})
    assert answer.headers["x-request-id"] == "mine-1"
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert re.fullmatch(r"mine-1 testclient /embed 200 [\d.]+ ms \d+ bytes", lines[0])
    assert not any("harbour" in line for line in lines)


def test_texts_in_the_log_if_asked(elmo, caplog):
    caplog.set_level(logging.INFO, "elmokit.serve")
    with client_of(service_of(elmo, log_texts=True)) as client:
        client.post("/embed", json={"inputs": "one\ntwo"})
    [line] = [record.getMessage() for record in caplog.records]
    assert "one\\\\ntwo" in line


@pytest.mark.parametrize("given", ["a\nb", "x" * 65, "é", ""])
def test_a_request_id_that_could_harm_the_log(elmo, given):
    with client_of(service_of(elmo)) as client:
        found = client.get("/health", headers={"X-Request-ID": given.encode()}).headers["x-request-id"]
        assert re.fullmatch("[0-9a-f]{32}", found)


def test_an_error_that_nobody_expected(elmo, monkeypatch, caplog):
    monkeypatch.setattr("elmokit.serve.embedding_routes.pooled", lambda *_: 1 / 0)
    with client_of(service_of(elmo), raise_server_exceptions=False) as client:
        answer = client.post("/embed", json={"inputs": TEXT})
    assert (answer.status_code, answer.json()) == (500, {"error": "the server failed", "error_type": "Backend"})
    assert answer.headers["x-request-id"] in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "harbour" not in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[" * 100_000, b'{"inputs": "\\ud800"}', b'{"inputs": "\xff"}', b'{"inputs": 1e999}', b"null"),
        *(b"\0", b'{"inputs": ' + b"9" * 5000 + b"}", b'{"inputs": ["a", null]}', b'{"layers": true, "inputs": "a"}'),
    ],
)
def test_bodies_that_are_none(elmo, body):
    with client_of(service_of(elmo)) as client:
        answer = client.post("/embed_all", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422
        assert len(answer.json()["error"]) < 1000
        assert (
            client.post("/embed", content=b'{"inputs": "a"}', headers={"Content-Type": "text/plain"}).status_code == 422
        )


def test_settings(elmo):
    for wrong in ({"texts": 0}, {"timeout": 0}, {"memory_mb": -1}, {"slow_seconds": float("nan")}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Limits(**wrong)
    app = make_app(service_of(elmo))
    assert app.title == "elmokit"
    app.state.service.close()
