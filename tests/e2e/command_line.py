"""``xnncc`` as a user runs it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """How a run of the command line ended."""

    code: int
    stdout: str
    stderr: str


_RUN = "from xnncc.cli.main import run; run()"


def command(*arguments: str | Path) -> list[str]:
    """The command line as a fresh process."""
    return [sys.executable, "-c", _RUN, *map(str, arguments)]


def xnncc(*arguments: str | Path, cwd: Path, before: str = "", **environment: str) -> Ended:
    """Run ``xnncc ARGUMENTS`` in ``cwd``; ``before`` is Python that the process runs first."""
    full = [sys.executable, "-c", f"{before}\n{_RUN}", *map(str, arguments)]
    env = {**os.environ, **environment}
    done = subprocess.run(full, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)
