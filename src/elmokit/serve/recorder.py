"""A number for each request, a line in the log without its text, its time in the metrics, headers for all answers."""

import logging
import re
import time
from uuid import uuid4

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmokit.serve.metrics import Metrics
from elmokit.serve.refusals import RefusedError

logger = logging.getLogger(__name__)

OWN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
LONGEST_LOGGED = 2000  # characters of a text, where texts are asked for
GONE = 499  # nginx's number for a client that did not wait
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Recorder:
    """Writes down each request; an error that nobody expected becomes status 500 and a line with its cause."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, log_texts: bool = False) -> None:
        self.app, self.metrics, self.log_texts = app, metrics, log_texts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and write it down."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        record = Record(scope, send)
        try:
            await self.app(scope, receive, record)
        except Exception:
            logger.exception("%s failed", record.id)
            if record.status == GONE:
                await RefusedError(500, "the server failed").response(scope["path"])(scope, receive, record)
        finally:
            self._write_down(scope, record)

    def _write_down(self, scope: Scope, record: "Record") -> None:
        seconds, route = time.perf_counter() - record.start, getattr(scope.get("route"), "path", "other") or "page"
        self.metrics.requests.labels(route, record.status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        client = (scope.get("client") or ("-",))[0]
        line = f"{record.id} {client} {route} {record.status} {1000 * seconds:.1f} ms {record.size} bytes"
        if self.log_texts:
            text = scope.get("state", {}).get("body", b"")[:LONGEST_LOGGED].decode("utf-8", "replace")
            line += f" {text!r}"
        logger.info("%s", line)


class Record:
    """Sends, and keeps what was sent of it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        self.id = given if OWN_ID.fullmatch(given) else uuid4().hex
        self.send, self.start, self.status, self.size = send, time.perf_counter(), GONE, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.id
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        self.size += len(message.get("body", b""))
        await self.send(message)
