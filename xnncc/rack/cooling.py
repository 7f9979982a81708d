"""Waiting until a device is cool, no longer than allowed, and only where waiting helps.

    cooled = wait_until_cool(phone.status, limits)            raises DeviceError at the deadline
    benefit = CoolingBenefit()                                one for each device
    if benefit.is_useful: ... wait ...; benefit.note(slowness_before, slowness_after)

A device that is too warm to start waits until it is ``hysteresis`` below the limit: one that started again just below
it would be above it a moment later. Some devices get no faster by waiting (a fan, a sensor that lies, clocks that
fall asleep), so each one has to show with the reference kernel that it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from xnncc.errors import DeviceError
from xnncc.rack.phone import Status
from xnncc.rack.preflight import Limits, warm


@dataclass(frozen=True)
class CoolingLimits:
    """How long, how often, how far. A device that cools less than ``stall`` in ``stall_s`` has come to its rest."""

    deadline_s: float = 600.0
    poll_s: float = 5.0
    hysteresis: float = 5.0  # kelvin
    stall: float = 0.3  # kelvin
    stall_s: float = 90.0


@dataclass(frozen=True)
class Cooled:
    """What waiting came to: seconds, the last status, and whether the device was too warm at all."""

    seconds: float
    status: Status
    had_to_wait: bool


def wait_until_cool(
    read: Callable[[], Status],
    limits: Limits,
    cooling: CoolingLimits | None = None,
    is_cool: Callable[[Status], bool] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Cooled:
    """Return once nothing speaks against a start that waiting takes away (preflight.warm).

    ``is_cool``: a further condition, for a device whose clocks say more than its sensor. ``clock`` and ``sleep`` are
    those of a simulation when there is one.
    Raises: DeviceError at the deadline, or when the device stops cooling above the limit; and what ``read`` raises.
    """
    how = cooling or CoolingLimits()
    start = clock()
    status = read()
    if not warm(status, limits) and (is_cool is None or is_cool(status)):
        return Cooled(0.0, status, False)
    lower = replace(
        limits,
        max_celsius=limits.max_celsius - how.hysteresis,
        max_battery_celsius=limits.max_battery_celsius - min(how.hysteresis, 2.0),  # it is slow and its range small
    )
    history = [(start, _warmest(status))]
    while True:
        found = warm(status, lower)
        if not found and (is_cool is None or is_cool(status)):
            return Cooled(clock() - start, status, True)
        now = clock()
        why = found[0] if found else "it is not at full speed yet"
        if now - start >= how.deadline_s:
            raise DeviceError("cooling", f"{why}, after {now - start:.0f} s", "Move it to a cooler place.")
        if _has_stalled(history, now, how):
            if not warm(status, limits) and (is_cool is None or is_cool(status)):
                return Cooled(now - start, status, True)  # below the limit, though not as far below as wanted
            raise DeviceError("cooling", f"{why}, and it cools no further", "Is something running on it?")
        sleep(min(how.poll_s, how.deadline_s - (now - start)))
        status = read()
        history.append((clock(), _warmest(status)))


def _warmest(status: Status) -> float | None:
    known = [celsius for celsius in (status.celsius, status.battery_celsius) if celsius is not None]
    return max(known) if known else None


def _has_stalled(history: list[tuple[float, float | None]], now: float, how: CoolingLimits) -> bool:
    """The warmest sensor has fallen by less than ``stall`` in ``stall_s``."""
    older = [celsius for at_s, celsius in history if now - at_s >= how.stall_s]
    newest = history[-1][1]
    return bool(older) and older[-1] is not None and newest is not None and older[-1] - newest < how.stall


class CoolingBenefit:
    """Does waiting make this device faster? Yes until it has failed to ``TRIALS`` times in a row; asked again later."""

    TRIALS = 3
    LEAST_GAIN = 0.01  # of the reference kernel's time
    AGAIN = 20  # pieces of work without waiting, after which it is tried once more

    def __init__(self) -> None:
        self.failures = self.skipped = 0

    @property
    def is_useful(self) -> bool:
        """Wait."""
        return self.failures < self.TRIALS or self.skipped >= self.AGAIN

    def note(self, before: float, after: float) -> None:
        """Take in how slow (drift.slowness) the device was before a wait and after it."""
        self.skipped = 0
        if after <= before * (1 - self.LEAST_GAIN):
            self.failures = 0
        else:
            self.failures = min(self.failures + 1, self.TRIALS)

    def skip(self) -> None:
        """Take in that it was not waited for."""
        self.skipped += 1
