"""What the broker asks of a device it owns, however it is reached: adb, tcp, or simulated in a test.

    phone.measure(batch, blobs) -> Measurement | Fault, one by one

An infrastructure fault raises DeviceError and says nothing of any kernel; a kernel's own fault is a ``Fault``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from xnncc.device.bench import Fault, Group, Measurement
from xnncc.errors import DeviceError


@dataclass(frozen=True)
class Description:
    """What a device is: it does not change while it is attached."""

    serial: str
    soc: str  # "sm8550"
    abi: str  # "arm64-v8a"; the target's ABI that it runs
    system: str  # OS and build
    core_khz: tuple[int, ...] = ()  # top speed of each core

    @property
    def key(self) -> str:
        """What equal devices share, and jobs ask for: ``soc-abi``."""
        return f"{self.soc}-{self.abi}"


@dataclass(frozen=True)
class Status:
    """What a device says of itself now; what it cannot tell is None."""

    celsius: float | None = None
    battery_percent: float | None = None
    battery_celsius: float | None = None
    governor: str | None = None
    core_khz: tuple[int, ...] = ()
    load: float | None = None  # runnable threads
    screen_on: bool | None = None
    throttled: bool | None = None


@dataclass(frozen=True)
class Batch:
    """Work that stays on one device: candidates of one library, or whole inferences of one artefact.

    ``kind``: "measure" (groups, rounds), "run", "time" or "trace" (a whole network). ``files`` maps the names that the
    job knows to the SHA-256 of their bytes: "library" and "package"; for a network "inputs", to trace it "regions".
    ``arguments``: "graph_symbol" (str); to measure "dumps" (bool: keep what each group's first candidate writes) and
    "run_seconds" (processor time of one run that is taken for a hang, by default 5); of a network "words", those of
    runtime/tools/runner.c from SIZES on without files ([SIZES], or [SIZES, REPEAT, PER_OP]).
    """

    kind: str
    target: str
    files: Mapping[str, str]
    groups: tuple[Group, ...] = ()
    rounds: int = 0
    threads: int = 1
    core_mask: int = 0  # 0: the device chooses
    arguments: Mapping[str, object] = field(default_factory=dict)


class JobFailed(DeviceError):
    """The job itself is at fault: a broken network, a batch that no device takes. It says nothing of the device."""


class Phone(ABC):
    """One device. Its methods block; the broker calls them from one thread a device.

    After a batch, ``facts`` holds what the device said of itself "before" and "after" it (fields of Status, as JSON),
    and after one that ``dumps`` ``outputs`` what the first candidate of each group wrote, in the order of the groups.
    """

    facts: Mapping[str, object] = {}
    outputs: bytes = b""

    @abstractmethod
    def describe(self) -> Description:
        """Raises: DeviceError when it is not there."""

    @abstractmethod
    def status(self) -> Status:
        """Raises: DeviceError when it is not there."""

    @abstractmethod
    def measure(self, batch: Batch, blobs: Mapping[str, Path]) -> Iterator[Measurement | Fault]:
        """Yield what each candidate did as soon as it is known. ``blobs``: SHA-256 -> file.

        Raises: DeviceError for an infrastructure fault; JobFailed for a batch that no device takes.
        """

    @abstractmethod
    def run(self, batch: Batch, blobs: Mapping[str, Path], output: Path) -> dict[str, object]:
        """Do a "run", "time" or "trace" batch; return its facts (JSON): "text", what runner.c said.

        What it wrote (outputs, or regions of a trace) becomes "out.bin" in folder ``output``.

        Raises: DeviceError for an infrastructure fault; JobFailed for the network's own.
        """

    @abstractmethod
    def recover(self, rung: str) -> bool:
        """Try one rung of the ladder: "restart-agent", "reconnect" or "reboot". False: this device has no such rung."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it; leaves nothing running on it."""
