"""Real agents for tests: this machine's, or another processor's under qemu-user, each with a folder of its own."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from agent_process import start_agent

from xnncc.codegen.emulators import QEMU, find_emulator
from xnncc.device.agent_build import agent_program
from xnncc.device.agent_client import AgentClient
from xnncc.target import load_target

TOKEN = b"a token of the tests, 0123456789"


class Agent:
    """An agent that listens on a port of loopback until ``stop``.

    ``disk_kib``: its folder is a disk of its own of that size (needs the right to mount one).
    """

    def __init__(
        self, folder: Path, target: str = "host", *options: str, disk_kib: int = 0, is_static: bool = False
    ) -> None:
        self.target, self.folder = load_target(target), folder
        self.data = folder / "data"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_bytes(TOKEN + b"\n")
        program = agent_program(self.target, is_static)
        argv = [*(() if is_static else emulation(target)), str(program), "--port", "0", "--dir", str(self.data)]
        argv += ["--token-file", str(folder / "token"), *options]
        if disk_kib:
            self.data.mkdir()
        self.process, self.port = start_agent(argv, folder / "log", self.data, disk_kib)

    @property
    def log(self) -> str:
        """What it complained of."""
        return (self.folder / "log").read_text()

    def connect(self, token: bytes = TOKEN, timeout: float = 60.0) -> AgentClient:
        """Return a session with it."""
        return AgentClient("127.0.0.1", self.port, token, timeout)

    def jobs(self) -> list[str]:
        """Return the folders of jobs that are under way or left behind."""
        return sorted(path.name for path in self.data.glob("job-*"))

    def is_alive(self) -> bool:
        """Its first process runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End it; its sessions and jobs end with it."""
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def emulation(name: str) -> list[str]:
    """Return what stands before a program for a target: nothing, or qemu-user."""
    target = load_target(name)
    if name == "host":
        return []
    emulator = find_emulator(target)
    assert emulator is not None
    if emulator.missing:
        pytest.skip(f"{emulator.missing} is missing: {emulator.install}")
    qemu = QEMU[target.arch, target.toolchain.libc]
    command = [emulator.found, "-cpu", qemu.cpu, "-L", str(qemu.root)]
    if target.toolchain.libc == "bionic":
        from xnncc.device.shim import bionic_shim

        command += [str(qemu.root / qemu.loader), "--library-path", str(bionic_shim(target))]
    return command
