"""Jobs and their batches: what is asked of the rack, kept in the store so that nothing is lost or done twice.

A job is a stream of batches of one owner for devices of one key. A batch goes queued -> running -> done | failed, and
back to queued when its device fails or the broker ends. Its results are stored a whole group at a time, since only
within one group, measured on one device, times can be compared; a group that is stored is never measured again.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xnncc.device.bench import Fault, Group, Measurement
from xnncc.device.rack_wire import result_document
from xnncc.errors import BadInput, XnnccError
from xnncc.rack.blobs import Blobs
from xnncc.rack.phone import Batch
from xnncc.rack.store import Store

MOST_JOBS = 1000  # further ones push out the oldest that have nothing to do
MOST_QUEUED = 10_000  # batches of one job
WAITING = ("queued", "running")


@dataclass
class Job:
    """What is kept of a job in memory. ``waiting``: its queued batches that any device of the key may take."""

    id: str
    owner: str
    name: str
    key: str
    priority: int
    weight: float
    max_seconds: float | None
    max_devices: int | None
    used_s: float
    virtual: float
    is_cancelled: bool
    created: float
    waiting: int = 0

    @property
    def claimant(self) -> str:
        """Its name in the fair sharing."""
        return f"job:{self.id}"


@dataclass(frozen=True)
class Work:
    """A batch that a device has taken. ``groups_done``: so many of its groups, from the front, are stored."""

    id: str
    job: str
    batch: Batch
    lease: str
    attempts: int
    groups_done: int


class Jobs:
    """The jobs of one rack. Callers hold the store's lock around what must go together."""

    def __init__(self, store: Store, blobs: Blobs, keep_batches: int = 20_000) -> None:
        self.store, self.blobs, self.keep_batches = store, blobs, keep_batches
        self.all: dict[str, Job] = {}
        self._ended = 0
        with store.transaction():
            store.run("UPDATE batches SET state='queued' WHERE state='running'")  # of a broker that ended meanwhile
            for row in store.rows("SELECT * FROM jobs ORDER BY n"):
                self.all[row["id"]] = _job(row)
            for row in store.rows(
                "SELECT job, COUNT(*) AS c FROM batches WHERE state='queued' AND lease='' GROUP BY job"
            ):
                if row["job"] in self.all:
                    self.all[row["job"]].waiting = int(row["c"])

    def create(self, owner: str, token: str, values: Mapping[str, Any]) -> Job:
        """Return a new job; the same owner and token give the same one again. Raises: BadInput (too many)."""
        with self.store.transaction():
            row = self.store.row("SELECT id FROM jobs WHERE owner=? AND token=?", owner, token)
            if row is not None:
                return self.all[row["id"]]
            if len(self.all) >= MOST_JOBS:
                self._drop_one()
            job = Job(
                secrets.token_hex(8), owner, used_s=0.0, virtual=0.0, is_cancelled=False, created=time.time(), **values
            )
            self.store.run(
                "INSERT INTO jobs (id, token, owner, name, key, priority, weight, max_seconds, max_devices, created) "
                "VALUES (?,?,?,?,?,?,?,?,?,?)",
                job.id, token, owner, job.name, job.key, job.priority, job.weight, job.max_seconds, job.max_devices,
                job.created,
            )  # fmt: skip
            self.all[job.id] = job
            return job

    def submit(self, job: Job, token: str, spec: Mapping[str, Any], lease: str) -> tuple[str, bool]:
        """Return the batch's id and whether it is new; the same token of one job gives the same batch again.

        Raises: BadInput when the job is cancelled or has too many that wait.
        """
        with self.store.transaction():
            row = self.store.row("SELECT id FROM batches WHERE job=? AND token=?", job.id, token)
            if row is not None:
                return str(row["id"]), False
            if job.is_cancelled:
                raise BadInput(f"job '{job.name}'", "it is cancelled", "Start a new one.")
            if job.waiting >= MOST_QUEUED:
                raise BadInput(f"job '{job.name}'", f"{MOST_QUEUED} of its batches wait already", "Wait for some.")
            batch = secrets.token_hex(8)
            self.store.run(
                "INSERT INTO batches (id, job, token, state, spec, lease, created) VALUES (?,?,?,'queued',?,?,?)",
                batch, job.id, token, json.dumps(spec), lease, time.time(),
            )  # fmt: skip
            self.blobs.pin(batch, set(spec["files"].values()))
            job.waiting += not lease
            return batch, True

    def next_of(self, job: Job, device: str, may_avoid: bool) -> str | None:
        """Return the oldest queued batch that ``device`` may take. ``may_avoid``: another device could take it."""
        rows = self.store.rows(
            "SELECT id, avoid FROM batches WHERE job=? AND state='queued' AND lease='' ORDER BY n LIMIT 8", job.id
        )
        return next((str(row["id"]) for row in rows if not (may_avoid and row["avoid"] == device)), None)

    def next_leased(self, lease: str) -> str | None:
        """Return the oldest queued batch of a lease."""
        row = self.store.row("SELECT id FROM batches WHERE state='queued' AND lease=? ORDER BY n LIMIT 1", lease)
        return str(row["id"]) if row else None

    def start(self, batch: str, device: str) -> Work:
        """Mark a queued batch as running on ``device``; return it with what is left of it."""
        with self.store.transaction():
            row = self.store.row("SELECT * FROM batches WHERE id=?", batch)
            assert row is not None
            self.store.run("UPDATE batches SET state='running', device=? WHERE id=?", device, batch)
            if not row["lease"]:
                self.all[row["job"]].waiting -= 1
        spec = read_batch(json.loads(row["spec"]))
        return Work(batch, row["job"], spec, row["lease"], row["attempts"], row["groups_done"])

    def keep(self, work: Work, device: str, results: Sequence[Measurement | Fault], groups_done: int) -> int:
        """Store results of whole groups, and how many groups are done now; return how many results the batch has."""
        with self.store.transaction():
            row = self.store.row("SELECT COALESCE(MAX(n), 0) AS n FROM results WHERE batch=?", work.id)
            assert row is not None
            count = int(row["n"])
            for result in results:
                count += 1
                body = json.dumps({**result_document(result), "device": device})
                self.store.run("INSERT INTO results (batch, n, body) VALUES (?,?,?)", work.id, count, body)
            self.store.run("UPDATE batches SET groups_done=? WHERE id=?", groups_done, work.id)
        return count

    def finish(self, work: Work, facts: Mapping[str, object], files: Mapping[str, str]) -> None:
        """The batch is done."""
        self._end(work.id, "done", facts=json.dumps(facts), files=json.dumps(files))

    def fail(self, batch: str, kind: str, error: XnnccError) -> None:
        """The batch is given up. ``kind``: "job", "infrastructure", "limit", "cancelled" or "lease"."""
        document = {"kind": kind, "what": error.what, "why": error.why, "next": error.next}
        self._end(batch, "failed", error=json.dumps(document))

    def give_back(self, work: Work, avoid: str, counts: bool) -> None:
        """The batch goes back to its place in the queue. ``counts``: as an attempt that failed."""
        with self.store.transaction():
            changed = self.store.run(
                "UPDATE batches SET state='queued', device='', avoid=?, attempts=attempts+? "
                "WHERE id=? AND state='running'",
                avoid, int(counts), work.id,
            )  # fmt: skip
            if changed and not work.lease and work.job in self.all:
                self.all[work.job].waiting += 1

    def cancel(self, job: Job) -> list[str]:
        """Cancel a job; return its batches that were queued and are failed now. Running ones stop by themselves."""
        error = BadInput(f"job '{job.name}'", "it was cancelled")
        with self.store.transaction():
            job.is_cancelled = True
            self.store.run("UPDATE jobs SET cancelled=1 WHERE id=?", job.id)
            return self.fail_queued(job, "cancelled", error)

    def fail_queued(self, job: Job, kind: str, error: XnnccError) -> list[str]:
        """Fail every queued batch of a job; return their ids."""
        with self.store.transaction():
            rows = self.store.rows("SELECT id FROM batches WHERE job=? AND state='queued'", job.id)
            for row in rows:
                self.fail(row["id"], kind, error)
            job.waiting = 0
        return [row["id"] for row in rows]

    def charge(self, job: Job, seconds: float, virtual: float) -> None:
        """Take in device time that the job has used."""
        job.used_s += seconds
        job.virtual = virtual
        self.store.run("UPDATE jobs SET used_s=?, virtual=? WHERE id=?", job.used_s, virtual, job.id)

    def _end(self, batch: str, state: str, facts: str = "{}", files: str = "{}", error: str = "") -> None:
        with self.store.transaction():
            self.store.run(
                "UPDATE batches SET state=?, facts=?, files=?, error=?, ended=? WHERE id=?",
                state, facts, files, error, time.time(), batch,
            )  # fmt: skip
            self.blobs.unpin(batch)
            self._ended += 1
            if self._ended % 64 == 0:
                self._prune()

    def _prune(self) -> None:
        """Forget the oldest of the batches that have ended, beyond ``keep_batches``."""
        rows = self.store.rows(
            "SELECT id FROM batches WHERE state IN ('done','failed') ORDER BY n DESC LIMIT -1 OFFSET ?",
            self.keep_batches,
        )
        for row in rows:
            self.store.run("DELETE FROM results WHERE batch=?", row["id"])
            self.store.run("DELETE FROM batches WHERE id=?", row["id"])

    def _drop_one(self) -> None:
        """Forget the oldest job that has nothing to do. Raises: BadInput when all have."""
        for job in self.all.values():
            rows = self.store.rows(
                "SELECT 1 FROM batches WHERE job=? AND state IN ('queued','running') LIMIT 1", job.id
            )
            if not rows:
                self.store.run("DELETE FROM results WHERE batch IN (SELECT id FROM batches WHERE job=?)", job.id)
                self.store.run("DELETE FROM batches WHERE job=?", job.id)
                self.store.run("DELETE FROM jobs WHERE id=?", job.id)
                del self.all[job.id]
                return
        raise BadInput("job", f"the rack has {MOST_JOBS} jobs that still have work", "Cancel some: DELETE /v1/jobs/ID.")


def read_batch(spec: Mapping[str, Any]) -> Batch:
    """Return the batch of a checked document."""
    groups = tuple(
        Group(tuple(g["candidates"]), g["floats"], g["out_offset"], g["out_bytes"]) for g in spec.get("groups", ())
    )
    return Batch(
        spec["kind"], spec["target"], spec["files"], groups, spec["rounds"], spec["threads"], spec["core_mask"],
        spec["arguments"],
    )  # fmt: skip


def _job(row: sqlite3.Row) -> Job:
    return Job(
        row["id"], row["owner"], row["name"], row["key"], row["priority"], row["weight"], row["max_seconds"],
        row["max_devices"], row["used_s"], row["virtual"], bool(row["cancelled"]), row["created"],
    )  # fmt: skip
