"""Which device does what next: jobs and leases share the devices fairly, and a device has one of them at a time.

    work = dispatch.take(seat)          the device behind ``seat`` is free: a batch, or None
    dispatch.finish(work, seat, ...)    or give_back, or fail

A *seat* is the broker's place for one device. All of this happens under the store's lock, and without a thread or a
clock of its own, so that an hour of it can be simulated in a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xnncc.errors import BadInput, XnnccError, nearest
from xnncc.rack.events import EventHub
from xnncc.rack.fair_share import FairShare
from xnncc.rack.jobs import Job, Jobs, Work
from xnncc.rack.leases import Lease, Leases
from xnncc.rack.phone import Description

_MOST_CLAIMANTS = 3000
STATES = ("free", "busy", "cooling", "quarantined", "offline")


@dataclass
class Seat:
    """One device as the dispatcher sees it. ``wake``: told when there may be work for it."""

    description: Description
    name: str = ""
    state: str = "offline"
    reason: str = ""
    lease: str = ""
    work: str = ""
    started: float = 0.0
    last_used: float = 0.0
    wake: Callable[[], None] = field(default=lambda: None)

    @property
    def serial(self) -> str:
        """Its serial number."""
        return self.description.serial

    def matches(self, key: str) -> bool:
        """Whether ``key`` asks for this device: its key, its serial number or its name."""
        return bool(key) and key in (self.description.key, self.serial, self.name)


class Dispatch:
    """The seats, and what waits for them."""

    def __init__(
        self, jobs: Jobs, leases: Leases, hub: EventHub, clock: Callable[[], float], attempts: int = 3
    ) -> None:
        self.jobs, self.leases, self.hub, self.clock, self.attempts = jobs, leases, hub, clock, attempts
        self.store = jobs.store
        self.share = FairShare()
        self.seats: dict[str, Seat] = {}

    # Devices.

    def seat(self, seat: Seat) -> None:
        """Take in a device; a lease that it had before a restart is its lease again."""
        with self.store.lock:
            self.seats[seat.serial] = seat
            for lease in self.leases.all.values():
                if lease.device == seat.serial:
                    seat.lease = lease.id
                    self._admit_lease(lease)

    def unseat(self, serial: str) -> None:
        """Let a device go; whoever leased it loses the lease."""
        with self.store.transaction():
            seat = self.seats.pop(serial, None)
            lease = self.leases.all.get(seat.lease) if seat else None
            if lease is not None:
                self._end_lease(lease)

    def keys(self) -> list[str]:
        """Return everything that a key may be."""
        found = {name for s in self.seats.values() for name in (s.description.key, s.serial, s.name)}
        return sorted(found - {""})

    def check_key(self, key: str) -> None:
        """Raises: BadInput when no device, here now or not, has this key: waiting for it would never end."""
        with self.store.lock:
            if not any(seat.matches(key) for seat in self.seats.values()):
                known = self.keys()
                why = "Known: " + ", ".join(known[:20]) + "." if known else "Add one: `xnncc rack add`."
                raise BadInput(f"no device of the rack has the key '{key}'{nearest(key, known)}", "", why)

    # What is asked for.

    def create_job(self, owner: str, token: str, values: Mapping[str, Any]) -> Job:
        """See Jobs.create. Raises: BadInput, also for a key that no device has."""
        self.check_key(values["key"])
        with self.store.lock:
            job = self.jobs.create(owner, token, values)
            alive = {one.claimant for one in self.jobs.all.values()}
            for name in [n for n in self.share.claimants if n.startswith("job:") and n not in alive]:
                self.share.remove(name)
        self.hub.publish("job", job=job.id, name=job.name, state="created")
        return job

    def submit(self, job: Job, token: str, spec: Mapping[str, Any], lease: str = "") -> tuple[str, bool]:
        """See Jobs.submit; wakes devices that may take it. Raises: BadInput."""
        with self.store.transaction():
            held = self.leases.all.get(lease)
            if lease and (held is None or held.owner != job.owner):
                raise BadInput(f"lease '{lease}'", "it has ended, or is not yours", "Lease a device anew.")
            was_idle = not job.waiting
            batch, is_new = self.jobs.submit(job, token, spec, lease)
            if is_new and not lease and was_idle:
                self._admit(job)
                self.share.wake(job.claimant)
                self.jobs.charge(job, 0.0, self.share.claimants[job.claimant].virtual)
        if is_new:
            self.hub.publish("batch", batch, batch=batch, job=job.id, state="queued")
            self.wake(self.seats[held.device].serial if held and held.device else job.key)
        return batch, is_new

    def cancel(self, job: Job) -> None:
        """Cancel a job: what is queued fails now, what runs stops at its next result."""
        for batch in self.jobs.cancel(job):
            self._tell(batch, job.id, "failed")
        self.hub.publish("job", job=job.id, name=job.name, state="cancelled")

    def lease(self, owner: str, token: str, key: str, seconds: float) -> Lease:
        """Return a lease, held when a device is free and waiting otherwise. Raises: BadInput."""
        self.check_key(key)
        with self.store.transaction():
            lease = self.leases.create(owner, token, key, seconds)
            if not lease.device:
                self._admit_lease(lease)
                self.share.wake(lease.claimant)
                self._give_device(lease)
        return lease

    def release(self, lease: Lease) -> None:
        """Take a device back; what was queued for the lease fails, what runs is let finish."""
        with self.store.transaction():
            self._end_lease(lease)
        self.wake(lease.device or lease.key)

    def expire(self) -> list[Lease]:
        """Take back what is over its time; return those leases."""
        with self.store.lock:
            over = self.leases.over()
            for lease in over:
                self.release(lease)
        return over

    def wake(self, key: str) -> None:
        """Tell the devices of a key that there may be work."""
        with self.store.lock:
            for seat in self.seats.values():
                if seat.matches(key) and not seat.work:
                    seat.wake()

    # What a device does.

    def take(self, seat: Seat) -> Work | None:
        """Return the batch that a free device does next. A lease that waits may get the device instead."""
        with self.store.transaction():
            if seat.work or seat.state != "free":
                return None
            if seat.lease:
                batch = self.jobs.next_leased(seat.lease)
                return self._start(seat, batch) if batch else None
            choices = self._choices(seat)
            while choices:
                picked = self.share.pick(choices)
                if picked is None:
                    return None
                choice = choices.pop(picked)
                if isinstance(choice, Lease):
                    self._grant(choice, seat)
                    return None
                if self._over_limit(choice):
                    continue
                batch = self.jobs.next_of(choice, seat.serial, self._others(seat))
                if batch is not None:
                    return self._start(seat, batch)
        return None

    def finish(self, work: Work, seat: Seat, facts: Mapping[str, object], files: Mapping[str, str]) -> None:
        """The batch is done."""
        with self.store.transaction():
            self.jobs.finish(work, facts, files)
            self._settle(work, seat)
        self._tell(work.id, work.job, "done", seat.serial)

    def fail(self, work: Work, seat: Seat, kind: str, error: XnnccError) -> None:
        """The batch is given up."""
        with self.store.transaction():
            self.jobs.fail(work.id, kind, error)
            self._settle(work, seat)
        self._tell(work.id, work.job, "failed", seat.serial, str(error))

    def give_back(self, work: Work, seat: Seat, error: XnnccError | None = None) -> None:
        """The batch goes back to the queue; with an ``error`` of the device it counts as an attempt, and the last
        attempt fails it. So does the loss of its lease."""
        if error is not None and work.attempts + 1 >= self.attempts:
            why = f"{work.attempts + 1} devices or attempts failed with it, at last: {error}"
            return self.fail(work, seat, "infrastructure", BadInput("batch", why.rstrip("."), "Submit it again."))
        if work.lease and work.lease not in self.leases.all:
            return self.fail(work, seat, "lease", BadInput("batch", "its lease has ended", "Lease a device anew."))
        with self.store.transaction():
            self.jobs.give_back(work, seat.serial if error is not None else "", error is not None)
            self._settle(work, seat)
        job = self.jobs.all.get(work.job)
        if job is not None and job.is_cancelled:
            self.cancel(job)
            return None
        self._tell(work.id, work.job, "queued", seat.serial)
        if job is not None:
            self.wake(job.key)
        return None

    def stop_reason(self, work: Work, seat: Seat) -> tuple[str, XnnccError] | None:
        """Return (kind, error) when a running batch must not go on: its job is cancelled or has had its time."""
        job = self.jobs.all.get(work.job)
        if job is None or job.is_cancelled:
            return "cancelled", BadInput("batch", "its job was cancelled")
        if job.max_seconds is not None and job.used_s + self.clock() - seat.started > job.max_seconds:
            return "limit", _over(job)
        return None

    def _choices(self, seat: Seat) -> dict[str, Job | Lease]:
        found: dict[str, Job | Lease] = {}
        for job in self.jobs.all.values():
            if job.waiting and seat.matches(job.key) and not job.is_cancelled:
                self._admit(job)
                found[job.claimant] = job
        for lease in self.leases.waiting():
            if seat.matches(lease.key):
                found.setdefault(lease.claimant, lease)
        return found

    def _start(self, seat: Seat, batch: str) -> Work:
        work = self.jobs.start(batch, seat.serial)
        seat.work, seat.started = work.id, self.clock()
        if not work.lease:
            self.share.start(self.jobs.all[work.job].claimant, work.id)
        self._tell(work.id, work.job, "running", seat.serial)
        return work

    def _settle(self, work: Work, seat: Seat) -> None:
        """Charge the job with the time that its batch took, and free the seat."""
        seconds = max(self.clock() - seat.started, 0.0)
        seat.work, seat.last_used = "", self.clock()
        job = self.jobs.all.get(work.job)
        if job is None:
            return
        if not work.lease:
            self.share.finish(job.claimant, work.id, seconds)
        known = self.share.claimants.get(job.claimant)
        self.jobs.charge(job, seconds, known.virtual if known else job.virtual)
        if known and not job.waiting and not known.running and job.is_cancelled:
            self.share.remove(job.claimant)

    def _over_limit(self, job: Job) -> bool:
        """Whether a job has had its time; then what it has queued fails."""
        if job.max_seconds is None or job.used_s < job.max_seconds:
            return False
        for batch in self.jobs.fail_queued(job, "limit", _over(job)):
            self._tell(batch, job.id, "failed")
        return True

    def _admit(self, job: Job) -> None:
        self.share.add(job.claimant, job.weight, job.priority, job.max_devices, self._pool(job.key), job.virtual)

    def _admit_lease(self, lease: Lease) -> None:
        """Take in the claimant of a lease. It stays when its leases have ended, for what it has had; up to a number."""
        if len(self.share.claimants) > _MOST_CLAIMANTS:
            used = {one.claimant for one in self.leases.all.values()}
            for name in [n for n in self.share.claimants if n.startswith("lease:") and n not in used]:
                self.share.remove(name)
        self.share.add(lease.claimant, pool=self._pool(lease.key))

    def _give_device(self, lease: Lease) -> None:
        """Grant a free device, the one that has rested longest, unless a job's batch is to have it first."""
        free = [seat for seat in self.seats.values() if self._is_free(seat) and seat.matches(lease.key)]
        for seat in sorted(free, key=lambda seat: seat.last_used):
            if self.share.pick(self._choices(seat)) == lease.claimant:
                self._grant(lease, seat)
                return
            seat.wake()

    def _pool(self, key: str) -> str:
        """Return the key of the devices that ``key`` asks for: a serial number competes with those of its kind."""
        return next((s.description.key for s in self.seats.values() if s.matches(key)), key)

    def _grant(self, lease: Lease, seat: Seat) -> None:
        seat.lease, seat.last_used = lease.id, self.clock()
        self.leases.grant(lease, seat.serial)
        self.share.start(lease.claimant, lease.id, min(lease.seconds, 30.0))
        self.hub.publish("lease", lease.id, lease=lease.id, owner=lease.owner, device=seat.serial, state="held")

    def _end_lease(self, lease: Lease) -> None:
        if lease.id not in self.leases.all:
            return
        self.leases.remove(lease)
        seat = self.seats.get(lease.device)
        if seat is not None and seat.lease == lease.id:
            seat.lease, seat.last_used = "", self.clock()
        if lease.device:
            self.share.finish(lease.claimant, lease.id, self.clock() - lease.since)
        error = BadInput("batch", "its lease has ended", "Lease a device anew.")
        for row in self.store.rows("SELECT id, job FROM batches WHERE state='queued' AND lease=?", lease.id):
            self.jobs.fail(row["id"], "lease", error)
            self._tell(row["id"], row["job"], "failed")
        self.hub.publish("lease", lease.id, lease=lease.id, owner=lease.owner, device=lease.device, state="ended")

    def _is_free(self, seat: Seat) -> bool:
        return seat.state == "free" and not seat.work and not seat.lease

    def _others(self, seat: Seat) -> bool:
        """Whether another device of the same key is up."""
        up = (s for s in self.seats.values() if s.state not in ("quarantined", "offline"))
        return any(s is not seat and s.description.key == seat.description.key for s in up)

    def _tell(self, batch: str, job: str, state: str, device: str = "", words: str = "") -> None:
        self.hub.publish("batch", batch, batch=batch, job=job, state=state, device=device, words=words)


def _over(job: Job) -> XnnccError:
    why = f"it has used its {job.max_seconds:g} s of device time"
    return BadInput(f"job '{job.name}'", why, "Start one with a larger max_seconds.")


def counts(seats: Iterable[Seat]) -> dict[str, int]:
    """Return how many seats are in each state."""
    found = dict.fromkeys(STATES, 0)
    for seat in seats:
        found[seat.state] += 1
    return found
