"""/v1/blobs: files by the SHA-256 of their bytes."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool

from xnncc.errors import BadInput
from xnncc.rack.blobs import MOST_BLOB_BYTES
from xnncc.rack.broker import Broker
from xnncc.rack.requests import Problem, who_of


def blob_routes(broker: Broker) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/blobs")

    def none(sha: str) -> Problem:
        return Problem(404, BadInput(f"blob '{sha[:64]}'", "the rack has it not, or not any more", "Send it again."))

    @routes.post("", status_code=201)
    async def put(request: Request) -> dict[str, str]:
        who_of(request, "run")
        length = request.headers.get("content-length", "0")
        if length.isascii() and length.isdecimal() and int(length[:20]) > MOST_BLOB_BYTES:
            raise Problem(413, BadInput("blob", f"it has more than {MOST_BLOB_BYTES} bytes", "Send a smaller file."))
        with broker.blobs.incoming() as new:
            async for piece in request.stream():
                new.write(piece)
            return {"sha": await run_in_threadpool(new.keep)}

    @routes.head("/{sha}")
    async def has(request: Request, sha: str) -> Response:
        who_of(request, "view")
        return Response(status_code=200 if broker.blobs.has(sha) else 404)

    @routes.get("/{sha}")
    async def get(request: Request, sha: str) -> FileResponse:
        who_of(request, "run")
        path = broker.blobs.path(sha)
        if path is None:
            raise none(sha)
        return FileResponse(path, media_type="application/octet-stream")

    return routes
