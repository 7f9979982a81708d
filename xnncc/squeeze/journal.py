"""What a run has done so far, beside its output, so that it goes on after Ctrl-C where it was.

``OUT.xq.journal/about.json`` says what the run is of (model, recipe, data, seed); another run clears the folder. Each
finished piece of work is a file called by the hash of everything it depends on, so it is found again or not at all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..compress.result import LayerReport, MethodReport, Squeezed
from .file import from_bytes, to_bytes


class Journal:
    """A folder of finished pieces; without a folder nothing is kept."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        text = json.dumps(about, sort_keys=True, indent=1)
        known = folder / "about.json"
        if not known.is_file() or known.read_text(encoding="utf-8") != text:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            known.write_text(text, encoding="utf-8")

    def scratch(self, key: str) -> Path:
        """Return a folder for the checkpoints of one piece of work."""
        path = self.folder / f"{key}.work"
        path.mkdir(exist_ok=True)
        return path

    def state(self, key: str) -> Squeezed | None:
        """Return the network that was kept under ``key``."""
        data, report = self.folder / f"{key}.xq", self.folder / f"{key}.json"
        if not data.is_file() or not report.is_file():
            return None
        found = from_bytes(data.read_bytes(), str(data))
        return Squeezed(found.mod, found.coded, _report(json.loads(report.read_text(encoding="utf-8"))))

    def keep(self, key: str, state: Squeezed) -> Squeezed:
        """Keep ``state`` under ``key``, drop its scratch, and return it as it will be read again."""
        names = [f"out{index}" for index in range(len(state.mod["main"].ret_ty.fields))]
        data = to_bytes(state, names)
        _write(self.folder / f"{key}.xq", data)
        _write(self.folder / f"{key}.json", json.dumps(asdict(state.report), sort_keys=True).encode())
        shutil.rmtree(self.folder / f"{key}.work", ignore_errors=True)
        found = from_bytes(data, key)
        return Squeezed(found.mod, found.coded, state.report)

    def number(self, key: str) -> float | None:
        """Return the number that was kept under ``key``."""
        path = self.folder / f"{key}.txt"
        return float(path.read_text(encoding="utf-8")) if path.is_file() else None

    def keep_number(self, key: str, value: float) -> float:
        """Keep ``value`` under ``key`` and return it."""
        _write(self.folder / f"{key}.txt", repr(float(value)).encode())
        return value

    def close(self) -> None:
        """Remove the folder: the work is done."""
        shutil.rmtree(self.folder, ignore_errors=True)


def key_of(*parts: Any) -> str:
    """Return a name for a piece of work that depends on ``parts``, plain values."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]


def _write(path: Path, data: bytes) -> None:
    """Write all or nothing: the next run believes what it finds."""
    aside = path.with_suffix(".part")
    aside.write_bytes(data)
    aside.replace(path)


def _report(document: dict[str, Any]) -> MethodReport:
    lines = tuple(LayerReport(**line) for line in document.pop("layers"))
    return MethodReport(layers=lines, **document)
