"""Tuned records: which configuration of a rule's space, or which algorithm of a convolution, was fastest on a device.

    schedules/<target>/<rule>.jsonl      a line each: {"kernel": "...", "config": {...}, "us": 41.2, ...}
    schedules/<target>/conv2d_algorithms.jsonl        {"convolution": "...", "algorithm": "winograd2", ...}
    schedules/<target>/about.toml        who measured, when, with which versions

A record is a hint and never trusted: its machine must be the target's, its kernel the same in every number, and its
configuration one of the rule's space; what does not fit is left out and counted in one line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from ..errors import BadRecords
from ..target import Target, targets_folder

LARGEST_BYTES = 1 << 26  # of one file of records


@dataclass(frozen=True)
class Record:
    """One choice. ``kernel`` as ``kernel_key`` has it, or a convolution; times in microseconds on ``device``."""

    kernel: str
    choice: Mapping[str, Any] | str  # a configuration's fields, or an algorithm's name
    us: float
    analytic_us: float
    date: str
    device: str
    machine: str
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)  # mad_us, trials, threads: for people

    @property
    def gain(self) -> float:
        """Times faster than the analytic choice in the same run."""
        return self.analytic_us / self.us

    @property
    def words(self) -> str:
        """What the report says of it."""
        return f"record ({self.date}, {self.device})"

    def line(self) -> str:
        """Return the record as its line of a file."""
        kind, what = ("convolution", "algorithm") if isinstance(self.choice, str) else ("kernel", "config")
        choice = self.choice if isinstance(self.choice, str) else dict(self.choice)
        fields = {
            kind: self.kernel, what: choice, "us": self.us, "analytic_us": self.analytic_us, "date": self.date,
            "device": self.device, "machine": self.machine, **self.extra,
        }  # fmt: skip
        return json.dumps(fields, sort_keys=True)


@dataclass(frozen=True)
class Records:
    """The records that fit one machine, and a line for each kind that was left out."""

    kernels: Mapping[str, Record] = field(default_factory=dict)
    convolutions: Mapping[str, Record] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def algorithms(self) -> dict[str, str]:
        """Convolution -> algorithm."""
        return {key: str(record.choice) for key, record in self.convolutions.items()}


def config_fields(config: Any) -> dict[str, Any]:
    """Return a configuration as plain data; {} for a rule without any."""
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else {}


def find_config(record: Record, space: Sequence[Any]) -> Any:
    """Return the configuration of ``space`` that ``record`` names, or None when there is none."""
    return next((config for config in space if config is not None and config_fields(config) == record.choice), None)


def shipped_folders(target: Target) -> list[Path]:
    """Return the folders of shipped records for ``target`` that exist; ``host`` also has those of its base."""
    root = targets_folder().parent / "schedules"
    base = {"x86_64": "linux-x86-64", "aarch64": "linux-arm64"}
    names = [target.name, *([base[target.arch]] if target.name == "host" and target.arch in base else [])]
    return [root / name for name in names if (root / name).is_dir()]


def read_records(folders: Sequence[Path], target: Target) -> Records:
    """Return the records in ``folders`` that were measured on the machine of ``target``; the first of two wins.

    Raises: BadRecords for a folder that is not there.
    """
    kernels: dict[str, Record] = {}
    convolutions: dict[str, Record] = {}
    notes: list[str] = []
    for folder in folders:
        foreign: Counter[str] = Counter()
        for record in read_folder(folder, notes):
            if record.machine != target.fingerprint:
                foreign[record.machine] += 1
                continue
            table = convolutions if isinstance(record.choice, str) else kernels
            table.setdefault(record.kernel, record)
        for machine, count in sorted(foreign.items()):
            notes.append(f"records '{folder}': {count} of another machine ({machine}) ignored")
    return Records(kernels, convolutions, tuple(notes))


def read_folder(folder: Path, notes: list[str]) -> list[Record]:
    """Return every record of ``folder``, whatever its machine; a line for each file with broken ones goes to ``notes``.

    Raises: BadRecords.
    """
    if not folder.is_dir():
        raise BadRecords(f"records '{folder}'", "there is no such folder", "Make it with `xnncc tune -o`.")
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        if path.stat().st_size > LARGEST_BYTES:
            notes.append(f"records '{path}': larger than {LARGEST_BYTES >> 20} MiB, ignored")
            continue
        lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
        records = [parse_record(line) for line in lines]
        found += [record for record in records if record is not None]
        broken = records.count(None)
        if broken:
            notes.append(f"records '{path}': {broken} lines that are no records ignored")
    return found


def parse_record(line: bytes) -> Record | None:
    """Return the record of a line, or None when it is none."""
    try:
        data = json.loads(line)
        algorithm = "convolution" in data
        kernel, choice = (
            data.pop("convolution" if algorithm else "kernel"),
            data.pop("algorithm" if algorithm else "config"),
        )
        us, analytic_us = float(data.pop("us")), float(data.pop("analytic_us"))
        words = [data.pop(name) for name in ("date", "device", "machine")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    is_text = all(isinstance(word, str) for word in (kernel, *words))
    fits = isinstance(choice, str) if algorithm else isinstance(choice, dict)
    if not is_text or not fits or not 0 < us < 1e12 or not 0 < analytic_us < 1e12:
        return None
    date, device, machine = words
    return Record(kernel, choice, us, analytic_us, date, device, machine, data)
