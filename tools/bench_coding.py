#!/usr/bin/env python3
"""Measure the entropy coders: size against the static entropy, and how fast the runtime's decoders are on one core.

    tools/bench_coding.py                     synthetic tensors of 2 % to 90 % density, 1000 x 4000 weights
    tools/bench_coding.py FILE.xq...          the tensors above 16 thousand weights of compressed models
    tools/bench_coding.py --rows 250          smaller, for a busy machine
    tools/bench_coding.py --json              for machines

Decoding is timed in C as a package is opened, on one thread: from the coded section to float32 weights in the layout
that kernels read ([O/8, I, 8]), without the CRC of the package; -Os, as a release of the runtime. Sizes are those of
streams alone: of the integers, without records and maps.
Exit code 1 when the range coder is above the static entropy on any tensor above 16 thousand weights.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = ROOT / "xnncc" / "runtime"
sys.path.insert(0, str(ROOT))

from xnncc.ir.coded import CodedTensor, coded_table  # noqa: E402  (the checkout's own, installed or not)
from xnncc.ir.placement import CodedTable  # noqa: E402
from xnncc.pack.coding import encode_blob  # noqa: E402
from xnncc.pack.coding.coders import CODERS, encode_stream  # noqa: E402
from xnncc.pack.coding.layout import record_of  # noqa: E402
from xnncc.pack.coding.turn import turning_pays  # noqa: E402

LARGE = 16_000  # weights from which the range coder must not be above the static entropy
LANES, RUNS = 8, 5
DENSITIES = (0.02, 0.05, 0.1, 0.3, 0.6, 0.9)


def synthetic(density: float, rows: int, columns: int) -> np.ndarray:
    """Return integers whose columns differ in density, magnitudes up to 7 falling by 0.4 each."""
    rng = np.random.default_rng(0)
    chance = rng.random(columns) ** (0.3 if density > 0.5 else 2) * density * (1.3 if density > 0.5 else 3)
    sizes = np.minimum(rng.geometric(0.6, (rows, columns)), 7)
    kept = rng.random((rows, columns)) < chance
    return (kept * sizes * rng.choice([-1, 1], (rows, columns))).astype(np.int32)


def stored(tensor: CodedTensor, coder: str = "range") -> np.ndarray:
    """Return the integers that a stream holds, [rows, columns]: those of a codebook count from the most frequent."""
    return record_of(tensor, 0, turning_pays(tensor, (coder,))).plain(tensor.integers)


def entropy_bytes(weights: np.ndarray) -> float:
    """Return the static entropy of order 0 without a table, in bytes."""
    counts = np.unique(weights, return_counts=True)[1]
    return float(-(counts * np.log2(counts / counts.sum())).sum() / 8)


def blocks(weights: np.ndarray) -> np.ndarray:
    """Return [O, ...] as [O/8, ..., 8], zeros in the rows beyond O."""
    flat = weights.reshape(len(weights), -1)
    full = np.zeros((-(-len(flat) // LANES) * LANES, flat.shape[1]), weights.dtype)
    full[: len(flat)] = flat
    return np.ascontiguousarray(full.reshape(-1, LANES, flat.shape[1]).transpose(0, 2, 1))


def measure(name: str, tensor: CodedTensor, program: Path, folder: Path) -> dict[str, Any]:
    """Return the figures of one tensor."""
    table = CodedTable(coded_table([tensor]))
    array = table.follow(tensor.values(), blocks)
    found = table.place(0, array)
    assert found is not None
    row: dict[str, Any] = {
        "name": name, "weights": tensor.size, "density": round(float(np.mean(stored(tensor) != 0)), 3),
        "entropy_bytes": round(entropy_bytes(tensor.integers)),
    }  # fmt: skip
    for coder in CODERS:
        coded = encode_blob(array.tobytes(), [found[1]], (coder,)).data
        (folder / "coded").write_bytes(coded)
        (folder / "blob").write_bytes(array.tobytes())
        command = [program, folder / "coded", folder / "blob", str(RUNS)]
        seconds = float(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)
        (stream, _) = encode_stream([stored(tensor, coder)], (coder,))
        row[coder] = {"bytes": len(stream.data), "mweights_per_s": round(tensor.size / seconds / 1e6, 1)}
    return row


def build(folder: Path, compiler: str) -> Path:
    """Compile the runtime and the program that times it."""
    program = folder / "time_decoding"
    command = [
        compiler, "-std=gnu99", "-Os", "-pthread", f"-I{RUNTIME / 'include'}", f"-I{RUNTIME / 'src'}",
        str(ROOT / "tools" / "time_decoding.c"), *map(str, sorted(RUNTIME.glob("src/*.c"))), "-o", str(program),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return program


def tensors_of(files: list[Path], rows: int) -> list[tuple[str, CodedTensor]]:
    """Return what to measure."""
    if not files:
        step = np.array([0.01], np.float32)
        return [(f"{density:.0%} dense", CodedTensor(synthetic(density, rows, 4000), step)) for density in DENSITIES]
    from xnncc.pack.xq_file import read_xq

    found = [(f"{file.stem}[{i}]", one) for file in files for i, one in enumerate(read_xq(file).constants)]
    large = [(name, one) for name, one in found if isinstance(one, CodedTensor) and one.size >= LARGE]
    return [(name, one) for name, one in large if np.ptp(one.integers)]  # all alike: no entropy to compare with


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.xq", help="compressed models")
    parser.add_argument("--rows", type=int, default=1000, help="of a synthetic tensor (default: 1000)")
    parser.add_argument("--cc", help="compiler (default: clang, as a build of a model takes, else gcc)")
    parser.add_argument("--json", action="store_true", help="for machines")
    options = parser.parse_args()
    compiler = options.cc or next(filter(shutil.which, ("clang-22", "clang", "gcc", "cc")), None)
    if compiler is None:
        print("bench_coding: no C compiler on PATH. apt install gcc, or give --cc", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        program = build(Path(temporary), compiler)
        rows = [measure(*one, program, Path(temporary)) for one in tensors_of(options.files, options.rows)]
    if options.json:
        print(json.dumps(rows, indent=1, sort_keys=True))
    else:
        show(rows)
    above = [row["name"] for row in rows if row["range"]["bytes"] > row["entropy_bytes"] and row["weights"] >= LARGE]
    if above:
        print(f"bench_coding: above the static entropy: {', '.join(above)}", file=sys.stderr)
    return 1 if above else 0


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table: bits a weight, and millions of weights a second."""
    heads = "".join(f"{coder:>10}{'Mw/s':>8}" for coder in CODERS)
    print(f"{'tensor':<24}{'weights':>10}{'density':>9}{'entropy':>9}{heads}{'range/H':>9}")
    for row in rows:
        scale = 8 / row["weights"]
        cells = "".join(f"{row[c]['bytes'] * scale:>10.4f}{row[c]['mweights_per_s']:>8}" for c in CODERS)
        ratio = row["range"]["bytes"] / row["entropy_bytes"]
        print(
            f"{row['name']:<24}{row['weights']:>10}{row['density']:>9}{row['entropy_bytes'] * scale:>9.4f}{cells}"
            f"{ratio:>9.4f}"
        )


if __name__ == "__main__":
    sys.exit(main())
