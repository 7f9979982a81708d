"""Phones that compute on this machine and whose clock says what the test wants, so that winners are known.

KnownPhone("p1")       kernels really run here, in a child process of HostBench: crashes and wrong numbers are real
KnownTimes(phone)      any other phone with the same clock
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from xnncc.device.bench import Dump, Fault, Library, Measurement
from xnncc.device.bench_local import HostBench
from xnncc.errors import DeviceError
from xnncc.rack.phone import Batch, Description, JobFailed, Phone, Status
from xnncc.target import load_target

KEY = "known1-x86-64"
_ANALYTIC_NS, _OTHER_NS = 2000, 1000


def known_ns(batch: Batch, candidate: int) -> int:
    """Return what a candidate takes: twice as long for the first of its group, which is the analytic choice."""
    places = [group.candidates.index(candidate) for group in batch.groups if candidate in group.candidates]
    return _OTHER_NS + places[0] if places and places[0] else _ANALYTIC_NS


class KnownPhone(Phone):
    """``is_there`` and ``before`` break it: ``before(result)`` is called with each result and may raise."""

    def __init__(self, serial: str) -> None:
        self.serial = serial
        self.is_there = True
        self.measured = 0
        self.before: Callable[[Measurement | Fault], None] = lambda result: None

    def describe(self) -> Description:
        """See Phone."""
        self.need()
        return Description(self.serial, "known1", "x86-64", "Known 1")

    def status(self) -> Status:
        """See Phone."""
        self.need()
        return Status(celsius=30.0, battery_percent=100.0)

    def measure(self, batch: Batch, blobs: Mapping[str, Path]) -> Iterator[Measurement | Fault]:
        """See Phone."""
        self.need()
        bench = HostBench(load_target(batch.target))
        bench.run_seconds = 1.0
        files = {name: blobs[sha] for name, sha in batch.files.items()}
        library = Library(files["library"], files["package"], str(batch.arguments["graph_symbol"]))
        dump = Dump() if batch.arguments.get("dumps") else None
        for result in bench.measure(library, batch.groups, min(batch.rounds, 1), batch.threads, dump):
            self.before(result)
            self.need()
            self.measured += 1
            yield _timed(batch, result)
        self.facts, self.outputs = {"before": {}, "after": {}}, dump.data if dump else b""

    def run(self, batch: Batch, blobs: Mapping[str, Path], output: Path) -> dict[str, object]:
        """See Phone."""
        raise JobFailed("a whole network", "a known phone runs none")

    def recover(self, rung: str) -> bool:
        """See Phone."""
        return False

    def close(self) -> None:
        """See Phone."""

    def need(self) -> None:
        """Raises: DeviceError when it is not there."""
        if not self.is_there:
            raise DeviceError(f"device 'known:{self.serial}'", "it does not answer")


class KnownTimes(Phone):
    """``phone`` with the clock of a KnownPhone."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone

    def measure(self, batch: Batch, blobs: Mapping[str, Path]) -> Iterator[Measurement | Fault]:
        """See Phone."""
        for result in self.phone.measure(replace(batch, rounds=min(batch.rounds, 1)), blobs):
            yield _timed(batch, result)
        self.facts, self.outputs = self.phone.facts, self.phone.outputs

    def describe(self) -> Description:
        """See Phone; ``phone``'s own."""
        return self.phone.describe()

    def status(self) -> Status:
        """See Phone; ``phone``'s own."""
        return self.phone.status()

    def run(self, batch: Batch, blobs: Mapping[str, Path], output: Path) -> dict[str, object]:
        """See Phone; ``phone``'s own."""
        return self.phone.run(batch, blobs, output)

    def recover(self, rung: str) -> bool:
        """See Phone; ``phone``'s own."""
        return self.phone.recover(rung)

    def close(self) -> None:
        """See Phone; ``phone``'s own."""
        self.phone.close()


def _timed(batch: Batch, result: Measurement | Fault) -> Measurement | Fault:
    if isinstance(result, Fault):
        return result
    return replace(result, ns=(known_ns(batch, result.candidate),) * 3)
