"""Which phones are there: everything that adb sees, and the agents that someone named; and what changed since.

    Watcher(agents).poll() -> [Change("appeared", Found("adb:R5CT10", ...)), ...]

A phone is known by its spec, ``adb:SERIAL`` or ``tcp:HOST:PORT``, as long as it is plugged in there; who it is, its
``Description`` says, which is the same over another cable or another port.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from xnncc.device.adb_client import STATES, Attached, attached
from xnncc.errors import BadInput, DeviceError

_CONNECT_SECONDS = 2.0


@dataclass(frozen=True)
class Found:
    """A device that is there. ``reason`` says why it cannot be used and ``next`` what to do; both "" when it can."""

    spec: str
    reason: str = ""
    next: str = ""
    facts: dict[str, str] = field(default_factory=dict, compare=False)  # what adb says of it: model, usb, ...

    @property
    def is_usable(self) -> bool:
        """Whether the broker may open it."""
        return not self.reason


@dataclass(frozen=True)
class Change:
    """``kind``: "appeared", "changed" (its reason is another one) or "gone"."""

    kind: str
    found: Found


def split_spec(spec: str) -> tuple[str, str, int]:
    """Return ("adb", serial, 0) or ("tcp", host, port). Raises: BadInput."""
    kind, _, rest = spec.partition(":")
    if kind == "adb" and rest and all(letter.isprintable() and letter not in " '\"\\" for letter in rest):
        return "adb", rest, 0
    host, colon, port = rest.rpartition(":")
    if kind == "tcp" and host and colon and port.isascii() and port.isdecimal() and 0 < int(port) < 65536:
        return "tcp", host.removeprefix("[").removesuffix("]"), int(port)
    raise BadInput(f"device '{spec}'", "it names no phone", "Write adb:SERIAL or tcp:HOST:PORT.")


def found_phones() -> list[Found]:
    """Return every phone that adb sees, sorted. Raises: DeviceError when adb is missing or does not answer."""
    return sorted((_of_adb(phone) for phone in attached()), key=lambda found: found.spec)


def found_agents(specs: Iterable[str]) -> list[Found]:
    """Return the agents of ``specs``, each with the reason when nothing answers there. Raises: BadInput."""
    return [_of_tcp(spec) for spec in specs]


def _of_adb(phone: Attached) -> Found:
    spec = f"adb:{phone.serial}"
    if phone.state == "device":
        return Found(spec, facts=phone.facts)
    why, next_step = STATES.get(phone.state, (f"adb calls it '{phone.state[:40]}'", "See 'adb devices -l'."))
    return Found(spec, why, next_step, phone.facts)


def _of_tcp(spec: str) -> Found:
    _, host, port = split_spec(spec)
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        why = f"nothing answers at {host}:{port} ({error.strerror or error})"
        return Found(spec, why, "Start xnncc-agent there, or see whether the network leads there.")
    return Found(spec)


class Watcher:
    """Looks for phones again and again, and tells what changed. ``problem``: why adb could not be asked, or ""."""

    def __init__(self, agents: Sequence[str] = (), phones: Callable[[], list[Found]] = found_phones) -> None:
        self.agents = list(agents)
        self.problem = ""
        self._phones = phones
        self._last: dict[str, Found] = {}
        self._again: dict[str, float] = {}

    def poll(self, held: Collection[str] = ()) -> list[Change]:
        """Return what changed since the last call. While adb cannot be asked, its phones stay as they were.

        Agents of ``held`` are known to be there and are left in peace: knocking would disturb what they measure.
        """
        try:
            now, self.problem = self._phones(), ""
        except DeviceError as error:
            now, self.problem = [found for spec, found in self._last.items() if spec.startswith("adb:")], str(error)
        knocked = found_agents(spec for spec in self.agents if spec not in held)
        return self._compare([*now, *knocked, *(Found(spec) for spec in self.agents if spec in held)])

    def look_again(self, spec: str, seconds: float) -> None:
        """Let a device that could not be taken in appear anew after so long, if it is still there."""
        self._again[spec] = time.monotonic() + seconds

    def _compare(self, now: list[Found]) -> list[Change]:
        for spec in [spec for spec, at in self._again.items() if time.monotonic() >= at]:
            del self._again[spec]
            self._last.pop(spec, None)
        before, self._last = self._last, {found.spec: found for found in now}
        changes = []
        for spec, found in self._last.items():
            if spec not in before:
                changes.append(Change("appeared", found))
            elif before[spec] != found:
                changes.append(Change("changed", found))
        return [*changes, *(Change("gone", found) for spec, found in before.items() if spec not in self._last)]
