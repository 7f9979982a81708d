"""The ``adb`` program, called with deadlines: attached phones, shell, push, forward; every failure a sentence.

    Adb("SERIAL").shell("getprop ro.soc.model") -> text

Neither the program nor what a phone says is trusted: calls that do not end are ended, answers are cut at a size.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from xnncc.errors import DeviceError

INSTALL = "Install it: apt-get install adb"
_BIGGEST_ANSWER = 4 << 20
_CALL_SECONDS = 30.0

# What adb calls a phone that it cannot use: what that means, and what a person can do.
STATES = {
    "unauthorized": ("it has not allowed this computer", "Unlock the phone and accept 'Allow USB debugging'."),
    "authorizing": ("it is being asked to allow this computer", "Unlock the phone and accept 'Allow USB debugging'."),
    "offline": ("it does not answer adb", "Plug it in again, or 'adb reconnect offline'; a weak USB hub does this."),
    "connecting": ("adb is connecting to it", "Wait a moment."),
    "no permissions": ("this user may not open its USB device", "Add the udev rule for it, then plug it in again."),
    "bootloader": ("it is in its boot loader", "Start it: fastboot reboot"),
    "recovery": ("it is in recovery mode", "Start Android on it."),
    "sideload": ("it waits for an update", "Start Android on it."),
    "rescue": ("it is in rescue mode", "Start Android on it."),
    "host": ("it is itself an adb host", "Attach a phone."),
}


@dataclass(frozen=True)
class Attached:
    """One line of ``adb devices -l``: ``state`` is "device" when it can be used, else a key of STATES or adb's word."""

    serial: str
    state: str
    facts: dict[str, str]  # model, product, usb, transport_id, as adb has them


def is_network(serial: str) -> bool:
    """Whether adb reaches the phone of that serial number by ``adb connect HOST:PORT``."""
    host, _, port = serial.rpartition(":")
    return bool(host) and port.isdecimal()


def find_adb(what: str = "device 'adb'") -> str:
    """Return the path of adb. Raises: DeviceError."""
    adb = shutil.which("adb")
    if adb is None:
        raise DeviceError(what, "no 'adb' on PATH", INSTALL)
    return adb


def attached() -> list[Attached]:
    """Return every phone that adb sees, usable or not. Raises: DeviceError."""
    return parse_devices(Adb().call("devices", "-l"))


def parse_devices(text: str) -> list[Attached]:
    """Return the phones that the answer of ``adb devices -l`` lists."""
    found = []
    for line in text[:_BIGGEST_ANSWER].splitlines():
        serial, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if not serial or not rest or line.startswith(("*", "List of devices")):
            continue
        if rest.startswith("no permissions"):
            state = "no permissions"
        else:
            state = rest.split()[0]
        pairs = [word.partition(":") for word in rest.split() if ":" in word and not word.startswith(("[", "http"))]
        found.append(Attached(serial, state, {key: value for key, _, value in pairs}))
    return found


class Adb:
    """One phone through adb, or with no serial number adb itself and the only phone there is."""

    def __init__(self, serial: str = "") -> None:
        self.serial = serial
        self.what = f"device 'adb:{serial}'"
        self._words = [find_adb(self.what), *(["-s", serial] if serial else [])]

    def call(self, *arguments: str, seconds: float = _CALL_SECONDS) -> str:
        """Return what ``adb arguments`` prints. Raises: DeviceError, also when it does not end within ``seconds``."""
        code, output, errors = self.outcome(*arguments, seconds=seconds)
        if code != 0:
            raise self._failure(f"{output}\n{errors}".strip() or f"adb ended with exit code {code}")
        return output

    def outcome(self, *arguments: str, seconds: float = _CALL_SECONDS) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr of ``adb arguments``. Raises: DeviceError when it does not end."""
        argv = [*self._words, *arguments]
        try:
            done = subprocess.run(argv, capture_output=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            words = " ".join(arguments)[:60]
            next_step = "Plug it in again; 'adb kill-server' helps when every phone hangs."
            raise DeviceError(self.what, f"'adb {words}' did not end within {seconds:g} s", next_step) from None
        output, errors = (part[:_BIGGEST_ANSWER].decode("utf-8", "replace") for part in (done.stdout, done.stderr))
        return done.returncode, output, errors

    def shell(self, command: str, seconds: float = _CALL_SECONDS) -> str:
        """Return what ``command`` prints on the phone. Raises: DeviceError, also for an exit code that is not 0."""
        return self.call("shell", command, seconds=seconds)

    def push(self, file: Path, path: str, seconds: float = 120.0) -> None:
        """Copy ``file`` to ``path`` on the phone. Raises: DeviceError."""
        self.call("push", str(file), path, seconds=seconds)

    def pull(self, path: str, file: Path, seconds: float = 120.0) -> None:
        """Copy ``path`` of the phone to ``file``. Raises: DeviceError."""
        self.call("pull", path, str(file), seconds=seconds)

    def forward(self, port: int) -> int:
        """Return a port of this machine's loopback that leads to ``port`` of the phone's. Raises: DeviceError."""
        text = self.call("forward", "tcp:0", f"tcp:{port}").strip()
        if not text.isdecimal() or not 0 < int(text) < 65536:
            raise DeviceError(self.what, f"'adb forward' answered '{text[:40]}' and no port")
        return int(text)

    def unforward(self, local: int) -> None:
        """Take ``local`` back; quietly, when the phone took it along."""
        self.outcome("forward", "--remove", f"tcp:{local}")

    def abis(self) -> list[str]:
        """Return the ABIs that the phone runs, its favourite first. Raises: DeviceError."""
        return [abi for abi in self.shell("getprop ro.product.cpu.abilist").strip().split(",") if abi]

    def soc(self) -> str:
        """Return what the phone calls its chip, "" when it does not say. Raises: DeviceError."""
        answer = self.shell("getprop ro.soc.model; getprop ro.board.platform")
        return next((line.strip()[:64] for line in answer.splitlines() if line.strip()), "")

    def _failure(self, words: str) -> DeviceError:
        """Return the error for adb's own words: the line that calls itself an error or the last one, and what helps."""
        lines = [line.strip() for line in words.splitlines() if line.strip() and not line.startswith("* daemon")]
        last = ([line for line in lines if "error: " in line] or lines or [words])[-1]
        last = last.removeprefix("adb: ").removeprefix("error: ")[:300]
        for state, (why, next_step) in STATES.items():
            if f"device {state}" in words or (state == "no permissions" and "insufficient permissions" in words):
                return DeviceError(self.what, why, next_step)
        if ("not found" in last and "device" in last) or "no devices" in last:
            return DeviceError(self.what, "it is not attached", "Plug it in, then see 'adb devices'.")
        return DeviceError(self.what, last, "See 'adb devices'; allow debugging on the phone.")
