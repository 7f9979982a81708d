"""Where candidate kernels are timed: many of them in one library, each a hint of what a device likes.

    open_bench(spec, target) -> Bench with measure(library, groups, rounds)

A failure is of one of two kinds. A *kernel fault* (it crashed, ran for ever, gave other numbers) is a ``Fault`` and
counts against that candidate; an *infrastructure fault* (the device is gone, the program does not start) raises
DeviceError and says nothing of any candidate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from xnncc.errors import DeviceError, nearest
from xnncc.target import Target

if TYPE_CHECKING:
    import numpy as np

FLUSH_BYTES = 4 << 20  # read between two runs
_KINDS = ["host", "emulator", "adb:SERIAL", "tcp:HOST:PORT", "tvm-rpc:HOST:PORT:KEY", "rack:KEY"]


@dataclass(frozen=True)
class Library:
    """An artefact whose operators are candidates: its library, its package and its graph function.

    ``objects`` is what the library was linked from, for devices that take only static executables.
    """

    library: Path
    package: Path
    graph_symbol: str
    objects: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Group:
    """Candidates (operator indices) that compute the same; the first one is what the others are compared with.

    The arena's first ``floats`` are filled; the output is ``out_bytes`` bytes at ``out_offset`` of the arena.
    """

    candidates: tuple[int, ...]
    floats: int
    out_offset: int
    out_bytes: int


@dataclass(frozen=True)
class Measurement:
    """One candidate's runs in ns, and its largest difference to the group's first, relative to that one's largest."""

    candidate: int
    ns: tuple[int, ...]
    error: float

    @property
    def us(self) -> float:
        """The fastest run in microseconds: on a busy machine everything else only adds."""
        return min(self.ns) / 1e3

    @property
    def median_us(self) -> float:
        """The run in the middle."""
        return median(self.ns) / 1e3

    @property
    def mad_us(self) -> float:
        """The median distance from the median."""
        return median(abs(ns / 1e3 - self.median_us) for ns in self.ns)


@dataclass(frozen=True)
class Fault:
    """A candidate that could not be measured, by its own doing: ``kind`` is "crash" or "hang"."""

    candidate: int
    kind: str
    words: str


@dataclass
class Dump:
    """What the first candidate of each group wrote, raw, in the order of the groups."""

    data: bytes = field(default=b"")


class Bench(ABC):
    """A device that times candidates."""

    name = ""
    times_count = True  # False: an emulator, whose times say nothing
    is_elsewhere = False  # True: work of this machine does not disturb its times
    warnings: Sequence[str] = ()  # what its user should hear at the end

    @abstractmethod
    def measure(
        self, library: Library, groups: Sequence[Group], rounds: int, threads: int = 1, dump: Dump | None = None
    ) -> Iterator[Measurement | Fault]:
        """Yield what each candidate did, as soon as its group is done; a fault costs that candidate alone.

        Raises: DeviceError for an infrastructure fault.
        """

    @property
    @abstractmethod
    def description(self) -> str:
        """What the records call this device: its processor."""

    def show(self, text: str, done: int, total: int, best_us: float, left_s: float) -> None:  # noqa: B027
        """Tell whoever looks at the device how far its user is: an inference takes ``best_us`` (0: unknown)."""

    def close(self) -> None:  # noqa: B027  (most have nothing to let go of)
        """Let go of the device; leaves nothing running on it. Never raises."""


def open_bench(spec: str | None, target: Target) -> Bench:
    """Return the bench that ``spec`` names, by default the one that proves ``target``.

    Raises: DeviceError.
    """
    kind = spec or target.device
    if kind.startswith("tcp:"):
        from xnncc.device.bench_agent import AgentBench

        return AgentBench(target, kind)
    if kind.startswith("tvm-rpc:"):
        from xnncc.device.tvm_rpc import TvmRpcBench

        return TvmRpcBench(target, kind)
    if kind.startswith("rack:"):
        from xnncc.device.bench_rack import RackBench

        return RackBench(target, kind.partition(":")[2])
    if kind == "adb" or kind.startswith("adb:"):
        from xnncc.device.bench_adb import AdbBench

        return AdbBench(target, kind.partition(":")[2])
    if kind not in _KINDS:
        what = f"unknown device '{kind}'{nearest(kind, _KINDS)}" if kind else f"target '{target.name}'"
        raise DeviceError(what, "" if kind else "nothing here runs it", "Known: " + ", ".join(_KINDS) + ".")
    from xnncc.device.bench_local import EmulatorBench, HostBench

    return HostBench(target) if kind == "host" else EmulatorBench(target)


def filled(count: int) -> np.ndarray:
    """Return the first ``count`` float32 of the arena as measure.c fills it: numbers in [-1, 1)."""
    import numpy as np

    x = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(1 / 8388608) - np.float32(1)
