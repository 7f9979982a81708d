"""Phones that are not there: to try the rack, its page and its load without hardware.

    open_simulated("sim:pixel-3", b"", False) -> SimulatedPhone        spec sim:NAME; `xnncc rack serve --simulate 4`

A simulated phone takes real time, warms up and cools down (thermal_model), and gives the same times for the same
candidate. Its times say nothing of any kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from xnncc.device.bench import Fault, Measurement
from xnncc.errors import BadInput, DeviceError
from xnncc.rack.names import plain_name
from xnncc.rack.phone import Batch, Description, JobFailed, Phone, Status
from xnncc.rack.thermal_model import Chip, ThermalModel

SOC, ABI = "sim9000", "arm64-v8a"
_BASE_US = 120.0


class SimulatedPhone(Phone):
    """``seconds``: what one candidate takes. ``is_there``, ``celsius`` and ``fails`` break it, for tests: ``fails`` is
    called before each candidate and may raise, or return a fault."""

    def __init__(self, serial: str, seconds: float = 0.01, clock: Callable[[], float] = time.monotonic) -> None:
        self.serial, self.seconds, self.clock = serial, seconds, clock
        self.is_there = True
        self.celsius: float | None = None
        self.battery_percent = 100.0
        self.fails: Callable[[Batch, int], Fault | None] = lambda batch, candidate: None
        self.rungs: dict[str, bool] = {}  # rung -> whether it helps; others it has not
        self.climbed: list[str] = []
        self._model = ThermalModel(Chip(watts=1.2), seed=sum(serial.encode()))
        self._idle_since = clock()

    def describe(self) -> Description:
        """See Phone."""
        self._need()
        return Description(self.serial, SOC, ABI, "Simulated 1", self._model.chip.khz[:1] * 2 + (1_800_000,) * 6)

    def status(self) -> Status:
        """See Phone."""
        self._need()
        self._pass_time()
        celsius = self._model.celsius if self.celsius is None else self.celsius
        khz = (self._model.khz,) * 2 + (1_800_000,) * 6
        return Status(celsius, self.battery_percent, 30.0, "schedutil", khz, 1.0, True, self._model.throttled)

    def measure(self, batch: Batch, blobs: Mapping[str, Path]) -> Iterator[Measurement | Fault]:
        """See Phone."""
        before = self._now()
        self.outputs = b""
        for group in batch.groups:
            for candidate in group.candidates:
                self._need()
                fault = self.fails(batch, candidate)
                if fault is not None:
                    yield fault
                    continue
                if self.seconds:
                    time.sleep(self.seconds)
                speed = _BASE_US * (1 + candidate % 13 / 10)
                ns = tuple(round(1000 * self._model.run(speed)) for _ in range(max(batch.rounds, 1)))
                yield Measurement(candidate, ns, 0.0)
            self.outputs += bytes(min(group.out_bytes, 1 << 20)) if batch.arguments.get("dumps") else b""
        self.facts = {"before": before, "after": self._now()}

    def run(self, batch: Batch, blobs: Mapping[str, Path], output: Path) -> dict[str, object]:
        """See Phone."""
        raise JobFailed("a whole network", "a simulated phone runs none", "Use a real device.")

    def recover(self, rung: str) -> bool:
        """See Phone."""
        self.climbed.append(rung)
        if rung not in self.rungs:
            return False
        if self.rungs[rung]:
            self.is_there = True
        return True

    def close(self) -> None:
        """See Phone."""

    def _now(self) -> dict[str, object]:
        return {"celsius": self.status().celsius, "core_khz": list(self.status().core_khz)}

    def _need(self) -> None:
        if not self.is_there:
            raise DeviceError(f"device 'sim:{self.serial}'", "it does not answer", "Simulate it anew.")

    def _pass_time(self) -> None:
        now = self.clock()
        self._model.wait(min(now - self._idle_since, 600.0))
        self._idle_since = now


def open_simulated(spec: str, token: bytes, may_reboot: bool) -> Phone:
    """Return the phone of ``sim:NAME``. Raises: BadInput."""
    kind, _, name = spec.partition(":")
    if kind != "sim" or not plain_name(name):
        raise BadInput(f"device '{spec}'", "it names no simulated phone", "Write sim:NAME.")
    return SimulatedPhone(plain_name(name))
