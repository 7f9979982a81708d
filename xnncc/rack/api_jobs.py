"""/v1/jobs and /v1/batches: what is asked of the devices, and what came of it."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from xnncc.errors import BadInput
from xnncc.rack.broker import Broker
from xnncc.rack.documents import add_progress, batch_document, job_document
from xnncc.rack.jobs import Job
from xnncc.rack.requests import LARGE, BatchIn, JobIn, Problem, ProgressIn, read, who_of
from xnncc.rack.tokens import Who

LONGEST_WAIT_S = 60.0
_PROGRESS = ("text", "done", "total", "best", "unit", "left_s")


def job_routes(broker: Broker) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1")

    def job_of(job: str, who: Who | None = None) -> Job:
        found = broker.jobs.all.get(job)
        if found is None:
            raise Problem(404, BadInput(f"job '{job[:40]}'", "there is none of that id", "See GET /v1/jobs."))
        if who is not None and found.owner != who.name and not who.may("admin"):
            raise Problem(403, BadInput(f"job '{found.name}'", f"it is of '{found.owner}'", "Ask an admin."))
        return found

    @routes.get("/jobs")
    async def jobs(request: Request) -> JSONResponse:
        who_of(request, "view")
        with broker.store.lock:
            newest = list(broker.jobs.all.values())[::-1][:200]
            return JSONResponse({"jobs": [job_document(broker, job) for job in newest]})

    @routes.post("/jobs", status_code=201)
    async def create(request: Request) -> dict[str, Any]:
        who = who_of(request, "run")
        values = (await read(request, JobIn)).model_dump()
        job = broker.dispatch.create_job(who.name, values.pop("token"), values)
        return job_document(broker, job)

    @routes.get("/jobs/{job}")
    async def one(request: Request, job: str) -> dict[str, Any]:
        who_of(request, "view")
        rows = broker.store.rows("SELECT id, state, device FROM batches WHERE job=? ORDER BY n DESC LIMIT 100", job)
        return {**job_document(broker, job_of(job)), "newest": [dict(row) for row in rows]}

    @routes.delete("/jobs/{job}")
    async def cancel(request: Request, job: str) -> dict[str, Any]:
        found = job_of(job, who_of(request, "run"))
        broker.dispatch.cancel(found)
        return job_document(broker, found)

    @routes.put("/jobs/{job}/progress")
    async def progress(request: Request, job: str) -> dict[str, Any]:
        found = job_of(job, who_of(request, "run"))
        values = (await read(request, ProgressIn)).model_dump(exclude_unset=True)
        add_progress(broker, found, time.time(), values)
        broker.hub.publish("progress", job, job=job, **{name: values.get(name) for name in _PROGRESS})
        return {"job": job}

    @routes.post("/jobs/{job}/batches", status_code=201)
    async def submit(request: Request, job: str) -> dict[str, Any]:
        found = job_of(job, who_of(request, "run"))
        spec = (await read(request, BatchIn, LARGE)).model_dump()
        missing = [sha for sha in sorted(set(spec["files"].values())) if not broker.blobs.has(sha)]
        if missing:
            error = BadInput(
                "batch", f"the rack has not its files {', '.join(missing)}", "POST them to /v1/blobs first."
            )
            raise Problem(409, error)
        batch, is_new = broker.dispatch.submit(found, spec.pop("token"), spec, spec.pop("lease"))
        return {"batch": batch, "is_new": is_new}

    @routes.get("/batches/{batch}")
    async def results(
        request: Request,
        batch: str,
        after: Annotated[int, Query(ge=0)] = 0,
        wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S)] = 0.0,
    ) -> JSONResponse:
        who_of(request, "view")
        end = time.monotonic() + wait
        async with broker.hub.watch(batch) as happened:
            while True:
                happened.clear()
                document = batch_document(broker, batch, after)
                if document is None:
                    raise Problem(
                        404, BadInput(f"batch '{batch[:40]}'", "there is none of that id, or it is forgotten")
                    )
                left = end - time.monotonic()
                if document["results"] or document["state"] in ("done", "failed") or left <= 0:
                    return JSONResponse(document)
                try:
                    await asyncio.wait_for(happened.wait(), left)
                except asyncio.TimeoutError:
                    continue

    return routes
