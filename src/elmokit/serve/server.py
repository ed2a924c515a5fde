"""The server itself: uvicorn, with a limit on connections and on slow ones, and an end that loses nothing."""

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from elmokit.errors import ConfigError
from elmokit.serve.app import make_app
from elmokit.serve.service import Service
from elmokit.serve.settings import Limits

LARGEST_HEADERS = 64 << 10  # bytes
IDLE_SECONDS = 15  # that a connection is kept between two requests
WAITING = 2048  # connections that the system keeps for us


def serve(service: Service, *, ready: Callable[[str], None] = lambda _: None) -> None:
    """Answer until SIGTERM or Ctrl-C; then take nothing new, finish what is under way, and return.

    `ready` is called with the server's address once it listens.
    """
    try:
        listening = listen(service.settings.host, service.settings.port)
    except ConfigError:
        service.close()
        raise
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it again when all is done
    try:
        Server(configured(service), ready=lambda: ready(address_of(listening))).run(sockets=[listening])
    finally:
        signal.signal(signal.SIGTERM, before)
        listening.close()


def configured(service: Service) -> uvicorn.Config:
    """Uvicorn's settings: its own log is silent, for ours has a line for each request."""
    limits = service.limits
    return uvicorn.Config(
        make_app(service),
        http=bounded_protocol(limits),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=int(limits.timeout) + 1,
        h11_max_incomplete_event_size=LARGEST_HEADERS,
    )


class Server(uvicorn.Server):
    """Says when it is ready."""

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it, then say so."""
        await super().startup(sockets)
        if self.started:
            self.ready()


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, or an error that says why not."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # Only where its protocol is named does asyncio send at once; else an answer's second part waits for 40 ms.
        listening = socket.socket(family, kind, protocol or socket.IPPROTO_TCP)
    except (OSError, OverflowError) as error:
        raise _unusable(host, port, error) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(WAITING)
    except (OSError, OverflowError) as error:
        listening.close()
        raise _unusable(host, port, error) from None
    return listening


def _unusable(host: str, port: int, error: Exception) -> ConfigError:
    reason = getattr(error, "strerror", None) or error
    return ConfigError(f"cannot listen at {host} port {port}: {reason}; --port 0 takes any that is free")


def address_of(listening: socket.socket) -> str:
    """What to open in a browser."""
    host, port, *_ = listening.getsockname()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def bounded_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Uvicorn's protocol, but a connection beyond the limit is closed, and so is one whose headers do not come."""

    class Bounded(H11Protocol):
        late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.close()
            self._expect_headers()

        def data_received(self, data: bytes) -> None:
            try:
                super().data_received(data)
            except h11.LocalProtocolError:  # nonsense after an answer has begun: there is nobody to tell
                self.transport.abort()
            self._expect_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop_waiting()

        def _expect_headers(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._stop_waiting()
            elif self.late is None:
                self.late = self.loop.call_later(limits.slow_seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self.late is not None:
                self.late.cancel()
                self.late = None

    return Bounded
