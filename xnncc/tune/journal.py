"""The journal of a tuning run: one JSON line a measurement, written at once, so that nothing measured is ever lost.

A line that was cut by a crash or a full disk is cut off when the journal is opened again, with a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import OutputError

LOST = "lost"  # the fault of a candidate that no device measured, by no doing of its own: it is never written down


@dataclass(frozen=True)
class Entry:
    """What one candidate did. ``ratio`` is its time over that of the analytic choice in the same run; a ``fault``
    (crash, hang, wrong, refused) has no times."""

    kernel: str
    config: dict[str, Any]
    machine: str
    device: str
    threads: int
    us: float = 0.0
    median_us: float = 0.0
    mad_us: float = 0.0
    ratio: float = 0.0
    fault: str = ""
    words: str = ""


class Journal:
    """An append-only file of entries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warning = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes() if path.exists() else b""
            whole, self.entries = _readable(data)
            if len(whole) < len(data):
                lost = len(data) - len(whole)
                self.warning = f"'{path}': the last line was cut off; {lost} bytes of it dropped"
                path.write_bytes(whole)
            self.file = path.open("a", encoding="utf-8")
        except OSError as error:
            why = str(error.strerror or error).lower()
            raise OutputError(f"'{path}'", why, "Choose another folder with -o.") from error

    def add(self, entry: Entry) -> None:
        """Append ``entry`` and hand it to the system at once; one that was lost is left to another run."""
        if entry.fault == LOST:
            return
        self.file.write(json.dumps(asdict(entry), sort_keys=True) + "\n")
        self.file.flush()
        self.entries.append(entry)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


def _readable(data: bytes) -> tuple[bytes, list[Entry]]:
    """Return ``data`` up to its last whole line, and the entries in it; lines that are no entries are passed over."""
    entries = []
    whole = data[: data.rfind(b"\n") + 1]
    for line in whole.splitlines():
        try:
            entries.append(Entry(**json.loads(line)))
        except (ValueError, TypeError, RecursionError):
            continue
    return whole, entries
