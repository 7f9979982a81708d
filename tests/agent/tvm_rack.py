"""A rack as TVM has it: TVM's own tracker, our agent registered with it, kernels that TVM built, TVM's own runner."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agents import emulation

from xnncc.device.agent_build import agent_program
from xnncc.target import load_target

KEY = "pixel-of-the-tests-0123456789"


def _start(argv: Sequence[str], log: Path, word: str) -> tuple[subprocess.Popen[str], int]:
    """Start a program that says ``word PORT`` on stdout; return it and the port."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "QEMU_"))}
    with log.open("w") as file:
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=file, text=True, env=environment, start_new_session=True
        )
    assert process.stdout is not None
    ready = select.select([process.stdout], [], [], 60)[0]
    line = process.stdout.readline() if ready else ""
    if not line.startswith(f"{word} "):
        stop(process)
        raise AssertionError(f"{argv[0]} said {line!r} and {log.read_text()!r}")
    return process, int(line.split()[1])


def stop(process: subprocess.Popen[str]) -> None:
    """End a process, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


class Tracker:
    """TVM's tracker on a free port of loopback, in a thread of its own: importing it takes seconds."""

    def __init__(self) -> None:
        from tvm.rpc import tracker

        tracker.logger.setLevel(logging.ERROR)
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        self.port = int(listener.getsockname()[1])
        self.thread = threading.Thread(target=tracker._tracker_server, args=(listener, "stop"), daemon=True)
        self.thread.start()

    def summary(self) -> dict[str, Any]:
        """Return what it tells of its queues and servers."""
        from tvm import rpc

        return rpc.connect_tracker("127.0.0.1", self.port).summary()

    def wait_free(self, key: str = KEY, count: int = 1, seconds: float = 20.0) -> None:
        """Wait until so many devices of a key are on offer."""
        deadline = time.monotonic() + seconds
        while self.summary()["queue_info"].get(key, {}).get("free", 0) < count:
            assert time.monotonic() < deadline, f"no device is on offer: {self.summary()}"
            time.sleep(0.1)

    def stop(self) -> None:
        """End it."""
        from tvm import rpc

        rpc.connect_tracker("127.0.0.1", self.port).close()  # it is there
        with socket.create_connection(("127.0.0.1", self.port), 20) as sock:
            sock.sendall(struct.pack("<i", 0x2F271))
            message = b'[2, "stop"]'
            time.sleep(0.1)  # its handler takes the first word alone
            sock.sendall(struct.pack("<i", len(message)) + message)
            self.thread.join(20)


class TvmAgent:
    """Our agent, serving TVM's protocol alone; with a tracker, registered there."""

    def __init__(self, folder: Path, tracker: Tracker | None = None, target: str = "host", key: str = KEY) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        argv = [*emulation(target), str(agent_program(load_target(target))), "--dir", str(folder / "data")]
        argv += ["--tracker", f"127.0.0.1:{tracker.port}"] if tracker else ["--tvm-rpc", "0"]
        self.process, self.port = _start([*argv, "--key", key], folder / "log", "tvm-rpc")

    def sessions(self) -> list[str]:
        """Return the folders of sessions that are under way or left behind."""
        return [path.name for path in (self.folder / "data").glob("job-*")]

    def is_alive(self) -> bool:
        """Its first process runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End it; its sessions end with it."""
        stop(self.process)
