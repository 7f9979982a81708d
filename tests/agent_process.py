"""Starts an agent for a test: its own group of processes, its own log, and a disk of its own if wanted."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

START_SECONDS = 60.0


def start_agent(argv: Sequence[str], log: Path, data: Path, disk_kib: int = 0) -> tuple[subprocess.Popen[str], int]:
    """Return the process of an agent that listens, and its port. ``disk_kib``: its folder ``data`` is a disk of that
    size (needs the right to mount one).

    Raises: AssertionError with what it said instead.
    """
    if disk_kib:
        mount = f"mount -t tmpfs -o size={disk_kib}k none '{data}' && exec \"$@\""
        argv = ["unshare", "--mount", "sh", "-c", mount, "sh", *argv]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "QEMU_"))}
    with log.open("w") as file:
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=file, text=True, env=environment, start_new_session=True
        )
    assert process.stdout is not None
    ready = select.select([process.stdout], [], [], START_SECONDS)[0]
    line = process.stdout.readline() if ready else ""
    if not line.startswith("listening "):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise AssertionError(f"the agent said {line!r} and {log.read_text()!r}")
    return process, int(line.split()[1])
