"""The devices of a rack that a spec ``rack:KEY`` means, and when to give them up.

KEY is what equal devices share (``sm8550-arm64-v8a``), or one device's name or serial number. A job of higher priority
goes first, those of one priority share by weight: ``rack:KEY,priority=5,weight=2`` (by default 0 and 1).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xnncc.device.rack_client import RackClient
from xnncc.errors import BadInput, DeviceError, nearest
from xnncc.target import Target

GONE_S = 300.0  # without any usable device until the wait is given up: a phone has rebooted by then
PATIENCE_S = 120.0  # that a broker may be away, or the network cut
_USABLE = ("free", "busy", "cooling")
_LOOK_S = 5.0


@dataclass(frozen=True)
class Wish:
    """What a spec asks for. ``priority`` [-10, 10], ``weight`` [0.01, 100]."""

    key: str
    priority: int = 0
    weight: float = 1.0


def read_wish(text: str) -> Wish:
    """Return what stands behind ``rack:``. Raises: BadInput."""
    key, *settings = text.split(",")
    found: dict[str, float] = {"priority": 0, "weight": 1.0}
    for setting in settings:
        name, _, value = setting.partition("=")
        pattern = r"-?\d{1,2}" if name == "priority" else r"\d{1,3}(\.\d{1,3})?"
        if name not in found or re.fullmatch(pattern, value) is None:
            raise BadInput(f"device 'rack:{text}'", f"'{setting}' is no setting", "Write rack:KEY,priority=5,weight=2.")
        found[name] = float(value)
    if not key or not -10 <= found["priority"] <= 10 or not 0.01 <= found["weight"] <= 100:
        step = "Write rack:KEY,priority=5,weight=2: a priority from -10 to 10, a weight from 0.01 to 100."
        raise BadInput(f"device 'rack:{text}'", "" if key else "it names no key", step)
    return Wish(key, int(found["priority"]), found["weight"])


def find_devices(client: RackClient, key: str, target: Target | None) -> list[dict[str, Any]]:
    """Return the devices that ``key`` means, checked to run code for ``target`` where that is known.

    Raises: DeviceError.
    """
    known = client.devices()
    found = [d for d in known if key in (d["key"], d["name"], d["serial"])]
    if not found:
        keys = sorted({str(d["key"]) for d in known})
        step = "It has: " + ", ".join(keys) + "." if keys else "It has none: see `xnncc rack add`."
        raise DeviceError(f"device 'rack:{key}'", f"the rack has no device of that key{nearest(key, keys)}", step)
    abi = str(found[0]["abi"])
    if target is not None and target.abi != abi and not (abi == "x86-64" and target.abi.startswith("x86-64")):
        why = f"its devices run {abi} and not {target.abi}"
        raise DeviceError(f"device 'rack:{key}'", why, "Build for their ABI, or choose another key.")
    return found


class Presence:
    """Whether anyone is there to do what was asked. ``check`` may be called as often as one likes."""

    def __init__(
        self, client: RackClient, key: str, gone_s: float = GONE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.client, self.key, self.gone_s, self.clock = client, key, gone_s, clock
        self._looked = self._seen = clock()

    def check(self) -> None:
        """Raises: DeviceError when all devices of the key have been away or quarantined for ``gone_s``."""
        now = self.clock()
        if now - self._looked < min(_LOOK_S, self.gone_s / 2):
            return
        devices = [d for d in self.client.devices() if self.key in (d["key"], d["name"], d["serial"])]
        self._looked = now
        if any(d["state"] in _USABLE for d in devices):
            self._seen = now
        if now - self._seen > self.gone_s:
            raise DeviceError(f"device 'rack:{self.key}'", _why_gone(devices), "See `xnncc rack doctor` on its broker.")


def _why_gone(devices: Sequence[dict[str, Any]]) -> str:
    """Return who is in what state, in words."""
    states = [f"{d['name'] or d['serial']} is {d['state']} ({d['reason']})" for d in devices[:8]]
    return "none of its devices can be used: " + "; ".join(states) if states else "its devices were removed"
