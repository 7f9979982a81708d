"""What a device has said of itself, for its curves: a ring of the last readings, whose memory is taken at once."""

from __future__ import annotations

import math
import threading
from array import array
from typing import Any

from xnncc.rack.phone import Status

LENGTH = 720  # readings: an hour of a busy device, four of an idle one
_CLOSE_S, _CLOSE_KELVIN = 5.0, 1.0  # a reading so close to the last one takes its place
_FIELDS = ("at", "celsius", "battery_percent", "battery_celsius", "khz", "load", "throttled")


class History:
    """The readings of one device; any thread may add and read."""

    def __init__(self) -> None:
        self._ring = array("d", bytes(8 * len(_FIELDS) * LENGTH))  # NaN: the device does not tell
        self._count = 0
        self._lock = threading.Lock()

    def add(self, at: float, status: Status) -> None:
        """Append a reading; ``at`` is wall time, for people."""
        throttled = None if status.throttled is None else float(status.throttled)
        khz = max(status.core_khz, default=None)
        told = (status.celsius, status.battery_percent, status.battery_celsius, khz, status.load, throttled)
        row = array("d", [at, *(math.nan if one is None else one for one in told)])
        with self._lock:
            if self._count and self._is_close(row):
                self._count -= 1
            start = self._count % LENGTH * len(_FIELDS)
            self._ring[start : start + len(_FIELDS)] = row
            self._count += 1

    def newest(self) -> dict[str, Any] | None:
        """Return the last reading."""
        with self._lock:
            return _document(self._row(self._count - 1)) if self._count else None

    def document(self, after: float = 0.0) -> list[dict[str, Any]]:
        """Return the readings later than ``after``: time, celsius, battery and the clock of the fastest core."""
        with self._lock:
            rows = [self._row(n) for n in range(max(self._count - LENGTH, 0), self._count)]
        return [_document(row) for row in rows if row[0] > after]

    def _row(self, number: int) -> array[float]:
        start = number % LENGTH * len(_FIELDS)
        return self._ring[start : start + len(_FIELDS)]

    def _is_close(self, row: array[float]) -> bool:
        last = self._row(self._count - 1)
        before = self._row(self._count - 2)[0] if self._count > 1 else -math.inf
        return 0 <= row[0] - before < _CLOSE_S and not abs(row[1] - last[1]) >= _CLOSE_KELVIN


def _document(row: array[float]) -> dict[str, Any]:
    told: dict[str, Any] = {name: None if math.isnan(one) else one for name, one in zip(_FIELDS, row, strict=True)}
    khz, throttled = told["khz"], told["throttled"]
    return {
        **told, "khz": None if khz is None else int(khz), "throttled": None if throttled is None else bool(throttled),
    }  # fmt: skip
