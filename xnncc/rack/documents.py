"""What the broker tells of itself, as JSON: devices, jobs, batches, leases. No secret is ever in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from xnncc.rack.broker import Broker
from xnncc.rack.jobs import Job
from xnncc.rack.leases import Lease
from xnncc.rack.worker import Worker

MOST_RESULTS = 5000  # of one answer; the rest comes with the next one


def device_document(broker: Broker, worker: Worker) -> dict[str, Any]:
    """Return a device. A leased device is busy."""
    seat, record = worker.seat, worker.record
    who = seat.description
    lease = broker.leases.all.get(seat.lease)
    state = "busy" if lease and seat.state == "free" else seat.state
    return {
        "serial": who.serial, "name": record.name, "spec": record.spec, "key": who.key, "soc": who.soc, "abi": who.abi,
        "system": who.system, "core_khz": list(who.core_khz), "state": state, "reason": seat.reason,
        "since": worker.standing.since, "batch": seat.work,
        "lease": lease_document(broker, lease) if lease else None,
        "faults": worker.standing.faults, "quarantined_by": worker.standing.quarantined_by,
        "may_reboot": record.may_reboot,
        "is_steady": record.is_steady, "reading": worker.history.newest(),
    }  # fmt: skip


def job_document(broker: Broker, job: Job) -> dict[str, Any]:
    """Return a job with the numbers of its batches, and what is left of it by what its batches have taken so far."""
    rows = broker.store.rows("SELECT state, COUNT(*) AS c FROM batches WHERE job=? GROUP BY state", job.id)
    found = {"queued": 0, "running": 0, "done": 0, "failed": 0, **{row["state"]: row["c"] for row in rows}}
    devices = sum(w.seat.matches(job.key) and w.seat.state in ("free", "busy") for w in broker.workers.values())
    share = broker.dispatch.share.claimants.get(job.claimant)
    left = found["queued"] + found["running"] / 2
    left_s = left * share.typical_s / min(devices, job.max_devices or devices) if share and devices and left else None
    active = "running" if found["running"] else "queued" if found["queued"] else "idle"
    row = broker.store.row("SELECT progress FROM jobs WHERE id=?", job.id)
    return {
        "job": job.id, "name": job.name, "key": job.key, "owner": job.owner, "priority": job.priority,
        "weight": job.weight, "max_seconds": job.max_seconds, "max_devices": job.max_devices, "used_s": job.used_s,
        "state": "cancelled" if job.is_cancelled else active, "created": job.created, "batches": found,
        "devices": devices, "left_s": left_s, "progress": json.loads(row["progress"]) if row else {},
    }  # fmt: skip


def batch_document(broker: Broker, batch: str, after: int) -> dict[str, Any] | None:
    """Return a batch with its results behind number ``after``, or None when there is no such batch."""
    row = broker.store.row("SELECT * FROM batches WHERE id=?", batch)
    if row is None:
        return None
    results = broker.store.rows(
        "SELECT n, body FROM results WHERE batch=? AND n>? ORDER BY n LIMIT ?", batch, after, MOST_RESULTS
    )
    return {
        "batch": batch, "job": row["job"], "state": row["state"], "device": row["device"], "attempts": row["attempts"],
        "results": [{"n": r["n"], **json.loads(r["body"])} for r in results],
        "next": results[-1]["n"] if results else after, "facts": json.loads(row["facts"]),
        "files": json.loads(row["files"]), "error": json.loads(row["error"]) if row["error"] else None,
    }  # fmt: skip


def lease_document(broker: Broker, lease: Lease) -> dict[str, Any]:
    """Return a lease."""
    left = max(lease.deadline - broker.clock(), 0.0)
    return {
        "lease": lease.id, "state": "held" if lease.device else "waiting", "owner": lease.owner, "key": lease.key,
        "device": lease.device, "seconds": lease.seconds, "left_s": round(left, 3),
    }  # fmt: skip


def add_progress(broker: Broker, job: Job, now: float, values: Mapping[str, Any], longest: int = 400) -> None:
    """Keep what the client of a job says of it, and its best so far as a curve. A long curve is thinned to half."""
    row = broker.store.row("SELECT progress FROM jobs WHERE id=?", job.id)
    before = json.loads(row["progress"]) if row else {}
    curve = before.get("curve", [])
    if values.get("best") is not None:
        curve.append([now, values["best"]])
    if len(curve) > longest:
        curve = [*curve[:-1:2], curve[-1]]
    text = json.dumps({**before, **values, "curve": curve})
    broker.store.run("UPDATE jobs SET progress=? WHERE id=?", text, job.id)
