"""Folders of records: written whole or not at all, one line a kernel, sorted, so that a difference can be read."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import BadRecords, OutputError
from ..schedule.records import LARGEST_BYTES, Record, parse_record, read_folder

ALGORITHMS_FILE = "conv2d_algorithms.jsonl"
ABOUT_FILE = "about.toml"


def add_records(folder: Path, records: Iterable[Record], about: dict[str, Any]) -> None:
    """Put ``records`` into ``folder``, each in place of an older one of its kernel and machine, and write about.toml.

    Raises: OutputError.
    """
    table = {(r.kernel, r.machine): r for r in (read_folder(folder, []) if folder.is_dir() else [])}
    table |= {(r.kernel, r.machine): r for r in records}
    _write(folder, table.values(), about)


def repair_folder(folder: Path) -> list[str]:
    """Drop a last line that a full disk or a crash has cut from each file of records; return a sentence for each.

    Raises: OutputError.
    """
    notes = []
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else []:
        if path.stat().st_size > LARGEST_BYTES:
            continue
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) == len(data) or parse_record(data[len(whole) :]) is not None:
            continue
        notes.append(f"records '{path}': the last line was cut off; {len(data) - len(whole)} bytes of it dropped")
        try:
            _replace(path, whole.decode("utf-8", "replace"))
        except OSError as error:
            why = str(error.strerror or error).lower()
            raise OutputError(f"'{path}'", why, "Choose another folder with -o.") from error
    return notes


def merge_folders(sources: Sequence[Path], folder: Path) -> tuple[int, int, list[str]]:
    """Write the records of all ``sources`` to ``folder``, of one kernel on one machine the one that gained most.

    Returns how many were read, how many were kept, and a line for each kind of line that was not understood.
    Raises: BadRecords, OutputError.
    """
    notes: list[str] = []
    found = [record for source in sources for record in read_folder(source, notes)]
    if not found:
        names = ", ".join(f"'{s}'" for s in sources)
        raise BadRecords(f"merging {names}", "there is no record in any of them", "Make some with `xnncc tune`.")
    table: dict[tuple[str, str], Record] = {}
    for record in found:
        before = table.get((record.kernel, record.machine))
        if before is None or (record.gain, record.date) > (before.gain, before.date):
            table[record.kernel, record.machine] = record
    _write(folder, table.values(), {"merged_from": len(sources)})
    return len(found), len(table), notes


def _write(folder: Path, records: Iterable[Record], about: dict[str, Any]) -> None:
    files: dict[str, list[Record]] = {}
    for record in records:
        rule = record.kernel.partition(".")[0]
        name = ALGORITHMS_FILE if isinstance(record.choice, str) else f"{rule}.jsonl"
        files.setdefault(name, []).append(record)
    every = [record for some in files.values() for record in some]
    facts = {
        **about, "records": len(every), "devices": sorted({r.device for r in every}),
        "machines": sorted({r.machine for r in every}), "newest": max((r.date for r in every), default=""),
    }  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, some in files.items():
            lines = [record.line() for record in sorted(some, key=lambda r: (r.kernel, r.machine))]
            _replace(folder / name, "".join(line + "\n" for line in lines))
        _replace(folder / ABOUT_FILE, "".join(f"{key} = {_toml(value)}\n" for key, value in sorted(facts.items())))
    except OSError as error:
        why = str(error.strerror or error).lower()
        raise OutputError(f"'{folder}'", why, "Choose another folder with -o.") from error


def _replace(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, str):
        return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in value) + '"'
    return str(value)


def today() -> str:
    """Return the day of a record."""
    return datetime.date.today().isoformat()
