"""What all routes share: the service, a request's share of the memory, and the words for what may go wrong."""

import asyncio
import base64
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Request

from elmokit.embedder import Vectors
from elmokit.serve.budget import Share
from elmokit.serve.refusals import JSON
from elmokit.serve.schemas import Error, OpenAIError
from elmokit.serve.service import Service

FLOAT_BYTES = {"base64": 10, "float": 60}  # that a number takes as an array, a Python float and text together
MANY_FLOATS = 50_000  # are written on a thread, so that others need not wait
WHAT_MAY_GO_WRONG = {
    401: "The key is missing or wrong.",
    403: "The Host or Origin may not ask.",
    404: "There is no such model, corpus, task or word.",
    408: "The request came too slowly.",
    413: "More than a limit, which is said.",
    422: "Not what was expected, which is said.",
    429: "Too many requests, texts or tokens at this moment.",
    503: "Not in time, or an index that is not ready.",
}


def responses(model: type[Error] | type[OpenAIError] = Error) -> dict[int | str, dict[str, Any]]:
    """The statuses of every route, for the OpenAPI description."""
    return {status: {"model": model, "description": text} for status, text in WHAT_MAY_GO_WRONG.items()}


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _share(request: Request) -> Share:
    share: Share = request.state.share
    return share


Served = Annotated[Service, Depends(_service)]
Taken = Annotated[Share, Depends(_share)]


async def answer(floats: int, write: Callable[[], Any]) -> JSON:
    """The answer that a function gives, of about so many numbers."""
    if floats < MANY_FLOATS:
        return JSON(write())
    return await asyncio.to_thread(lambda: JSON(write()))


def as_numbers(vectors: Vectors, encoding: str) -> Any:
    """An array as nested lists, or as base64 of its 32-bit floats."""
    if encoding == "base64":
        return base64.b64encode(np.asarray(vectors, "<f4").tobytes()).decode("ascii")
    return vectors.tolist()
