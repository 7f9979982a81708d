#!/usr/bin/env python3
"""Show how large the runtime is: text and constants of each object, compiled for arm64 with -Os as a release is.

    tools/size_report.py                 the table; exit code 1 above a budget (20 KiB; 8 KiB for the weight decoders)
    tools/size_report.py --json          {"objects": {"open": {"text": ..., "rodata": ..., ...}, ...}, "core": ..., ...}
    tools/size_report.py --cc 'clang-22 --target=aarch64-linux-gnu' --size llvm-size-22

Core is .text* and .rodata* of all objects: what the runtime adds to an app beside the model's own kernels. Decoders are
the part of it that decodes coded weights.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RUNTIME = Path(__file__).resolve().parents[1] / "xnncc" / "runtime"
BUDGET_BYTES, DECODERS_BYTES = 20 * 1024, 8 * 1024
# As codegen builds a release: no calls of libgcc for atomics, no unwind tables.
FLAGS = ["-std=c99", "-Os", "-fPIC", "-fvisibility=hidden", "-mno-outline-atomics", "-fno-asynchronous-unwind-tables"]


def measure(cc: list[str], size: str) -> dict[str, dict[str, int]]:
    """Return object -> bytes of its "text", "rodata" and "data" (with bss)."""
    sizes = {}
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(RUNTIME.glob("src/*.c")):
            target = Path(folder) / f"{source.stem}.o"
            subprocess.run([*cc, *FLAGS, f"-I{RUNTIME / 'include'}", "-c", str(source), "-o", str(target)], check=True)
            listing = subprocess.run([size, "-A", str(target)], check=True, capture_output=True, text=True).stdout
            sizes[source.stem] = _sum(listing)
    return sizes


def _sum(listing: str) -> dict[str, int]:
    """Add up the output of ``size -A``: section, bytes, address."""
    found = {"text": 0, "rodata": 0, "data": 0}
    for line in listing.splitlines():
        section, *numbers = line.split() or [""]
        name = section.lstrip(".").split(".")[0]
        kind = "data" if name == "bss" else name
        if section.startswith(".") and kind in found and numbers:
            found[kind] += int(numbers[0])
    return found


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default="aarch64-linux-gnu-gcc", help="compiler (default: aarch64-linux-gnu-gcc)")
    parser.add_argument("--size", default="aarch64-linux-gnu-size", help="its size program")
    parser.add_argument("--json", action="store_true", help="for machines")
    options = parser.parse_args()
    cc = shlex.split(options.cc)
    for program in (cc[0], options.size):
        if shutil.which(program) is None:
            print(f"size_report: '{program}' is not on PATH. apt install gcc-aarch64-linux-gnu", file=sys.stderr)
            return 1
    objects = measure(cc, options.size)
    core = sum(sizes["text"] + sizes["rodata"] for sizes in objects.values())
    decoders = sum(sizes["text"] + sizes["rodata"] for name, sizes in objects.items() if name.startswith("decode"))
    if options.json:
        print(
            json.dumps({"objects": objects, "core": core, "budget": BUDGET_BYTES, "decoders": decoders}, sort_keys=True)
        )
    else:
        print(f"{'object':<12}{'text':>8}{'rodata':>8}{'data':>8}")
        for name, sizes in objects.items():
            print(f"{name:<12}{sizes['text']:>8}{sizes['rodata']:>8}{sizes['data']:>8}")
        print(f"decoders {decoders} bytes, budget {DECODERS_BYTES}")
        print(f"core {core} bytes, budget {BUDGET_BYTES}")
    return 0 if core <= BUDGET_BYTES and decoders <= DECODERS_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
