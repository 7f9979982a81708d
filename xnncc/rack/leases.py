"""Devices that someone has for a while: held or waited for, renewed, given back, or taken back when time is up.

A lease's time is counted by a clock that never jumps. After a restart of the broker a held lease is held again, with
its whole time from then on: nobody loses a device because the broker was updated.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from xnncc.errors import BadInput
from xnncc.rack.store import Store

MOST_SECONDS = 3600.0
WAITING_SECONDS = 60.0  # a waiting lease that nobody asked for in so long is dropped
MOST_OF_ONE_OWNER = 100


@dataclass
class Lease:
    """``device``: the serial number, or "" while it waits. ``deadline``: seconds of the broker's clock."""

    id: str
    owner: str
    key: str
    seconds: float
    device: str
    deadline: float
    since: float

    @property
    def claimant(self) -> str:
        """Its name in the fair sharing: one user's leases are one claimant."""
        return f"lease:{self.owner}:{self.key}"


class Leases:
    """The leases of one rack, in memory and in the store. Callers hold the store's lock."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.store, self.clock = store, clock
        self.all: dict[str, Lease] = {}
        now = clock()
        for row in store.rows("SELECT * FROM leases"):
            seconds = float(row["seconds"])
            end = now + (seconds if row["device"] else WAITING_SECONDS)
            self.all[row["id"]] = Lease(row["id"], row["owner"], row["key"], seconds, row["device"], end, now)

    def create(self, owner: str, token: str, key: str, seconds: float) -> Lease:
        """Return a lease that waits; the same owner and token give the same lease again. Raises: BadInput."""
        row = self.store.row("SELECT id FROM leases WHERE owner=? AND token=?", owner, token)
        if row is not None:
            return self.all[row["id"]]
        if sum(one.owner == owner for one in self.all.values()) >= MOST_OF_ONE_OWNER:
            raise BadInput("lease", f"'{owner}' has {MOST_OF_ONE_OWNER} already", "Give some of them back.")
        now = self.clock()
        lease = Lease(secrets.token_hex(8), owner, key, seconds, "", now + WAITING_SECONDS, now)
        self.store.run(
            "INSERT INTO leases (id, owner, token, key, seconds, device) VALUES (?,?,?,?,?,'')",
            lease.id, owner, token, key, seconds,
        )  # fmt: skip
        self.all[lease.id] = lease
        return lease

    def grant(self, lease: Lease, device: str) -> None:
        """Give it a device; its time begins."""
        lease.device, lease.since = device, self.clock()
        lease.deadline = lease.since + lease.seconds
        self.store.run("UPDATE leases SET device=? WHERE id=?", device, lease.id)

    def renew(self, lease: Lease, seconds: float | None = None) -> None:
        """Let its time begin anew; a waiting one is waited for again."""
        if seconds is not None:
            lease.seconds = seconds
            self.store.run("UPDATE leases SET seconds=? WHERE id=?", seconds, lease.id)
        lease.deadline = self.clock() + (lease.seconds if lease.device else WAITING_SECONDS)

    def remove(self, lease: Lease) -> None:
        """Forget it."""
        self.all.pop(lease.id, None)
        self.store.run("DELETE FROM leases WHERE id=?", lease.id)

    def waiting(self) -> list[Lease]:
        """Return those without a device, the oldest first."""
        return [lease for lease in self.all.values() if not lease.device]

    def over(self) -> list[Lease]:
        """Return those whose time is up."""
        now = self.clock()
        return [lease for lease in self.all.values() if lease.deadline <= now]
