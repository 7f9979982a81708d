"""The HTTP application of a broker: its routes, one module a subject, behind the guard.

app = make_app(broker)      an ASGI application; an endpoint more is a function in one of the modules,
                            a subject more is a module and a line in _ROUTES
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.exceptions import HTTPException

from xnncc.errors import BadInput, DeviceError, XnnccError
from xnncc.rack.api_admin import admin_routes
from xnncc.rack.api_blobs import blob_routes
from xnncc.rack.api_devices import device_routes
from xnncc.rack.api_events import event_routes
from xnncc.rack.api_jobs import job_routes
from xnncc.rack.api_leases import lease_routes
from xnncc.rack.blobs import StoreFull
from xnncc.rack.broker import Broker
from xnncc.rack.guard import Guard
from xnncc.rack.requests import Problem
from xnncc.rack.web import FILES, HEADERS

_ROUTES = (device_routes, job_routes, lease_routes, blob_routes, admin_routes, event_routes)


def make_app(broker: Broker) -> Any:
    """Return the application; the broker is started and stopped by the caller."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        broker.hub.loop = asyncio.get_running_loop()
        yield
        broker.hub.loop = None

    # The documentation pages of FastAPI fetch scripts from elsewhere; ours is docs/rack.md.
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    for routes in _ROUTES:
        app.include_router(routes(broker))

    for address, (file, kind) in FILES.items():
        app.get(address)(_page(file, kind))

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> JSONResponse:
        return _answer(error.status, error.error)

    @app.exception_handler(XnnccError)
    async def mistake(request: Request, error: XnnccError) -> JSONResponse:
        return _answer(507 if isinstance(error, StoreFull) else 422, error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _answer(422, BadInput(f"'{where[:100]}'", str(first["msg"]), "See docs/rack.md."))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        return _answer(error.status_code, BadInput(f"{request.method} {request.url.path[:100]}", str(error.detail)))

    @app.exception_handler(OSError)
    async def disk(request: Request, error: OSError) -> JSONResponse:
        why = str(error.strerror or error).lower()
        return _answer(507, DeviceError("the broker's disk", why, "Free some space on it."))

    return Guard(app, broker)


def _answer(status: int, error: XnnccError) -> JSONResponse:
    document = {"kind": type(error).__name__, "what": error.what, "why": error.why, "next": error.next}
    return JSONResponse({"error": document}, status)


def _page(file: Path, kind: str) -> Callable[[], Awaitable[FileResponse]]:
    async def page() -> FileResponse:
        return FileResponse(file, media_type=kind, headers=HEADERS)

    return page
