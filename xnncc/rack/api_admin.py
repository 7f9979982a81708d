"""/v1/health, /v1/errors, /v1/audit and /v1/tokens: the rack itself."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from xnncc import __version__
from xnncc.rack.broker import Broker
from xnncc.rack.dispatch import counts
from xnncc.rack.requests import TokenIn, read, who_of


def admin_routes(broker: Broker) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/health")
    async def health(request: Request) -> dict[str, Any]:
        if request.scope["state"]["who"] is None:
            return {"ok": True}
        row = broker.store.row("SELECT COUNT(*) AS c FROM batches WHERE state='queued'")
        return {
            "ok": True, "version": __version__, "devices": counts(w.seat for w in broker.workers.values()),
            "leases": len(broker.leases.all), "jobs": len(broker.jobs.all), "queued": row["c"] if row else 0,
            "blob_bytes": broker.blobs.bytes, "up_s": broker.clock() - broker.started, "problem": broker.problem,
        }  # fmt: skip

    @routes.get("/audit")
    async def audit(request: Request, count: Annotated[int, Query(ge=1, le=1000)] = 100) -> dict[str, Any]:
        who_of(request, "admin")
        return {"audit": broker.audit.last(count)}

    @routes.get("/errors")
    async def errors(request: Request) -> dict[str, Any]:
        who_of(request, "view")
        return {"errors": list(broker.hub.troubles)[::-1]}

    @routes.get("/tokens")
    async def tokens(request: Request) -> dict[str, Any]:
        who_of(request, "admin")
        return {"tokens": broker.tokens.list()}

    @routes.post("/tokens", status_code=201)
    async def create(request: Request) -> dict[str, Any]:
        who_of(request, "admin")
        given = await read(request, TokenIn)
        return {"name": given.name, "role": given.role, "token": broker.tokens.create(given.name, given.role)}

    @routes.delete("/tokens/{name}")
    async def revoke(request: Request, name: str) -> dict[str, Any]:
        who_of(request, "admin")
        broker.tokens.revoke(name)
        return {"revoked": name}

    return routes
