"""Emulated phones: the real agent for another processor under qemu-user, with a ``/sys`` and a folder of its own.

board = EmulatedBoard(folder, "board-1")           tcp: an agent that listens by itself
phone = EmulatedAndroid(folder, "phone-1")         adb: the android-arm64 agent, pushed there by whoever opens it
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from agent_process import start_agent
from fakes.android_system import AndroidSystem
from fakes.fake_adbd import FakeAdbd
from fakes.sysfs import Sysfs, emulation

from xnncc.device.adb_client import Adb
from xnncc.device.agent_build import agent_program
from xnncc.target import load_target

SOC = "emu9000"


class EmulatedBoard:
    """A board, or a phone, whose agent listens on a port of loopback; it keeps the port when it is started again.

    ``disk_kib``: its folder is a disk of its own of that size, which ``fill`` fills and ``free`` empties.
    """

    def __init__(self, folder: Path, name: str, target: str = "linux-arm64", disk_kib: int = 0) -> None:
        self.folder, self.name, self.disk_kib = folder, name, disk_kib
        self.target = load_target(target)
        self.port = 0
        self.jobs = folder / "jobs"
        self.jobs.mkdir(parents=True)
        self.sysfs = Sysfs(folder / "system", SOC)
        self.token = secrets.token_hex(32).encode()
        self.token_file = folder / "token"
        self.token_file.write_bytes(self.token + b"\n")
        self.token_file.chmod(0o600)
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def spec(self) -> str:
        """What ``--device`` and ``xnncc rack add`` call it."""
        return f"tcp:127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the agent. Raises: LookupError naming what is not installed."""
        argv = [
            *emulation(self.target, self.folder / "system"), str(agent_program(self.target)), "--port", str(self.port),
            "--token-file", str(self.token_file), "--dir", str(self.jobs), "--name", self.name,
        ]  # fmt: skip
        self._process, self.port = start_agent(argv, self.folder / "log", self.jobs, self.disk_kib)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the agent and all of its children, as a power cut would; or send another signal: SIGSTOP hangs it."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        if number == signal.SIGKILL:
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def fill(self) -> None:
        """Leave no byte free on its disk."""
        with suppress(OSError), self._filler().open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))

    def free(self) -> None:
        """Take away what ``fill`` wrote."""
        self._filler().unlink()

    def _filler(self) -> Path:
        assert self._process is not None and self.disk_kib, "only a disk of its own may be filled"
        return Path(f"/proc/{self._process.pid}/root{self.jobs}/filler")

    def close(self) -> None:
        """End it."""
        self.kill()


class EmulatedAndroid:
    """An Android phone behind the real adb client; its faults are those of ``daemon`` and ``system``."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.sysfs = Sysfs(folder, SOC)
        target = load_target("android-arm64")
        properties = {
            "ro.serialno": name, "ro.soc.model": SOC.upper(), "ro.product.model": "Emulated", "sys.boot_completed": "1",
            "ro.product.cpu.abilist": "arm64-v8a", "ro.build.version.release": "14",
            "ro.build.fingerprint": "xnncc/emulated/phone:14/TEST/1:user/test-keys",
        }  # fmt: skip
        self.system = AndroidSystem(folder, emulation(target, folder), properties)
        self.daemon = FakeAdbd(self.system)
        Adb().call("connect", self.daemon.serial)

    @property
    def spec(self) -> str:
        """What ``--device`` and ``xnncc rack add`` call it."""
        return f"adb:{self.daemon.serial}"

    def agents(self) -> list[int]:
        """Return the process ids of agents and their children that run on it."""
        return self.system.processes()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send all that runs on it this signal; the phone itself stays attached."""
        for pid in self.agents():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def close(self) -> None:
        """Unplug it and end what runs on it."""
        Adb().outcome("disconnect", self.daemon.serial)
        self.daemon.power_off()
