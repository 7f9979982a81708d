#!/usr/bin/env python3
"""Throughput of the inner loops on Arm cores by llvm-mca, as a share of what the multiply-add pipes allow.

    tools/mca.py                         the loops of the tests' kernels on cortex-a53 and cortex-a76
    tools/mca.py --cpu cortex-a55 "1x1"  only kernels whose name contains "1x1", on another core

A loop is the innermost one of the analytic choice for linux-arm64 with the most multiply-adds. The limit is what
llvm-mca says of the loop's multiply-adds alone, spread over as many accumulators. A model is LLVM's description of a
core, no measurement: caches and branch prediction are not in it, and cores without a model of their own borrow one
(cortex-a76 that of cortex-a57 in LLVM 14). Needs llvm-mca (Debian: llvm).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "codegen")]

from assembly import Loop, assembly_of, innermost_loops  # noqa: E402
from test_inner_loops import FIRST_LAYERS, KERNELS  # noqa: E402

from xnncc.target import load_target  # noqa: E402

TARGET = "linux-arm64"
ITERATIONS = 200
LEAST_SHARE = 0.85


def cycles(instructions: list[str], cpu: str) -> float:
    """Return the cycles of one iteration of ``instructions`` on ``cpu``. Raises: CalledProcessError."""
    command = ["llvm-mca", "-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", f"-iterations={ITERATIONS}"]
    said = subprocess.run(command, input="\n".join(instructions), capture_output=True, text=True, check=True).stdout
    total = re.search(r"Total Cycles:\s+(\d+)", said)
    assert total, "llvm-mca says how many cycles"
    return int(total[1]) / ITERATIONS


def share_of_limit(loop: Loop, cpu: str) -> float:
    """Return the cycles of the loop's multiply-adds alone by those of the whole loop."""
    whole = [line for line in loop.instructions if not line.startswith(".")]
    alone = [line for line in whole if line.startswith("fmla")]
    return cycles(alone, cpu) / cycles(whole, cpu)


def main() -> int:
    """Print a line for each kernel, and return the exit code: 1 when a loop is below 85 % of its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="part of a name (default: all)")
    parser.add_argument("--cpu", action="append", help="core of LLVM (default: cortex-a53 and cortex-a76)")
    options = parser.parse_args()
    if not shutil.which("llvm-mca"):
        print("llvm-mca is missing; install Debian's package llvm", file=sys.stderr)
        return 1
    cpus = options.cpu or ["cortex-a53", "cortex-a76"]
    kernels = {**KERNELS, **FIRST_LAYERS}
    names = [name for name in kernels if not options.kernels or any(part in name for part in options.kernels)]
    target, least = load_target(TARGET), 1.0
    print("| kernel | instructions a multiply-add | " + " | ".join(cpus) + " |\n|---|---:|" + "---:|" * len(cpus))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            loops = innermost_loops(assembly_of(kernels[name](target.machine), target, Path(folder)))
            loop = max((x for x in loops if not x.subtracts), key=lambda x: x.multiply_adds)
            shares = [share_of_limit(loop, cpu) for cpu in cpus]
            least = min(least, *shares)
            each = (len(loop.instructions) + 1) / loop.multiply_adds  # and the branch back
            print(f"| {name} | {each:.3f} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")
    return int(least < LEAST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
