#!/usr/bin/env python3
"""Fuzz the agent's protocol under AddressSanitizer and UndefinedBehaviorSanitizer.

    tools/fuzz_agent.py                          one million frames, a minute or two
    tools/fuzz_agent.py --frames 20000           as the tests do
    tools/fuzz_agent.py --tvm                    packets of TVM's protocol instead

The frames are made by tests/agent/fuzz_session.c: those of an honest client with hurtful numbers, changed bytes, cuts,
wrong orders and wrong codes; nearly all are sealed with the right key, or nothing behind the code would be tested. It
plays the wire, the child process and the telemetry; the session, the store and the reading of jobs are the agent's own.
Of TVM's protocol tests/agent/fuzz_tvm.c plays the wire and the kernels.
Exit code 1 and the sanitizer's report when something was found. The same --seed makes the same frames.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AGENT = ROOT / "xnncc" / "runtime" / "agent"
OWN = ("session", "frames", "sha256", "store", "read_job", "job", "text")
OWN_TVM = ("tvm_session", "tvm_packets", "tvm_handles", "tvm_functions", "frames", "sha256", "text")
# TVM's clients may ask for 2 GiB: that must end in an answer.
ASAN_OPTIONS = "allocator_may_return_null=1:max_allocation_size_mb=300:detect_leaks=1"


def build(folder: Path, compiler: str, harness: str) -> Path:
    """Compile session and harness; return the program."""
    program = folder / harness
    own = OWN_TVM if harness == "fuzz_tvm" else OWN
    command = [
        compiler, "-std=gnu99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{AGENT}",
        str(ROOT / f"tests/agent/{harness}.c"), *(str(AGENT / f"{name}.c") for name in own), "-o", str(program),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return program


def fuzz(frames: int, seed: int, compiler: str, harness: str) -> tuple[int, str]:
    """Build and run; return the exit code and what the harness counted."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # the store's files: a million frames write many
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory(dir=memory) as store:
        program = build(Path(temporary), compiler, harness)
        done = subprocess.run(
            [str(program), str(seed), str(frames), store], stdout=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "ASAN_OPTIONS": ASAN_OPTIONS},
        )  # fmt: skip
    return done.returncode, done.stdout


def main() -> int:
    """Build, run, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1_000_000, help="how many (default: 1000000)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument("--tvm", action="store_true", help="TVM's protocol")
    parser.add_argument("--cc", help="compiler (default: gcc)")
    options = parser.parse_args()
    compiler = options.cc or next(filter(shutil.which, ("gcc", "cc", "clang")), None)
    if compiler is None:
        print("fuzz_agent: no C compiler is on PATH. apt install gcc, or give --cc", file=sys.stderr)
        return 1
    start = time.monotonic()
    code, counted = fuzz(options.frames, options.seed, compiler, "fuzz_tvm" if options.tvm else "fuzz_session")
    seconds = time.monotonic() - start
    print(counted, end="")
    if code != 0:
        print(f"fuzz_agent: FOUND SOMETHING with --seed {options.seed}; the report is above", file=sys.stderr)
        return 1
    print(f"fuzz_agent: {options.frames} frames, nothing found, {options.frames / seconds:.0f} a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
