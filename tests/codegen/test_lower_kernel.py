"""One kernel as a C function: signature, scratch, workspace, and objects for every format."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from kernel_running import AVX2, host, kernel, placeholders, random, relative_error, run
from object_linking import load_objects
from tvm import te, tirx, topi

from xnncc.codegen.emit import _write_object
from xnncc.codegen.lower_kernel import STACK_BYTES, LoweredKernel, lower_kernel
from xnncc.kernels import conv2d, depthwise, packing
from xnncc.kernels.spatial import Window
from xnncc.schedule import schedule_kernel
from xnncc.target import list_targets, load_target

WIN = Window((6, 12), (3, 3), (1, 1), (1, 1, 1, 1), (6, 12))
ARRAYS = random(1, 1, 2, 72, 8), random(2, 2, 2, 3, 3, 8, 8), random(3, 2, 8)


def _conv() -> tirx.PrimFunc:
    args = placeholders(*ARRAYS)
    return kernel(*args, conv2d.f32_conv2d(*args, WIN))


def _depthwise() -> tuple[tirx.PrimFunc, tuple[np.ndarray, ...]]:
    arrays = random(1, 1, 3, 72, 8), random(2, 3, 3, 3, 8), random(3, 3, 8)
    args = placeholders(*arrays)
    return kernel(*args, depthwise.f32_depthwise(*args, WIN)), arrays


def _call(dll: ctypes.CDLL, symbol: str, *arrays: np.ndarray) -> int:
    return getattr(dll, symbol)(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))


def _load(folder: Path, func: tirx.PrimFunc) -> tuple[LoweredKernel, ctypes.CDLL]:
    lowered = lower_kernel(func, "xnn_net_kernel", host())
    _write_object(lowered.module, host(), folder / "kernel.o")
    return lowered, load_objects(folder, [folder / "kernel.o"], "fake_backend.c")


def test_a_kernel_is_a_c_function_of_pointers(tmp_path: Path) -> None:
    """Its padded input is a trailing parameter; the tile of sums stays on the stack."""
    func = _conv()
    scheduled = schedule_kernel(func, AVX2).func
    lowered, dll = _load(tmp_path, scheduled)
    assert lowered.scratch_bytes == (4 * 2 * 8 * 14 * 8,)
    y, scratch = np.full((1, 2, 72, 8), np.nan, "float32"), np.full(lowered.scratch_bytes[0], 255, "u1")
    assert _call(dll, "xnn_net_kernel", *ARRAYS, y, scratch) == 0
    assert relative_error(y, run(func, *ARRAYS, optimised=False)) < 1e-6
    book = {name: ctypes.c_int64.in_dll(dll, name).value for name in ("launches", "held", "most_held")}
    assert book["launches"] >= 1 and book["held"] == 0
    assert book["most_held"] == lowered.thread_scratch_bytes == 0


def test_workspace_is_what_the_threads_are_promised(tmp_path: Path) -> None:
    """A padded plane for each thread, made inside the parallel body."""
    func, (x, w, b) = _depthwise()
    lowered, dll = _load(tmp_path, schedule_kernel(func, AVX2).func)
    y = np.full((1, 3, 72, 8), np.nan, "float32")
    assert lowered.scratch_bytes == ()
    assert _call(dll, "xnn_net_kernel", x, w, b, y) == 0
    assert relative_error(y, run(func, x, w, b, optimised=False)) < 1e-6
    most = ctypes.c_int64.in_dll(dll, "most_held").value
    assert 4 * 8 * 14 * 8 <= most <= lowered.thread_scratch_bytes


def test_without_parallel_loops_there_is_no_workspace() -> None:
    lowered = lower_kernel(_conv(), "k", host())
    assert lowered.thread_scratch_bytes == 0 and len(lowered.scratch_bytes) == 2  # padded input, sums


def test_small_scratch_stays_on_the_stack() -> None:
    def two_steps(n: int) -> tirx.PrimFunc:
        x = te.placeholder((n,), "float32", "x")
        total = te.compute((n,), lambda i: x[i] + x[n - 1 - i], "total")
        return kernel(x, te.compute((n,), lambda i: total[i] * total[0], "y"))

    assert lower_kernel(two_steps(STACK_BYTES // 4), "k", host()).scratch_bytes == ()
    assert lower_kernel(two_steps(STACK_BYTES // 4 + 1), "k", host()).scratch_bytes == (STACK_BYTES + 4,)


def test_several_outputs_and_integers(tmp_path: Path) -> None:
    x = np.arange(12, dtype="int64").reshape(3, 4)
    args = placeholders(x)
    twice = te.compute((3, 4), lambda i, j: args[0][i, j] * 2, "twice")
    func = kernel(*args, twice, te.compute((4, 3), lambda i, j: args[0][j, i], "turned"))
    _, dll = _load(tmp_path, func)
    first, second = np.zeros((3, 4), "int64"), np.zeros((4, 3), "int64")
    assert _call(dll, "xnn_net_kernel", x, first, second) == 0
    assert np.array_equal(first, 2 * x) and np.array_equal(second, x.T)


def test_pointers_need_no_more_alignment_than_an_element(tmp_path: Path) -> None:
    """An app's buffers may start anywhere."""
    _, dll = _load(tmp_path, schedule_kernel(_scaled(64), AVX2).func)
    raw = np.zeros(4 * 64 + 64, "u1")
    for shift in (4, 8, 20):
        x = raw[shift : shift + 256].view("float32")
        x[:] = random(shift, 64)
        out = np.zeros(68, "float32")[1:65]
        assert _call(dll, "xnn_net_kernel", x, out) == 0
        assert np.array_equal(out, x * 3)


def _scaled(n: int) -> tirx.PrimFunc:
    x = te.placeholder((n,), "float32", "x")
    return kernel(x, te.compute((n,), lambda i: x[i] * 3.0, "y"))


def test_an_opaque_block_with_an_open_offset(tmp_path: Path) -> None:
    """te.extern gives its operands a symbolic offset, which no pointer carries."""
    x = random(1, 3, 17)
    args = placeholders(x)
    func = kernel(*args, topi.cumsum(args[0], axis=1))
    _, dll = _load(tmp_path, func)
    y = np.zeros((3, 17), "float32")
    assert _call(dll, "xnn_net_kernel", x, y) == 0
    np.testing.assert_allclose(y, x.cumsum(axis=1), rtol=1e-5, atol=1e-5)


def test_a_failing_workspace_makes_the_kernel_fail(tmp_path: Path) -> None:
    func, arrays = _depthwise()
    _, dll = _load(tmp_path, schedule_kernel(func, AVX2).func)
    ctypes.c_int64.in_dll(dll, "held").value = 1 << 20  # full
    assert _call(dll, "xnn_net_kernel", *arrays, np.zeros((1, 3, 72, 8), "float32")) == -1


def _little(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little")


FORMATS = {
    "x86_64": lambda d: d[:5] == b"\x7fELF\x02" and _little(d, 18, 2) == 62,
    "aarch64": lambda d: d[:5] == b"\x7fELF\x02" and _little(d, 18, 2) == 183,
    "armv7a": lambda d: d[:5] == b"\x7fELF\x01" and _little(d, 18, 2) == 40,
    "wasm32": lambda d: d[:8] == b"\0asm\x01\0\0\0",
    "macho": lambda d: _little(d, 0, 4) == 0xFEEDFACF and _little(d, 4, 4) == 0x0100000C and _little(d, 12, 4) == 1,
}


@pytest.mark.parametrize("name", [n for n in list_targets() if n != "host"])
def test_every_target_gets_its_object_format(name: str, tmp_path: Path) -> None:
    target = load_target(name)
    args = placeholders(random(1, 1, 2, 5, 7))
    func = schedule_kernel(kernel(*args, packing.pack(args[0], target.machine.lanes)), target.machine).func
    path = tmp_path / "kernel.o"
    _write_object(lower_kernel(func, "xnn_net_kernel", target.tvm_target()).module, target.tvm_target(), path)
    data = path.read_bytes()
    assert FORMATS["macho" if target.toolchain.kind == "macho" else target.arch](data), data[:20]
    assert b"xnn_net_kernel" in data
