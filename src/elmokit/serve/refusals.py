"""Requests that are not answered: the status, what went wrong, and what the limit is, as JSON."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from elmokit.errors import DeadlineError, ElmoError, OverloadError

# text-embeddings-inference's error types, and three that it lacks
TYPES = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 408: "Timeout", 429: "Overloaded", 503: "Unhealthy"}
RETRY_SECONDS = {429: "1", 503: "2"}


class RefusedError(Exception):
    """A request that is not answered, and why, in one sentence meant for the client."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})

    def response(self, path: str) -> Response:
        """As OpenAI's clients expect it under /v1, else as text-embeddings-inference's do."""
        message, kind = str(self), TYPES.get(self.status, "Validation" if self.status < 500 else "Backend")
        body: dict[str, Any] = {"error": message, "error_type": kind}
        if path.startswith("/v1/"):
            body = {"error": {"message": message, "type": kind, "param": None, "code": str(self.status)}}
        if self.status in RETRY_SECONDS:
            self.headers.setdefault("Retry-After", RETRY_SECONDS[self.status])
        return JSON(body, status_code=self.status, headers=self.headers)


class JSON(Response):
    """An answer, encoded by msgspec: ten times as fast as the standard library for many numbers."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes; what is bytes already stays as it is."""
        return content if isinstance(content, bytes) else msgspec.json.encode(content)


def refusal_of(error: ElmoError) -> RefusedError:
    """What a client hears of an error of the library: it asked for too much at this moment, or for what cannot be."""
    status = 429 if isinstance(error, OverloadError) else 503 if isinstance(error, DeadlineError) else 422
    return RefusedError(status, str(error))
