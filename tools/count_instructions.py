#!/usr/bin/env python3
"""Instructions per inference on aarch64, by class, counted under the emulator: exact, and the same on a busy machine.

    tools/count_instructions.py                            the benchmark networks beside the best peer
    tools/count_instructions.py squeezenet1_1 --per-op 10  and the ten operators that cost most
    tools/count_instructions.py --cpu cortex-a53 --json out.json

Counts one inference of a linux-arm64 build (one thread, float32) between two others under ``qemu-aarch64`` with
tools/arm/count_a64.c. Instructions are no cycles: caches, pairing and latencies are not in them. They show what a loop
does beside its multiply-adds, which nothing else can here without a board.

Peers' figures were counted in the same way on cortex-a76 on 2026-11-30: onnxruntime 1.32.0, ncnn 1.0.20261020,
MNN 3.6.1, ai-edge-litert 2.3.0, float32, one thread, second inference. Needs gcc, qemu-user and libc6-arm64-cross.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bench_models import BENCH_MODELS, write

from xnncc.build import build
from xnncc.device.emulator import QemuDevice
from xnncc.target import load_target

CLASSES = ("fma", "other vector", "move", "vector load", "vector store", "scalar ld/st", "integer", "branch", "other")
BEST_PEER = {  # millions, and whose
    "squeezenet1_1": (75.6, "ncnn"), "mobilenet_v1": (171.6, "ncnn"), "mobilenet_v2": (101.2, "ncnn"),
    "resnet18": (239.6, "ncnn"), "vit_tiny4": (160.7, "ncnn"), "lstm_kws": (10.1, "onnxruntime"),
}  # fmt: skip
PLUGIN = Path(__file__).resolve().parent / "arm" / "count_a64.c"


class CountingDevice(QemuDevice):
    """qemu-aarch64 with the counting plugin; ``log`` receives the running totals."""

    def __init__(self, manifest: dict[str, Any], cpu: str, plugin: Path, log: Path) -> None:
        super().__init__(manifest, load_target(str(manifest["target"])))
        self.qemu = replace(self.qemu, cpu=cpu)
        self._flags = ["-plugin", str(plugin), "-d", "plugin", "-D", str(log)]

    def _qemu_command(self) -> list[str]:
        program, *rest = super()._qemu_command()
        return [program, *self._flags, *rest]


@dataclass(frozen=True)
class Counts:
    """Instructions of one inference by class: in all, and of each operator."""

    total: np.ndarray  # [CLASSES] int64
    per_op: np.ndarray  # [operators, CLASSES] int64


def compile_plugin(folder: Path) -> Path:
    """Return the plugin, compiled for this machine. Raises: CalledProcessError."""
    plugin = folder / "count_a64.so"
    flags = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", str(plugin), str(PLUGIN)], check=True)
    return plugin


def count(folder: Path, manifest: dict[str, Any], cpu: str, plugin: Path) -> Counts:
    """Run the artefact in ``folder`` three times, the last operator by operator, and return the counts of that one.

    The runner writes three pieces after an operator; what it does to write them is left out.
    """
    inputs = [_noise(tensor) for tensor in manifest["inputs"]]
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log"
        CountingDevice(manifest, cpu, plugin, log).time(folder, inputs, threads=1, repeat=2, per_op=True)
        marks = np.array([line.split() for line in log.read_text().splitlines()], np.int64)
    ops = int(manifest["op_count"])
    first = marks[0::3][ops:]  # before each operator's line of the second inference
    before = marks[2::3][ops - 1 : -1]  # the last mark of the operator before
    per_op = first - before
    return Counts(per_op.sum(axis=0), per_op)


def _noise(tensor: dict[str, Any]) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(tensor["shape"]).astype(tensor["dtype"])


def table(results: dict[str, Counts]) -> str:
    """Return the figures beside the best peer's, as Markdown."""
    lines = [
        "| network | xnncc, millions | best peer | ours / peer | " + " | ".join(CLASSES) + " |",
        "|---|---:|---:|---:|" + "---:|" * len(CLASSES),
    ]
    for name, counts in results.items():
        millions = counts.total.sum() / 1e6
        best, peer = BEST_PEER[name]
        classes = " | ".join(f"{n / 1e6:.2f}" for n in counts.total)
        lines.append(f"| {name} | {millions:.1f} | {best} ({peer}) | {millions / best:.2f} | {classes} |")
    return "\n".join(lines)


def heaviest(counts: Counts, manifest: dict[str, Any], most: int) -> str:
    """Return the ``most`` operators with the most instructions, a line each."""
    cost = counts.per_op.sum(axis=1)
    lines = []
    for index in np.argsort(-cost)[:most]:
        op = manifest["ops"][index]
        fma = counts.per_op[index, 0] / cost[index]
        shape = op["outputs"][0]["shape"] if op["outputs"] else []
        lines.append(f"  {cost[index] / 1e6:8.3f} M  {fma:4.0%} fma  {op['rule']:18} {shape}  {op['kernel']}")
    return "\n".join(lines)


def main() -> int:
    """Count, print, and return the exit code: 1 when a network needs more than 0.95 of the best peer's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(BENCH_MODELS))
    parser.add_argument("--cpu", default="cortex-a76", help="core that QEMU shows (default: cortex-a76)")
    parser.add_argument("--per-op", type=int, default=0, metavar="N", help="print the N heaviest operators too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there")
    options = parser.parse_args()
    results: dict[str, Counts] = {}
    with tempfile.TemporaryDirectory() as scratch:
        plugin = compile_plugin(Path(scratch))
        for name in options.networks:
            print(f"{name} ...", file=sys.stderr)
            done = build(write(name), "linux-arm64", Path(scratch) / name, verify=False)
            results[name] = count(done.directory, done.manifest, options.cpu, plugin)
            if options.per_op:
                print(heaviest(results[name], done.manifest, options.per_op))
    print(table(results))
    if options.json:
        numbers = {name: dict(zip(CLASSES, map(int, c.total), strict=True)) for name, c in results.items()}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return int(any(c.total.sum() / 1e6 > 0.95 * BEST_PEER[name][0] for name, c in results.items()))


if __name__ == "__main__":
    sys.exit(main())
