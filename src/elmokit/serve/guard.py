"""Who may ask, how much, and for how long: what stands before every route."""

import asyncio
import hmac
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmokit.serve.budget import Memory
from elmokit.serve.metrics import Metrics
from elmokit.serve.refusals import RefusedError
from elmokit.serve.settings import Limits, ServeSettings

OPEN = ("/", "/docs", "/openapi.json", "/health")  # without a key, beside the page's own files
PAGE_FILES = "/page/"
DRAINED = 16 << 20  # bytes of a refused request that are read and thrown away, so that its client hears the answer
CLOSING = {"Connection": "close"}


class DisconnectedError(Exception):
    """The client has gone."""


class Guard:
    """Lets a request through if host, origin, key, size and number are right, and gives it up after the timeout."""

    def __init__(
        self, app: ASGIApp, *, settings: ServeSettings, limits: Limits, memory: Memory, metrics: Metrics
    ) -> None:
        self.app, self.settings, self.limits = app, settings, limits
        self.memory, self.metrics = memory, metrics
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say why not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        incoming, begun = Incoming(receive), Outgoing(send)
        with suppress(DisconnectedError):
            try:
                await self._let_through(scope, incoming, begun)
            except RefusedError as refusal:
                if begun.started:  # a status cannot be taken back: the connection breaks off
                    raise
                if not await incoming.discard(self.limits.slow_seconds):
                    refusal.headers |= CLOSING
                await refusal.response(scope["path"])(scope, receive, send)

    async def _let_through(self, scope: Scope, incoming: "Incoming", send: "Outgoing") -> None:
        headers = Headers(scope=scope)
        check_host(headers.get("host", ""), {self.settings.host, *self.settings.allow_host})
        check_origin(headers, self.settings.cors)
        if self.settings.key and scope["path"] not in OPEN and not scope["path"].startswith(PAGE_FILES):
            check_key(headers.get("authorization", ""), self.settings.key)
        with self._place(), self.memory.share() as share:
            scope.setdefault("state", {})["share"] = share
            most = 1024 * self.limits.body_kb
            if (size := headers.get("content-length", "0")).isdecimal() and int(size) > most:
                raise too_large(most)
            body = await incoming.read(most, self.limits.slow_seconds)
            share.take(len(body))
            scope["state"]["body"] = body
            await self._answer(scope, body, incoming, send)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self.under_way >= self.limits.requests:
            raise RefusedError(429, f"{self.under_way:,} requests are under way, which is the limit: try again")
        self.under_way += 1
        self.metrics.under_way.set(self.under_way)
        try:
            yield
        finally:
            self.under_way -= 1
            self.metrics.under_way.set(self.under_way)

    async def _answer(self, scope: Scope, body: bytes, incoming: "Incoming", send: "Outgoing") -> None:
        """Run the routes until they have answered, the time is over or the client has gone."""
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(messages, None) or await incoming.until_gone()

        work = asyncio.ensure_future(self.app(scope, replay, send))
        gone = asyncio.ensure_future(incoming.until_gone())
        try:
            await asyncio.wait({work, gone}, timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)
        if gone.done() and not gone.cancelled():
            raise DisconnectedError
        raise RefusedError(503, f"not answered within {self.limits.timeout:g} seconds, which is the limit: try again")


class Outgoing:
    """Sends, and knows whether the answer has begun."""

    def __init__(self, send: Send) -> None:
        self.send, self.started = send, False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self.send(message)


class Incoming:
    """The body of a request, read up to a limit and in time."""

    def __init__(self, receive: Receive) -> None:
        self.receive, self.complete = receive, False

    async def read(self, most: int, seconds: float) -> bytes:
        """All of it."""
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                while not self.complete:
                    body += await self._part()
                    if len(body) > most:
                        raise too_large(most)
        except TimeoutError:
            raise RefusedError(
                408, f"the request did not come within {seconds:g} seconds, which is the limit"
            ) from None
        return bytes(body)

    async def discard(self, seconds: float) -> bool:
        """Read and forget what is left; whether that was all."""
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.complete and size < DRAINED:
                    size += len(await self._part())
        return self.complete

    async def until_gone(self) -> Message:
        """Wait for the client to go."""
        while (message := await self.receive())["type"] != "http.disconnect":
            pass
        return message

    async def _part(self) -> bytes:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise DisconnectedError
        self.complete = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body


def too_large(most: int) -> RefusedError:
    """For a body of more bytes."""
    return RefusedError(413, f"the request is larger than {most // 1024:,} kB, which is the limit: send less at a time")


def check_host(given: str, names: set[str]) -> None:
    """Refuse a name that is not ours: a page elsewhere may have made it point here (DNS rebinding).

    An address in numbers cannot be made to point elsewhere, so any is let through.
    """
    host = host_of(f"//{given}")
    if host is None or (host not in {"localhost", *(name.lower() for name in names)} and not is_address(host)):
        raise RefusedError(
            403, f"the Host {given[:100]!r} is not this server's: start it with --allow-host to use that name"
        )


def check_origin(headers: Mapping[str, str], allowed: tuple[str, ...]) -> None:
    """Refuse what pages of other sites ask, unless their origin was named."""
    origin = headers.get("origin")
    if origin is None or origin in allowed or "*" in allowed:
        return
    if netloc_of(origin) != headers.get("host", "").lower() or not netloc_of(origin):
        raise RefusedError(403, f"the Origin {origin[:100]!r} may not ask: start the server with --cors to let it")


def check_key(given: str, key: str) -> None:
    """Refuse what comes without the key; the comparison takes as long for any other."""
    kind, _, token = given.partition(" ")
    right = hmac.compare_digest(token.strip().encode("latin-1"), key.encode())
    if kind.lower() != "bearer" or not right:
        headers = {"WWW-Authenticate": "Bearer"}
        raise RefusedError(401, "the key is missing or wrong: send the header Authorization: Bearer KEY", headers)


def host_of(address: str) -> str | None:
    """The host's name in an address, without its port."""
    with suppress(ValueError):
        return urlsplit(address).hostname
    return None


def netloc_of(origin: str) -> str:
    """Host and port of an origin; nothing for "null" and what is none."""
    with suppress(ValueError):
        return urlsplit(origin).netloc.lower()
    return ""


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    with suppress(ValueError):
        return bool(ip_address(host))
    return False
