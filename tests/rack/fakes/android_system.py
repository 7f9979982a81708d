"""What a phone's shell finds, as a folder of this machine: Android's words as scripts, its files, its processes.

``/data/local/tmp``, ``/sys`` and ``/proc/uptime`` of a command stand for what lies below ``root``; a pushed Arm
program gets a script in its place that calls qemu-user on it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_MARK = "XNNCC_TEST_PHONE"  # in the environment of everything that runs on the phone
_SCRIPTS = {
    "getprop": 'if [ -f "$STATE/prop/$1" ]; then cat "$STATE/prop/$1"; else echo; fi',
    "dumpsys": 'cat "$STATE/dumpsys/$1" 2>/dev/null || { echo "Can\'t find service: $1" >&2; exit 0; }',
    "settings": (
        'f="$STATE/settings/$3"\ncase "$1" in\n'
        'get) if [ -f "$f" ]; then cat "$f"; else echo null; fi ;;\n'
        'put) echo "$4" > "$f" ;;\ndelete) rm -f "$f"; echo "Deleted 1 rows" ;;\nesac'
    ),
    "input": '[ "$2" != KEYCODE_WAKEUP ] || cp "$STATE/screen_on" "$STATE/dumpsys/power"',
}
_POWER = "POWER MANAGER (dumpsys power)\n\nPower Manager State:\n  mWakefulness={word}\nDisplay Power: state={state}\n"


class AndroidSystem:
    """One phone's insides. ``emulate`` stands before an Arm program to run it here."""

    def __init__(self, root: Path, emulate: Sequence[str], properties: dict[str, str]) -> None:
        self.root, self.emulate = root, list(emulate)
        for folder in ("bin", "state/prop", "state/dumpsys", "state/settings", "programs", "data/local/tmp"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        self.state = root / "state"
        for name, text in _SCRIPTS.items():
            script = root / "bin" / name
            script.write_text(f"#!/bin/sh\nSTATE={self.state}\n{text}\n", encoding="utf-8")
            script.chmod(0o755)
        for name, value in properties.items():
            (self.state / "prop" / name).write_text(value + "\n", encoding="utf-8")
        self.is_full = False  # no room for what is pushed
        self.battery(level=90, celsius=27.1)
        self.thermal(status=0)
        self.screen(on=True)
        self.uptime(100_000)

    def battery(self, level: int, celsius: float) -> None:
        """Say this of the battery from now on."""
        text = f"Current Battery Service state:\n  USB powered: true\n  level: {level}\n  scale: 100\n"
        self._dumpsys("battery", f"{text}  temperature: {round(celsius * 10)}\n  technology: Li-ion\n")

    def thermal(self, status: int, celsius: float = 38.0) -> None:
        """Say this of the processor: ``status`` 0 (none) to 6 (shutdown)."""
        text = f"IsStatusOverride: false\nThermal Status: {status}\nCurrent temperatures from HAL:\n"
        text += f"\tTemperature{{mValue={celsius:.3f}, mType=0, mName=CPU0, mStatus=0}}\n"
        self._dumpsys("thermalservice", text + "\tTemperature{mValue=31.5, mType=3, mName=SKIN, mStatus=0}\n")

    def screen(self, on: bool, wakes: bool = True) -> None:
        """Say this of the screen; when it is off a key wakes it, unless it is broken."""
        texts = [_POWER.format(word=w, state=s) for w, s in (("Asleep", "OFF"), ("Awake", "ON"))]
        (self.state / "screen_on").write_text(texts[on or wakes], encoding="utf-8")
        self._dumpsys("power", texts[on])

    def uptime(self, seconds: int) -> None:
        """Have been running for so long."""
        (self.root / "proc").mkdir(exist_ok=True)
        (self.root / "proc" / "uptime").write_text(f"{seconds}.00 {seconds}.00\n", encoding="ascii")

    def setting(self, name: str) -> str | None:
        """Return a global setting, or None where there is none."""
        path = self.state / "settings" / name
        return path.read_text(encoding="utf-8").strip() if path.exists() else None

    def _dumpsys(self, service: str, text: str) -> None:
        aside = self.state / f"{service}.new"
        aside.write_text(text, encoding="utf-8")
        aside.replace(self.state / "dumpsys" / service)

    def host_path(self, path: str) -> Path:
        """Return where ``path`` of the phone lies here."""
        return self.root / path.lstrip("/")

    def command(self, text: str) -> list[str]:
        """Return the argv of this machine that does what ``text`` does on the phone."""
        pattern = r"(?<![\w.])/(data/local/tmp|sys|proc/uptime)(?=[/\s'\";)]|$)"
        text = re.sub(pattern, lambda match: f"{self.root}/{match[1]}", text)
        return ["sh", "-c", text]

    def environment(self) -> dict[str, str]:
        """Return the environment of the phone's processes."""
        return {
            "PATH": f"{self.root}/bin:/usr/bin:/bin", _MARK: str(self.root), "HOME": "/", "TMPDIR": f"{self.root}/data"
        }  # fmt: skip

    def store(self, path: str, data: bytes, mode: int) -> None:
        """Keep a pushed file; a dynamically linked Arm program gets the script that runs it. Raises: OSError."""
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        place = self.host_path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if _is_arm_program(data):
            program = self.root / "programs" / hashlib.sha256(data).hexdigest()
            program.write_bytes(data)
            words = " ".join([*self.emulate, str(program)])
            data, mode = f'#!/bin/sh\nexec {words} "$@"\n'.encode(), mode | 0o755
        aside = place.with_name(place.name + ".pushed")
        aside.write_bytes(data)
        aside.chmod(mode & 0o777)
        aside.replace(place)

    def processes(self) -> list[int]:
        """Return the process ids of everything that runs on this phone."""
        wanted = f"{_MARK}={self.root}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                with suppress(OSError):
                    if wanted in (entry / "environ").read_bytes().split(b"\0") and _is_alive(entry):
                        found.append(int(entry.name))
        return found

    def kill_all(self) -> None:
        """End everything that runs on this phone, as a power cut would."""
        deadline = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


def _is_alive(entry: Path) -> bool:
    return (entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] != "Z"


def _is_arm_program(data: bytes) -> bool:
    """Whether ``data`` is an ELF program for another processor, with a program header that asks for a linker."""
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return False
    is_64 = data[4] == 2
    machine = struct.unpack_from("<H", data, 18)[0]
    if machine not in (40, 183):  # EM_ARM, EM_AARCH64
        return False
    offset = struct.unpack_from("<Q" if is_64 else "<I", data, 32 if is_64 else 28)[0]
    size, count = struct.unpack_from("<HH", data, 54 if is_64 else 42)
    return any(data[at : at + 4] == b"\3\0\0\0" for at in range(offset, offset + size * count, max(size, 1)))
