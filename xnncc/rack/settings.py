"""How a broker behaves: everything that can be set, with its unit and default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from xnncc.rack.cooling import CoolingLimits
from xnncc.rack.ladder import RUNGS
from xnncc.rack.phone import Phone
from xnncc.rack.preflight import LimitTable
from xnncc.rack.steady import ReferenceJob, reference_job

Opener = Callable[[str, bytes, bool], Phone]


def open_phone(spec: str, token: bytes, may_reboot: bool) -> Phone:
    """Open a real device, the way that ``Settings.open_phone`` does by default."""
    from xnncc.rack.open_phone import open_phone as open_real

    return open_real(spec, token, may_reboot)


def reference_for(target: str) -> ReferenceJob:
    """Return the reference kernel for a target. Raises: XnnccError."""
    from xnncc.target import load_target

    return reference_job(load_target(target))


@dataclass(frozen=True)
class Settings:
    """``open_phone(spec, token, may_reboot)`` opens a device and asks nothing of it yet; see broker.py."""

    state: Path
    open_phone: Opener = open_phone
    reference_of: Callable[[str], ReferenceJob] | None = reference_for  # None: times are taken as they come
    finds_adb: bool = True
    faults_until_quarantine: int = 3  # infrastructure faults in a row
    attempts: int = 3  # of a batch, before the devices' faults are taken for its own
    probe_s: float = 30.0  # between looks at a device that is away or quarantined; doubles up to ``most_probe_s``
    most_probe_s: float = 900.0
    status_s: float = 20.0  # between looks at an idle device
    watch_s: float = 3.0  # between looks for new devices
    rungs: tuple[str, ...] = RUNGS
    limits: LimitTable = field(default_factory=LimitTable)
    cooling: CoolingLimits = field(default_factory=CoolingLimits)
    webhook: tuple[str, ...] = ()  # command that tells someone: gets serial, state and reason
    blob_bytes: int = 4 << 30
    keep_batches: int = 20_000
