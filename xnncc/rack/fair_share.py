"""Who gets the next free device: weighted fair sharing of device time, in classes of priority.

    share = FairShare()
    share.add("a", weight=1);  share.add("b", weight=2)
    share.pick(["a", "b"])  -> the one that has had the least time for its weight
    share.start("a", "batch-1", expected_s=10);  share.finish("a", "batch-1", seconds=12.5)

Start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing", 1996, equations 4 to 6) with several
servers: a claimant's *virtual time* is the device time it has had divided by its weight; what runs is charged with
what it is expected to take, and corrected at its end. One that was idle starts again where the others are, so that
waiting earns nothing. A higher priority always goes first; weights count among equals. Pure bookkeeping: no clock,
no threads, the same calls give the same picks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Claimant:
    """One job, or the leases of one user. ``most_running``: devices at once, None for any number.

    ``pool``: the devices that it competes for; only virtual times of one pool are compared.
    """

    weight: float = 1.0
    priority: int = 0
    most_running: int | None = None
    pool: str = ""
    virtual: float = 0.0
    order: int = 0
    running: dict[str, float] = field(default_factory=dict)  # what runs -> seconds that it was charged with
    typical_s: float = 1.0  # moving average of what one piece of work takes


class FairShare:
    """The claimants of one rack."""

    def __init__(self) -> None:
        self.claimants: dict[str, Claimant] = {}
        self._now: dict[tuple[str, int], float] = {}  # pool, priority -> virtual time of the last start there
        self._count = 0

    def add(
        self,
        name: str,
        weight: float = 1.0,
        priority: int = 0,
        most_running: int | None = None,
        pool: str = "",
        virtual: float = 0.0,
    ) -> None:
        """Take in a claimant; one that is there already stays as it is."""
        if name not in self.claimants:
            self._count += 1
            self.claimants[name] = Claimant(weight, priority, most_running, pool, virtual, self._count)
            self._now.setdefault((pool, priority), virtual)  # the first one of a pool says where it stands

    def remove(self, name: str) -> None:
        """Forget a claimant, and its pool with the last one of it."""
        self.claimants.pop(name, None)
        used = {(one.pool, one.priority) for one in self.claimants.values()}
        self._now = {pool: now for pool, now in self._now.items() if pool in used}

    def wake(self, name: str) -> None:
        """It has work again after it had none: it starts where the others of its class are, not where it stopped."""
        one = self.claimants[name]
        if not one.running:
            one.virtual = max(one.virtual, self._now[one.pool, one.priority])

    def pick(self, names: Iterable[str]) -> str | None:
        """Return which of ``names`` (those that have work for the device) goes next; None when limits forbid all."""
        best: tuple[tuple[int, float, int], str] | None = None
        for name in names:
            one = self.claimants[name]
            if one.most_running is not None and len(one.running) >= one.most_running:
                continue
            rank = (-one.priority, one.virtual, one.order)
            if best is None or rank < best[0]:
                best = (rank, name)
        return best[1] if best else None

    def start(self, name: str, work: str, expected_s: float | None = None) -> None:
        """Charge ``name`` with work that begins; by default with what its work has taken on average."""
        one = self.claimants[name]
        charged = one.typical_s if expected_s is None else expected_s
        pool = (one.pool, one.priority)
        self._now[pool] = max(self._now[pool], one.virtual)
        one.running[work] = charged
        one.virtual += charged / one.weight

    def finish(self, name: str, work: str, seconds: float) -> None:
        """Correct the charge to the device time that the work really took; unknown work changes nothing."""
        one = self.claimants.get(name)
        charged = one.running.pop(work, None) if one else None
        if one is None or charged is None:
            return
        one.virtual += (seconds - charged) / one.weight
        one.typical_s += 0.3 * (seconds - one.typical_s)
