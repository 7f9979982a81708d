"""The thread of one device: it opens the device, looks at it, does its batches, cools it, climbs the ladder for it.

The states that it goes through: standing.py.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xnncc.device.bench import Fault, Measurement
from xnncc.errors import BadInput, DeviceError, XnnccError
from xnncc.rack.cooling import wait_until_cool
from xnncc.rack.dispatch import Seat
from xnncc.rack.drift import DriftWatch
from xnncc.rack.history import History
from xnncc.rack.jobs import Work
from xnncc.rack.ladder import climb
from xnncc.rack.perform import Keep, Stopped, perform
from xnncc.rack.phone import Description, JobFailed, Phone, Status
from xnncc.rack.preflight import unfit, warm
from xnncc.rack.standing import Standing
from xnncc.rack.steady import SteadyPhone

if TYPE_CHECKING:
    from xnncc.rack.broker import Broker, Record

_log = logging.getLogger("xnncc.rack")
_FRESH_S = 2.0  # a look this old still counts as one before a batch


class Worker:
    """One device of the broker. ``seat`` is its place with the dispatcher."""

    def __init__(self, broker: Broker, record: Record, phone: Phone | None = None) -> None:
        self.broker, self.record = broker, record
        self.history = History()
        self._phone = phone
        self._steady: dict[str, SteadyPhone] = {}
        self._event = threading.Event()
        self._stop = False
        self._looked = float("-inf")
        self.seat = Seat(record.description, record.name, wake=self._event.set)
        self.standing = Standing(broker, record, self.seat)
        self._thread = threading.Thread(target=self._run, name=f"rack {record.serial}", daemon=True)

    # From other threads.

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; a batch in progress goes back to the queue at its next result."""
        self._stop = True
        self._event.set()

    def join(self, timeout: float) -> None:
        """Wait for its end."""
        self._thread.join(timeout)

    def quarantine(self, reason: str) -> None:
        """Quarantine by an admin; a batch in progress is let finish."""
        self.standing.quarantine("admin", reason, tells=False)

    def release(self) -> None:
        """End a quarantine; the device is looked at, at once."""
        self.standing.release()
        self._event.set()

    def look_soon(self) -> None:
        """Look at an absent device at once: someone saw it."""
        self.standing.probe_at = 0.0
        self._event.set()

    def is_gone(self, reason: str) -> None:
        """Discovery says that it is not there, or cannot be used."""
        with self.broker.store.lock:
            if self.seat.state in ("free", "cooling"):
                self.standing.lose(reason)

    @property
    def is_attached(self) -> bool:
        """It is open, and answered last time."""
        return self._phone is not None and self.seat.state != "offline"

    # The thread.

    def _run(self) -> None:
        while not self._stop:
            try:
                wait = self._step()
            except XnnccError as error:
                self._lose(str(error))
                wait = 0.0
            except Exception as error:  # our own mistake: it must cost one device, not the rack
                _log.error("%s: %s", self.record.serial, traceback.format_exc())
                self.quarantine(f"xnncc made a mistake, see the broker's log: {error!r}")
                wait = 1.0
            if wait > 0 and not self._stop:
                self._event.wait(wait)
            self._event.clear()
        if self._phone is not None:
            self._phone.close()

    def _step(self) -> float:
        """Do the next thing; return how many seconds there is nothing to do unless someone calls."""
        now, state = self.broker.clock(), self.seat.state
        if state == "offline":
            if now < self.standing.probe_at:
                return self.standing.probe_at - now
            self._attach()
            return 0.0
        if state == "quarantined":
            if self.standing.quarantined_by == "admin":
                return 3600.0
            if now < self.standing.probe_at:
                return self.standing.probe_at - now
            self._probe()
            return 0.0
        if state == "cooling":
            self._cool()
            return 0.0
        self._show_lease()
        work = self.broker.dispatch.take(self.seat)
        if work is not None:
            self._do(work)
            return 0.0
        due = self._looked + self.broker.settings.status_s - now
        if due > 0:
            return due
        self._gate()
        return 0.0

    def _attach(self) -> None:
        """Open the device and see that it is who it was. Raises: DeviceError."""
        if self._phone is None:
            self._phone = self.broker.open(self.record)
        found = self._phone.describe()
        if found.serial != self.record.serial:
            self._drop()
            raise DeviceError(f"device '{self.record.spec}'", f"it is '{found.serial}' now, no longer this one")
        self._described(found)
        self.standing.wait_briefly()
        self._gate()

    def _described(self, found: Description) -> None:
        if found != self.seat.description:
            with self.broker.store.lock:
                self.seat.description = found
                self.broker.keep_description(self.record.serial, found)

    def _gate(self) -> None:
        """Look at the device and set its state by what speaks against a start. Raises: DeviceError."""
        status = self._look()
        limits = self.broker.settings.limits.of(self.seat.description)
        wrong, hot = unfit(status, limits), warm(status, limits)
        if self.standing.quarantined_by == "admin":
            self.standing.stay_quarantined()
        elif wrong:
            self.standing.quarantine("preflight", "; ".join(wrong), tells=self.standing.quarantined_by != "preflight")
        elif hot:
            self.standing.set("cooling", hot[0])
        else:
            if self.standing.quarantined_by:
                self.standing.end_quarantine()
            self.standing.set("free", "")

    def _look(self) -> Status:
        """Raises: DeviceError."""
        status = self._open_phone().status()
        self._looked = self.broker.clock()
        self.history.add(time.time(), status)
        self.broker.hub.publish("reading", serial=self.record.serial, reading=self.history.newest())
        return status

    def _probe(self) -> None:
        """See whether a quarantine can end; if not, look again later, and more rarely."""
        was = self.standing.quarantined_by
        try:
            if self._phone is None:
                self._attach()
            self._gate()
        except DeviceError as error:
            self.standing.quarantine(was, f"{error}", tells=False)
        if self.seat.state == "quarantined":
            self.standing.wait_longer()
        else:
            self.standing.end_quarantine()
            self.standing.wait_briefly()

    def _cool(self) -> None:
        """Wait until it is cool; at the deadline it is quarantined until it is. Raises: DeviceError."""
        settings = self.broker.settings
        limits = settings.limits.of(self.seat.description)

        def pause(seconds: float) -> None:
            self._event.wait(seconds)
            self._event.clear()
            if self._stop or self.seat.state not in ("cooling", "busy"):
                raise Stopped("stopped", BadInput("cooling", "it was ended"))

        try:
            wait_until_cool(self._look, limits, settings.cooling, clock=self.broker.clock, sleep=pause)
        except Stopped:
            return
        except DeviceError as error:
            if error.what != "cooling":
                raise
            self.standing.quarantine("preflight", error.why)
            return
        if self.seat.state == "cooling":
            self.standing.set("free", "")

    def _do(self, work: Work) -> None:
        """Do a batch and deal with every way that it can end."""
        dispatch = self.broker.dispatch
        try:
            if self.broker.clock() - self._looked > _FRESH_S:
                self._gate()
                if self.seat.state != "free":
                    dispatch.give_back(work, self.seat)
                    return
            self.standing.set("busy", f"batch {work.id}")
            facts, files = perform(
                work, self._phone_for(work), self.broker.blobs, self._keeper(work), self._checker(work)
            )
        except Stopped as stop:
            if stop.kind == "warm":
                self.standing.quarantine("preflight", stop.why)
            if stop.kind in ("stopped", "warm"):
                dispatch.give_back(work, self.seat)
            else:
                dispatch.fail(work, self.seat, stop.kind, stop)
        except JobFailed as error:
            dispatch.fail(work, self.seat, "job", error)
        except DeviceError as error:
            dispatch.give_back(work, self.seat, error)
            self._recover(error)
            return
        except XnnccError as error:  # the broker's own disk or compiler: no device would do better
            dispatch.fail(work, self.seat, "infrastructure", error)
        except BaseException:
            dispatch.give_back(work, self.seat, BadInput("batch", "xnncc made a mistake, see the broker's log"))
            raise
        else:
            self._note_reading(facts)
            dispatch.finish(work, self.seat, facts, files)
            self.standing.forget_faults()
        self._gate()

    def _keeper(self, work: Work) -> Keep:
        def keep(results: Sequence[Measurement | Fault], groups_done: int) -> None:
            count = self.broker.jobs.keep(work, self.record.serial, results, groups_done)
            self.broker.hub.publish(
                "batch", work.id, batch=work.id, job=work.job, state="running", device=self.record.serial, results=count
            )

        return keep

    def _checker(self, work: Work) -> Callable[[], None]:
        def check() -> None:
            if self._stop:
                raise Stopped("stopped", BadInput("batch", "the broker ends"))
            reason = self.broker.dispatch.stop_reason(work, self.seat)
            if reason is not None:
                raise Stopped(*reason)

        return check

    def _phone_for(self, work: Work) -> Phone:
        """Return the phone, with discipline when times are wanted of it. Raises: ToolchainError, OutputError."""
        phone = self._open_phone()
        reference_of = self.broker.settings.reference_of
        if work.batch.kind != "measure" or not work.batch.rounds or reference_of is None or not self.record.is_steady:
            return phone
        target = work.batch.target
        if target not in self._steady:
            watch = DriftWatch(baseline_us=self.broker.baseline(self.record.serial, target))
            reference = self.broker.reference(target)
            self._steady[target] = SteadyPhone(phone, reference, self._cool_within, watch, self.broker.clock)
        return self._steady[target]

    def _cool_within(self) -> None:
        """Cool in the middle of a batch. Raises: DeviceError."""
        limits = self.broker.settings.limits.of(self.seat.description)

        def pause(seconds: float) -> None:
            self._event.wait(seconds)
            self._event.clear()
            if self._stop:
                raise Stopped("stopped", BadInput("batch", "the broker ends"))

        try:
            wait_until_cool(self._look, limits, self.broker.settings.cooling, clock=self.broker.clock, sleep=pause)
        except DeviceError as error:
            if error.what == "cooling":  # no fault that a ladder would mend
                raise Stopped("warm", error) from None
            raise

    def _recover(self, error: DeviceError) -> None:
        """Count an infrastructure fault, climb the ladder, and quarantine or lose the device when it must be."""
        settings = self.broker.settings
        is_too_many = self.standing.count_fault()
        self.standing.set("busy", f"recovering: {error}")
        result = climb(self._open_phone(), self._tell_rung, settings.rungs)
        if is_too_many:
            faults = self.standing.faults
            self.standing.quarantine("faults", f"{faults} infrastructure faults in a row, the last: {error}")
            self.standing.wait_longer()
        elif result.rung:
            self._gate()
        else:
            self._lose(f"{error} Nothing helped: {result.words}", tells=True)

    def _tell_rung(self, rung: str, outcome: str) -> None:
        self.broker.audit.note("broker", f"{rung} {self.record.serial}", outcome)
        self.broker.hub.publish("recovery", serial=self.record.serial, rung=rung, outcome=outcome)

    def _lose(self, reason: str, tells: bool = False) -> None:
        """It does not answer."""
        self._drop()
        self.standing.lose(reason, tells)

    def _show_lease(self) -> None:
        """Say in the state that someone holds the device, or no longer does. It stays free for the lease's batches."""
        lease = self.broker.leases.all.get(self.seat.lease)
        reason = f"leased by {lease.owner}" if lease else ""
        if self.seat.reason != reason:
            self.standing.set("free", reason)

    def _open_phone(self) -> Phone:
        if self._phone is None:
            self._phone = self.broker.open(self.record)
        return self._phone

    def _drop(self) -> None:
        phone, self._phone = self._phone, None
        self._steady.clear()
        if phone is not None:
            phone.close()

    def _note_reading(self, facts: dict[str, object]) -> None:
        """Keep the reference kernel's baseline."""
        reference = facts.get("reference")
        if isinstance(reference, dict):
            found = {target: steady.watch.baseline_us for target, steady in self._steady.items()}
            self.broker.keep_baselines(self.record.serial, json.dumps(found))
