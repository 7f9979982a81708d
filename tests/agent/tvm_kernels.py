"""Kernels for TVM's protocol: such as TVM builds, and some in C that crash, hang or fail."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SIZE = 48
_FAULTS = {
    "good": "return 0;",
    "crash": "*(volatile int *)8 = 1; return 0;",
    "hang": "for (;;) __asm__ volatile(\"\");",
    "fails": 'const char *words[] = {"too ", "warm"}; TVMFFIErrorSetRaisedFromCStrParts("ValueError", words, 2);'
    " return -1;",
    "threads": "return __TVMBackendParallelLaunch(piece, 0, 0);",
    "scratch": "void *m = __TVMBackendAllocWorkspace(1, 0, 1ull << 40, 2, 32); return m ? 0 : -1;",
}  # fmt: skip
_SOURCE = """
void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **words, int count);
int (*__TVMBackendParallelLaunch)(int (*)(int, void *, void *), void *, int);
void *(*__TVMBackendAllocWorkspace)(int, int, unsigned long long, int, int);
static int piece(int task, void *environment, void *data) { return 0; }
int __tvm_ffi_main(void *self, const void *args, int count, void *result) { %s }
"""


def fault_kernel(folder: Path, name: str) -> Path:
    """Return the library of one of _FAULTS, for this machine."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing: apt-get install gcc")
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(_SOURCE % _FAULTS[name])
    argv = ["gcc", "-shared", "-fPIC", "-nostdlib", "-O1", "-w", str(source), "-o", str(library)]
    subprocess.run(argv, check=True)
    return library


def matmul(parts: int) -> Any:
    """Return a module: a matrix product of SIZE, its rows in parallel, its columns in ``parts``."""
    import tvm
    from tvm import te

    a, b = (te.placeholder((SIZE, SIZE), "float32", name=n) for n in "AB")
    k = te.reduce_axis((0, SIZE), "k")
    c = te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = tvm.s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([a, b, c])}))
    row, column, _ = sch.get_loops(sch.get_sblock("C"))
    sch.parallel(row)
    sch.split(column, [None, parts])
    return sch.mod


def tvm_kernel(folder: Path, parts: int, target: str | dict[str, Any] = "llvm", linker: str = "gcc") -> Path:
    """Return ``matmul(parts)`` as a library that TVM's exporter links."""
    import tvm
    from tvm.support import cc

    if shutil.which(linker) is None:
        pytest.skip(f"{linker} is missing: apt-get install {linker}")
    library = folder / f"matmul{parts}.so"
    built = tvm.compile(matmul(parts), target=tvm.target.Target(target))
    built.export_library(str(library), fcompile=cc.cross_compiler(linker, options=["-nostdlib"]))
    return library
