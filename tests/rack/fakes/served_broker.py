"""A broker with simulated phones, served on loopback in a thread of the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xnncc.device.bench import Group
from xnncc.device.rack_client import RackClient
from xnncc.device.rack_wire import batch_document
from xnncc.rack.broker import Broker
from xnncc.rack.phone import Phone
from xnncc.rack.server import listen, running
from xnncc.rack.settings import Settings
from xnncc.rack.simulated import SimulatedPhone

KEY = "sim9000-arm64-v8a"
JOB = {"name": "tune", "key": KEY, "priority": 0, "weight": 1.0, "max_seconds": None, "max_devices": None}
QUICK = {"probe_s": 0.05, "most_probe_s": 0.2, "status_s": 0.1}


@dataclass
class Phones:
    """Opens simulated phones and remembers them by name: a phone that is opened again is the same one."""

    seconds: float = 0.005
    all: dict[str, SimulatedPhone] = field(default_factory=dict)

    def __call__(self, spec: str, token: bytes, may_reboot: bool) -> Phone:
        name = spec.removeprefix("sim:")
        return self.all.setdefault(name, SimulatedPhone(name, self.seconds))

    def __getitem__(self, name: str) -> SimulatedPhone:
        return self.all[name]


@dataclass
class Served:
    """The broker, its phones, its address, and clients of each role."""

    broker: Broker
    phones: Phones
    url: str
    tokens: dict[str, str]
    admin: RackClient

    def client(self, role: str, patience_s: float = 5.0) -> RackClient:
        """Return a client of a role."""
        return RackClient(self.url, self.tokens[role], patience_s)

    def document(self, groups: int = 2, candidates: int = 3, **more: Any) -> dict[str, Any]:
        """Return a batch; its library is at the broker."""
        sha = self.broker.blobs.put(b"a library")
        found = [Group(tuple(range(n * candidates, (n + 1) * candidates)), 4, 0, 4) for n in range(groups)]
        return {**batch_document("measure", "android-arm64", {"library": sha}, found, 5), **more}

    def device(self, serial: str) -> dict[str, Any]:
        """Return what the broker says of a device."""
        return next(d for d in self.admin.devices() if d["serial"] == serial)


@contextmanager
def served(state: Path, phones: int = 2, seconds: float = 0.005, **settings: Any) -> Iterator[Served]:
    """Give a broker that is served."""
    opener = Phones(seconds)
    plain = {"open_phone": opener, "reference_of": None, "finds_adb": False, **QUICK, **settings}
    broker = Broker(Settings(state, **plain))
    tokens = {role: broker.tokens.create(role, role) for role in ("view", "run", "admin")}
    for number in range(phones):
        broker.add(f"sim:phone-{number + 1}")
    with running(broker, listen("127.0.0.1", 0)) as url, RackClient(url, tokens["admin"], 5.0) as admin:
        yield Served(broker, opener, url, tokens, admin)


def until(claim: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait until ``claim()`` is true; fail when it is not within ``seconds``."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.01)
