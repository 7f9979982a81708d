"""How a device stands: its state with the reason and since when, its faults, its quarantine, when to look again.

States, and what leads out of each:
    offline      it does not answer; looked for every ``probe_s``, later more rarely
    free         the gate (preflight) is open; takes batches, and is looked at every ``status_s``
    busy         a batch runs, or someone holds a lease
    cooling      too warm to start; until it is cool
    quarantined  by "faults" (k infrastructure faults in a row) or "preflight" (a charger, a setting or a person is
                 wanted): until a look finds nothing wrong; by "admin": until an admin releases it
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from xnncc.rack.dispatch import Seat
from xnncc.rack.ladder import tell_someone

if TYPE_CHECKING:
    from xnncc.rack.broker import Broker, Record


class Standing:
    """One device's. ``seat`` has the state, for the dispatcher. What must outlive the broker is stored."""

    def __init__(self, broker: Broker, record: Record, seat: Seat) -> None:
        self.broker, self.serial, self.seat = broker, record.serial, seat
        self.faults, self.quarantined_by = record.faults, record.quarantine_by
        self.since = time.time()
        self.probe_at = 0.0
        self._probe_s = broker.settings.probe_s
        self._admin_reason = record.quarantine
        seat.state = "quarantined" if record.quarantine_by else "offline"
        seat.reason = record.quarantine or "not looked at yet"

    def set(self, state: str, reason: str) -> None:
        """Change the state, and tell."""
        with self.broker.store.lock:
            if (state, reason) == (self.seat.state, self.seat.reason):
                return
            if state != self.seat.state:
                self.since = time.time()
            self.seat.state, self.seat.reason = state, reason
        self.broker.hub.publish("device", serial=self.serial, state=state, reason=reason)

    def quarantine(self, by: str, reason: str, tells: bool = True) -> None:
        """Quarantine it; a new reason is audited, and someone is told unless it is not to be."""
        with self.broker.store.lock:
            is_new = self.quarantined_by != by
            self.quarantined_by = by
            if by == "admin":
                self._admin_reason = reason
            self.set("quarantined", reason)
            self.keep()
            if is_new:
                self.probe_at = self.broker.clock() + self._probe_s
        if is_new:
            self.broker.audit.note("admin" if by == "admin" else "broker", f"quarantine {self.serial}", reason)
        if tells and is_new:
            tell_someone(self.broker.settings.webhook, self.serial, "quarantined", reason)

    def stay_quarantined(self) -> None:
        """What an admin has quarantined stays so, whatever happened meanwhile."""
        self.set("quarantined", self._admin_reason)

    def release(self) -> None:
        """End a quarantine; it is to be looked at, at once."""
        with self.broker.store.lock:
            self.faults, self.quarantined_by = 0, ""
            self.probe_at = 0.0
            self.keep()
            self.set("offline", "released; not looked at yet")

    def end_quarantine(self) -> None:
        """A look found nothing wrong. After faults it is on probation: one more, and it is quarantined again."""
        if self.quarantined_by == "faults":
            self.faults = max(self.broker.settings.faults_until_quarantine - 1, 0)
        self.quarantined_by = ""
        self.keep()

    def lose(self, reason: str, tells: bool = False) -> None:
        """It does not answer: offline, or still quarantined; looked for again later."""
        if self.seat.state != "quarantined":
            self.set("offline", reason)
        self.wait_longer()
        if tells:
            tell_someone(self.broker.settings.webhook, self.serial, "offline", reason)

    def count_fault(self) -> bool:
        """Count an infrastructure fault; return whether it is one too many."""
        self.faults += 1
        self.keep()
        return self.faults >= self.broker.settings.faults_until_quarantine

    def forget_faults(self) -> None:
        """It did a batch: faults are counted anew."""
        if self.faults:
            self.faults = 0
            self.keep()

    def wait_longer(self) -> None:
        """Look again after a while, and after a longer one the next time."""
        self.probe_at = self.broker.clock() + self._probe_s
        self._probe_s = min(2 * self._probe_s, self.broker.settings.most_probe_s)

    def wait_briefly(self) -> None:
        """It answered: the next absence is looked into soon."""
        self._probe_s = self.broker.settings.probe_s

    def keep(self) -> None:
        """Store what must outlive the broker."""
        reason = self.seat.reason if self.quarantined_by else ""
        self.broker.keep_quarantine(self.serial, reason, self.quarantined_by, self.faults)
