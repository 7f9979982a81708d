"""/v1/leases: a device for oneself, for a while."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from xnncc.errors import BadInput
from xnncc.rack.api_jobs import LONGEST_WAIT_S
from xnncc.rack.broker import Broker
from xnncc.rack.documents import lease_document
from xnncc.rack.leases import Lease
from xnncc.rack.requests import LeaseIn, Problem, RenewIn, read, who_of
from xnncc.rack.tokens import Who


def lease_routes(broker: Broker) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/leases")

    def lease_of(lease: str, who: Who | None = None) -> Lease:
        found = broker.leases.all.get(lease)
        if found is None:
            raise Problem(404, BadInput(f"lease '{lease[:40]}'", "there is none of that id: its time is up"))
        if who is not None and found.owner != who.name and not who.may("admin"):
            raise Problem(403, BadInput(f"lease '{found.id}'", f"it is of '{found.owner}'", "Ask an admin."))
        return found

    @routes.get("")
    async def leases(request: Request) -> dict[str, Any]:
        who_of(request, "view")
        return {"leases": [lease_document(broker, lease) for lease in list(broker.leases.all.values())]}

    @routes.post("", status_code=201)
    async def create(request: Request) -> dict[str, Any]:
        who = who_of(request, "run")
        given = await read(request, LeaseIn)
        return lease_document(broker, broker.dispatch.lease(who.name, given.token, given.key, given.seconds))

    @routes.get("/{lease}")
    async def one(
        request: Request, lease: str, wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S)] = 0.0
    ) -> dict[str, Any]:
        who = who_of(request, "view")
        end = time.monotonic() + wait
        async with broker.hub.watch(lease) as happened:
            while True:
                happened.clear()
                found = lease_of(lease)
                left = end - time.monotonic()
                if not found.device and found.owner == who.name:
                    broker.leases.renew(found)
                if found.device or left <= 0:
                    return lease_document(broker, found)
                try:
                    await asyncio.wait_for(happened.wait(), min(left, 10.0))
                except asyncio.TimeoutError:
                    continue

    @routes.put("/{lease}")
    async def renew(request: Request, lease: str) -> dict[str, Any]:
        found = lease_of(lease, who_of(request, "run"))
        broker.leases.renew(found, (await read(request, RenewIn)).seconds)
        return lease_document(broker, found)

    @routes.delete("/{lease}")
    async def release(request: Request, lease: str) -> dict[str, Any]:
        found = lease_of(lease, who_of(request, "run"))
        broker.dispatch.release(found)
        return {"released": lease}

    return routes
