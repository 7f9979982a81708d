"""Compilers, flags and programs of the runtime's tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUNTIME = ROOT / "xnncc" / "runtime"
SOURCES = sorted(RUNTIME.glob("src/*.c"))
WARNINGS = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wshadow",
    "-Wundef",
    "-Wstrict-prototypes",
    "-Wcast-align",
    "-Werror",
]
INCLUDES = [f"-I{RUNTIME / 'include'}", f"-I{RUNTIME / 'src'}"]
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
THREAD = ["-fsanitize=thread"]
NOTHING = ["-DXNNRT_NO_THREADS", "-DXNNRT_NO_FILE", "-DXNNRT_NO_MMAP"]
FOUR_CORES = ["-DXNNRT_CORES=4"]  # the machine that tests run on may have fewer, and pools are capped at its cores
FAKE_N = 1000  # as in fake_model.h


def call(*command: str | Path, stdin: bytes = b"", seconds: float = 120) -> str:
    """Run ``command`` and return what it printed; the test fails with its complaints."""
    done = subprocess.run(list(map(str, command)), input=stdin, capture_output=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout.decode()}\n{done.stderr.decode()}"
    return done.stdout.decode()


Compile = Callable[..., Path]
