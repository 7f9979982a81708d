"""The broker: owns the devices of one rack, and everything that is asked of them.

    broker = Broker(Settings(state=folder));  broker.start();  ...;  broker.stop()

How it comes to its devices: ``Settings.open_phone(spec, token, may_reboot) -> Phone`` opens one and asks nothing of it
yet (rack/open_phone.py for ``adb:`` and ``tcp:``, rack/simulated.py for ``sim:``); ``discover.Watcher.poll()`` tells
which phones adb sees. A phone that adb sees is added by itself, unless someone removed it; an agent is added by hand.
A device is known by its serial number: over another cable or port it is the same one.

Threads: one a device (worker.py), one that looks for phones and takes back leases, and the server's. Whatever they
share is changed under the store's lock.
"""

from __future__ import annotations

import fcntl
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from xnncc.errors import BadInput, DeviceError, OutputError, XnnccError, nearest
from xnncc.rack.audit import Audit
from xnncc.rack.blobs import Blobs
from xnncc.rack.discover import Change, Watcher
from xnncc.rack.dispatch import Dispatch
from xnncc.rack.events import EventHub
from xnncc.rack.jobs import Jobs
from xnncc.rack.leases import Leases
from xnncc.rack.names import plain_name
from xnncc.rack.phone import Description, Phone
from xnncc.rack.settings import Settings
from xnncc.rack.steady import ReferenceJob
from xnncc.rack.store import Store
from xnncc.rack.tokens import Tokens
from xnncc.rack.worker import Worker

MOST_DEVICES = 1000
_STOP_SECONDS = 10.0
_RETRY_SECONDS = 60.0  # until a phone that could not be taken in, still starting perhaps, is tried again
_log = logging.getLogger("xnncc.rack")


@dataclass(frozen=True)
class Record:
    """A device as the store has it."""

    serial: str
    spec: str
    name: str
    secret: bytes
    may_reboot: bool
    is_steady: bool
    description: Description
    quarantine: str = ""
    quarantine_by: str = ""
    faults: int = 0


class Broker:
    """One rack. ``clock``: seconds that never jump; everything that lasts is measured by it."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises: OutputError when the state folder cannot be used, or another broker uses it."""
        self.settings, self.clock = settings, clock
        self.store = Store(settings.state)
        self._lock_file = (settings.state / "lock").open("w")
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.store.close()
            why, step = "another broker uses it", "End that one, or give another --state DIR."
            raise OutputError(f"'{settings.state}'", why, step) from None
        self.blobs = Blobs(self.store, settings.state / "blobs", settings.blob_bytes)
        self.tokens, self.audit, self.hub = Tokens(self.store), Audit(self.store, clock), EventHub()
        self.jobs = Jobs(self.store, self.blobs, settings.keep_batches)
        self.leases = Leases(self.store, clock)
        self.dispatch = Dispatch(self.jobs, self.leases, self.hub, clock, settings.attempts)
        self.workers: dict[str, Worker] = {}
        self.problem = ""  # why adb cannot be asked
        self.started = clock()
        self._references: dict[str, ReferenceJob] = {}
        self._compiling = threading.Lock()
        self._stop = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="rack watch", daemon=True)
        for row in self.store.rows("SELECT * FROM devices ORDER BY serial"):
            self._seat(_record(row), None)

    def start(self) -> None:
        """Begin to look for devices and to do what is queued."""
        self._watching.start()
        for worker in list(self.workers.values()):
            worker.start()

    def stop(self) -> None:
        """End: batches in progress go back to the queue, devices are let go."""
        self._stop.set()
        workers = list(self.workers.values())
        for worker in workers:
            worker.stop()
        deadline = time.monotonic() + _STOP_SECONDS
        for worker in workers:
            worker.join(max(deadline - time.monotonic(), 0.0))
        if self._watching.is_alive():
            self._watching.join(_STOP_SECONDS)
        self.store.close()
        self._lock_file.close()

    # Devices.

    def add(
        self, spec: str, token: bytes = b"", name: str = "", may_reboot: bool = False, is_steady: bool = True
    ) -> str:
        """Open a device and keep it; return its serial number. Blocks until it has answered.

        Raises: BadInput, DeviceError when it does not answer.
        """
        if name and plain_name(name) != name:
            raise BadInput(f"device name '{name}'", "expected letters, digits, '.', '_' and '-'")
        phone = self.settings.open_phone(spec, token, may_reboot)
        try:
            found = phone.describe()
            if not found.serial or plain_name(found.serial) != found.serial:
                raise DeviceError(f"device '{spec}'", f"it calls itself {found.serial[:80]!r}, which is no plain name")
            with self.store.transaction():
                record = Record(found.serial, spec, name, token, may_reboot, is_steady, found)
                self._check_new(record)
                self.store.run(
                    "INSERT OR REPLACE INTO devices (serial, spec, name, secret, may_reboot, is_steady, description) "
                    "VALUES (?,?,?,?,?,?,?)",
                    found.serial, spec, name, token, may_reboot, is_steady, json.dumps(asdict(found)),
                )  # fmt: skip
                self.store.run("DELETE FROM ignored WHERE spec=?", spec)
                worker = self._seat(record, phone)
        except BaseException:
            phone.close()
            raise
        if self._watching.is_alive():
            worker.start()
        self.hub.publish("device", serial=found.serial, state="added", reason="")
        return found.serial

    def remove(self, serial: str) -> None:
        """Forget a device; a batch in progress goes back to the queue. Raises: BadInput."""
        worker = self.worker(serial)
        with self.store.transaction():
            self.store.run("DELETE FROM devices WHERE serial=?", serial)
            self.store.run("INSERT OR REPLACE INTO ignored (spec) VALUES (?)", worker.record.spec)
            self.dispatch.unseat(serial)
            del self.workers[serial]
        worker.stop()
        self.hub.publish("device", serial=serial, state="removed", reason="")

    def worker(self, serial: str) -> Worker:
        """Return the worker of a device. Raises: BadInput."""
        found = self.workers.get(serial)
        if found is None:
            known = sorted(self.workers)
            why = "Known: " + ", ".join(known[:20]) + "." if known else "The rack has none."
            raise BadInput(f"device '{serial[:80]}' is not in the rack{nearest(serial, known)}", "", why)
        return found

    def open(self, record: Record) -> Phone:
        """Raises: DeviceError, BadInput."""
        return self.settings.open_phone(record.spec, record.secret, record.may_reboot)

    # What the workers keep.

    def keep_description(self, serial: str, found: Description) -> None:
        """A device has a new system or reports other cores."""
        self.store.run("UPDATE devices SET description=? WHERE serial=?", json.dumps(asdict(found)), serial)

    def keep_quarantine(self, serial: str, reason: str, by: str, faults: int) -> None:
        """A quarantine outlives the broker."""
        sql = "UPDATE devices SET quarantine=?, quarantine_by=?, faults=? WHERE serial=?"
        self.store.run(sql, reason, by, faults, serial)

    def keep_baselines(self, serial: str, baselines: str) -> None:
        """The reference kernel's times (us) at full speed, by target, as JSON."""
        self.store.run("UPDATE devices SET baselines=? WHERE serial=? AND baselines<>?", baselines, serial, baselines)

    def baseline(self, serial: str, target: str) -> float | None:
        """Return the reference kernel's time (us) at a device's full speed, when it is known."""
        row = self.store.row("SELECT baselines FROM devices WHERE serial=?", serial)
        found = json.loads(row["baselines"]).get(target) if row else None
        return float(found) if found else None

    def reference(self, target: str) -> ReferenceJob:
        """Return the reference kernel for a target; compiled once. Raises: XnnccError."""
        with self._compiling:
            if target not in self._references:
                assert self.settings.reference_of is not None
                self._references[target] = self.settings.reference_of(target)
            return self._references[target]

    # The thread that watches.

    def _watch(self) -> None:
        watcher = Watcher()
        looked = float("-inf")
        while not self._stop.wait(0.25):
            for lease in self.dispatch.expire():
                self.audit.note(
                    "broker", f"end lease {lease.id} of {lease.owner} on {lease.device or 'no device'}", "time is up"
                )
            if self.settings.finds_adb and self.clock() - looked >= self.settings.watch_s:
                changes = watcher.poll()
                if watcher.problem != self.problem:
                    self.problem = watcher.problem
                    self.hub.publish("problem", words=self.problem)
                for change in changes:
                    if not self._note_change(change):
                        watcher.look_again(change.found.spec, _RETRY_SECONDS)
                looked = self.clock()

    def _note_change(self, change: Change) -> bool:
        """Take in what discovery saw: a phone that is new, back, unusable or gone. False: try this again later."""
        found = change.found
        known = next((w for w in self.workers.values() if w.record.spec == found.spec), None)
        if change.kind == "gone" or not found.is_usable:
            if known is not None:
                known.is_gone(f"{found.reason} {found.next}".strip() or "adb does not see it any more")
        elif known is not None:
            known.look_soon()
        elif not self.store.rows("SELECT 1 FROM ignored WHERE spec=?", found.spec):
            try:
                serial = self.add(found.spec)
            except XnnccError as error:
                _log.warning("%s was found and cannot be used: %s", found.spec, error)
                self.hub.publish("problem", words=str(error))
                return False
            self.audit.note("broker", f"add {found.spec}", f"found: {serial}")
        return True

    def _check_new(self, record: Record) -> None:
        """Raises: BadInput."""
        known = self.workers.get(record.serial)
        if known is not None:
            why = f"it is in the rack already, as '{known.record.spec}'"
            raise BadInput(f"device '{record.serial}'", why, f"Remove that first: xnncc rack remove {record.serial}.")
        if len(self.workers) >= MOST_DEVICES:
            raise BadInput("rack", f"it has {MOST_DEVICES} devices", "Start a second broker.")
        if record.name and any(record.name in (w.record.name, w.record.serial) for w in self.workers.values()):
            raise BadInput(f"device name '{record.name}'", "another device has it", "Take another name.")

    def _seat(self, record: Record, phone: Phone | None) -> Worker:
        worker = Worker(self, record, phone)
        self.workers[record.serial] = worker
        self.dispatch.seat(worker.seat)
        return worker


def _record(row: sqlite3.Row) -> Record:
    facts = json.loads(row["description"])
    facts["core_khz"] = tuple(facts["core_khz"])
    return Record(
        row["serial"], row["spec"], row["name"], bytes(row["secret"]), bool(row["may_reboot"]), bool(row["is_steady"]),
        Description(**facts), row["quarantine"], row["quarantine_by"], row["faults"],
    )  # fmt: skip
