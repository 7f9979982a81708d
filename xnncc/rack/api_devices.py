"""/v1/devices: what is in the rack, and what an admin does with it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from xnncc.rack.broker import Broker
from xnncc.rack.documents import device_document
from xnncc.rack.requests import DeviceIn, ReasonIn, read, who_of


def device_routes(broker: Broker) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/devices")

    @routes.get("")
    async def devices(request: Request) -> JSONResponse:
        who_of(request, "view")
        workers = sorted(broker.workers.values(), key=lambda w: w.record.serial)
        return JSONResponse({"devices": [device_document(broker, w) for w in workers], "problem": broker.problem})

    @routes.post("", status_code=201)
    async def add(request: Request) -> dict[str, Any]:
        who_of(request, "admin")
        given = await read(request, DeviceIn)
        token = given.token.strip().encode()
        serial = await run_in_threadpool(broker.add, given.spec, token, given.name, given.may_reboot, given.is_steady)
        return device_document(broker, broker.worker(serial))

    @routes.delete("/{serial}")
    async def remove(request: Request, serial: str) -> dict[str, Any]:
        who_of(request, "admin")
        broker.remove(serial)
        return {"removed": serial}

    @routes.post("/{serial}/quarantine")
    async def quarantine(request: Request, serial: str) -> dict[str, Any]:
        who = who_of(request, "admin")
        given = await read(request, ReasonIn)
        worker = broker.worker(serial)
        worker.quarantine(f"by {who.name}: {given.reason}" if given.reason else f"by {who.name}")
        return device_document(broker, worker)

    @routes.post("/{serial}/release")
    async def release(request: Request, serial: str) -> dict[str, Any]:
        who_of(request, "admin")
        worker = broker.worker(serial)
        worker.release()
        return device_document(broker, worker)

    @routes.get("/{serial}/history")
    async def history(request: Request, serial: str, after: float = 0.0) -> JSONResponse:
        who_of(request, "view")
        return JSONResponse({"serial": serial, "readings": broker.worker(serial).history.document(after)})

    return routes
