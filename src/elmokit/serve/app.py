"""The application: routes, what stands before them, the page and the description of it all."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from elmokit import __version__
from elmokit.errors import ElmoError
from elmokit.serve import embedding_routes, service_routes, word_routes
from elmokit.serve.description import describe, with_layers
from elmokit.serve.guard import PAGE_FILES, Guard
from elmokit.serve.recorder import Recorder
from elmokit.serve.refusals import RefusedError, refusal_of
from elmokit.serve.service import Service

PAGE = Path(__file__).with_name("page")
FRESH = {"Cache-Control": "no-cache"}  # asked for anew each time: after an update, no module meets an older one
ROUTERS = (
    *(embedding_routes.openai, embedding_routes.tei),
    *(word_routes.router, service_routes.tasks, service_routes.router),
)
SHOWN_MISTAKES = 3
UNION_PART = re.compile(r"[\[(-]")  # pydantic's names for what a field may be


def make_app(service: Service) -> FastAPI:
    """An ASGI application; while it runs, corpora are opened, and when it ends, the service is closed."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.open_corpora()
        yield
        service.close()

    app = FastAPI(
        title="elmokit",
        version=__version__,
        description="Contextual word vectors, and words in their contexts.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
    _add_page(app)
    described = with_layers(app.openapi(), max(one.elmo.layer_count for one in service.models.values()) - 1)
    app.openapi = lambda: described  # type: ignore[method-assign]
    _add_refusals(app)
    shared: dict[str, Any] = {"settings": service.settings, "memory": service.memory, "metrics": service.metrics}
    app.add_middleware(Guard, limits=service.limits, **shared)
    if service.settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.settings.cors,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    app.add_middleware(Recorder, metrics=service.metrics, log_texts=service.settings.log_texts)
    return app


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=FRESH)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(describe(app.openapi()))

    app.mount(PAGE_FILES.rstrip("/"), PageFiles(directory=PAGE), name="page")


class PageFiles(StaticFiles):
    """The page's own files, which a browser asks for anew."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """As Starlette gives it, whole or "not modified"."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(FRESH)
        return response


def _add_refusals(app: FastAPI) -> None:
    """Every mistake is answered in the same form."""

    @app.exception_handler(RefusedError)
    async def refused(request: Request, error: RefusedError) -> Response:
        return error.response(request.url.path)

    @app.exception_handler(ElmoError)
    async def mistaken(request: Request, error: ElmoError) -> Response:
        return refusal_of(error).response(request.url.path)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return RefusedError(422, explain(error)).response(request.url.path)

    @app.exception_handler(HTTPException)
    async def not_http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # a body that is no JSON at all
            return RefusedError(422, "the request's body cannot be read as JSON").response(request.url.path)
        return RefusedError(error.status_code, str(error.detail), error.headers).response(request.url.path)


def explain(error: RequestValidationError) -> str:
    """The first few mistakes, each with where it is; not what was sent, which may be long and is nobody's business."""
    mistakes = error.errors()
    shown = []
    for one in mistakes[:SHOWN_MISTAKES]:
        names = (str(part) for part in one["loc"] if part != "body")
        place = ".".join(name for name in names if not UNION_PART.search(name))[:100]
        shown.append(f"{place}: {one['msg']}" if place else str(one["msg"]))
    more = len(mistakes) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")
