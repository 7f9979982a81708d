#!/usr/bin/env python3
"""Fuzz the package reader under AddressSanitizer and UndefinedBehaviorSanitizer.

    tools/fuzz_package.py                        one million damaged packages, a minute or two
    tools/fuzz_package.py --inputs 20000         as the tests do
    tools/fuzz_package.py --coded                only packages with coded weights: the decoders
    tools/fuzz_package.py --libfuzzer            guided by coverage (needs clang with libFuzzer); same mutator

The inputs are made from good packages by tests/runtime/fuzz_open.c: numbers of the format replaced by hurtful ones,
blocks moved, files cut, text broken; in 15 of 16 the CRCs are mended afterwards, or nothing behind them would be
tested. Every line of src/open.c is reached (gcov, one million inputs, seed 1).
Exit code 1 and the sanitizer's report when something was found. The same --seed makes the same inputs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = ROOT / "xnncc" / "runtime"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "runtime")]

from xnncc import pack  # noqa: E402  (the checkout's own, installed or not)

SANITIZERS = "address,undefined"
# A damaged package may ask for 2^40 bytes: that must end in a status, not in a report or a slow run.
ASAN_OPTIONS = "allocator_may_return_null=1:max_allocation_size_mb=64:detect_leaks=1"


def good_packages() -> list[pack.Package]:
    """Return small packages that between them have every part of the format."""
    plain = pack.Package(
        "tiny", "linux-x86-64", -5, 256, 64, 2, (pack.Tensor("x", (1, 4), "float32"),),
        (pack.Tensor("y", (1, 2), "float32"),), bytes(range(8)),
    )  # fmt: skip
    inputs = tuple(pack.Tensor(f"ein/gäbe:{i}", (1, *range(1, i + 1)), "uint8") for i in range(8))
    outputs = (pack.Tensor("標籤", (), "int64"), pack.Tensor("leer", (0, 7), "bool"))
    many = pack.Package(
        "viele", "android-arm64", 1 << 62, 4096, 0, 0, inputs, outputs, b"",
        (pack.Section("GOLD", b"golden" * 9), pack.Section("NOTE", b"", encoding=3, decoded_bytes=77)),
    )  # fmt: skip
    bare = pack.Package("m", "t", 0, 0, 0, 0, (), (), b"\1")
    state, after = (pack.Tensor(name, (2,), "float32") for name in ("h", "hn"))
    further = tuple(
        pack.Variant(64 * n, n, (pack.Tensor("x", (1, n), "float32"), state), (pack.Tensor("y", (n,), "int8"), after))
        for n in (5, 6, 9)
    )
    first = further[0]
    shapes = pack.Package(
        "wide", "t", 7, 128, 64, 3, (pack.Tensor("x", (1, 4), "float32"), state),
        (pack.Tensor("y", (4,), "int8"), after), b"\2" * 70, state_count=1, variants=further,
    )  # fmt: skip
    return [plain, many, bare, shapes, replace(shapes, variants=(first,), state_count=0)]


def coded_packages() -> list[pack.Package]:
    """Return small packages whose weights are coded, by each coder."""
    from coded_packages import coded_package  # of the tests

    shapes = ((9, 2, 3), (7,), (40, 12), (3, 1, 2, 2))
    return [
        coded_package(seed, coder, shapes)[0] for seed, coder in enumerate(("huffman", "adaptive", "range", "range"))
    ]


def build(folder: Path, compiler: str, libfuzzer: bool) -> Path:
    """Compile runtime and harness; return the program."""
    sanitizers = f"{SANITIZERS},fuzzer" if libfuzzer else SANITIZERS
    program = folder / "fuzz_open"
    command = [
        compiler, "-std=gnu99", "-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-pthread",
        *(["-DFUZZ_LIBFUZZER"] if libfuzzer else []), f"-I{RUNTIME / 'include'}",
        str(ROOT / "tests/runtime/fuzz_open.c"), str(ROOT / "tests/runtime/fake_model.c"),
        *map(str, sorted(RUNTIME.glob("src/*.c"))), "-o", str(program),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return program


def main() -> int:
    """Build, run, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many (default: 1000000)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument("--coded", action="store_true", help="only packages with coded weights")
    parser.add_argument("--libfuzzer", action="store_true", help="let libFuzzer choose the inputs")
    parser.add_argument("--cc", help="compiler (default: gcc; with --libfuzzer clang-22 or clang)")
    options = parser.parse_args()
    names = ("clang-22", "clang") if options.libfuzzer else ("gcc", "cc", "clang-22", "clang")
    compiler = options.cc or next(filter(shutil.which, names), None)
    if compiler is None:
        print(f"fuzz_package: none of {', '.join(names)} is on PATH. apt install gcc, or give --cc", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program = build(folder, compiler, options.libfuzzer)
        corpus = folder / "corpus"
        corpus.mkdir()
        for i, package in enumerate(coded_packages() if options.coded else good_packages() + coded_packages()):
            pack.write(corpus / f"{i}.xnn", package)
        if options.libfuzzer:
            how = [f"-runs={options.inputs}", f"-seed={options.seed}", "-max_len=8192", "-print_final_stats=1"]
            command = [str(program), *how, f"-artifact_prefix={folder}/", str(corpus)]
        else:
            command = [str(program), str(options.seed), str(options.inputs), *map(str, sorted(corpus.iterdir()))]
        start = time.monotonic()
        done = subprocess.run(command, env={**os.environ, "ASAN_OPTIONS": ASAN_OPTIONS}, check=False)
        seconds = time.monotonic() - start
        for crash in folder.glob("crash-*"):
            kept = Path.cwd() / crash.name
            shutil.copy(crash, kept)
            print(f"fuzz_package: the input is kept as {kept}", file=sys.stderr)
    if done.returncode != 0:
        print(f"fuzz_package: FOUND SOMETHING with --seed {options.seed}; the report is above", file=sys.stderr)
        return 1
    print(f"fuzz_package: {options.inputs} inputs, nothing found, {options.inputs / seconds:.0f} a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
