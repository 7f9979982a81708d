"""The analytic choice keeps its register tile in registers: no innermost loop of multiply-adds touches the stack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from assembly import assembly_of, innermost_loops
from kernel_running import kernel
from tvm import te, tirx

from xnncc.kernels import conv2d, matmul, winograd
from xnncc.kernels.spatial import Window
from xnncc.target import list_targets, load_target

# Wasm has no registers of its own: its engine allocates them.
TARGETS = sorted(name for name in list_targets() if load_target(name).toolchain.kind != "wasm")
FEW = (
    8  # multiply-adds from which a loop, a quarter of which they are, is that of a register tile, not a transformation
)


def _tensors(*shapes: tuple[int, ...]) -> list[te.Tensor]:
    return [te.placeholder(shape, "float32", f"t{i}") for i, shape in enumerate(shapes)]


def _conv(v: int, channels: tuple[int, int], image: tuple[int, int], k: int, stride: int = 1) -> tirx.PrimFunc:
    (c, o), (h, w), pad = channels, image, k // 2
    win = Window(image, (k, k), (stride, stride), (pad,) * 4, ((h - 1) // stride + 1, (w - 1) // stride + 1))
    args = _tensors((1, -(-c // v), h * w, v), (-(-o // v), -(-c // v), k, k, v, v), (-(-o // v), v))
    return kernel(*args, conv2d.f32_conv2d(*args, win))


def _winograd(v: int, m: int) -> tirx.PrimFunc:
    win = Window((28, 28), (3, 3), (1, 1), (1, 1, 1, 1), (28, 28))
    args = _tensors((1, 64 // v, 784, v), ((m + 2) ** 2, 64 // v, 64 // v, v, v), (64 // v, v))
    return kernel(*args, winograd.f32_conv2d_winograd(*args, win, m))


def _gemm(v: int, m: int, k: int, n: int) -> tirx.PrimFunc:
    args = _tensors((m, k), (n // v, k, v), (n // v, v))
    return kernel(*args, matmul.f32_gemm(*args))


def _bmm(v: int) -> tirx.PrimFunc:
    args = _tensors((3, 196, 64), (3, 64, 196))
    return kernel(*args, matmul.f32_bmm(*args, v))


KERNELS: dict[str, Callable[[int], tirx.PrimFunc]] = {
    "1x1, 14x14": lambda v: _conv(v, (512, 512), (14, 14), 1),
    "1x1, 56x56": lambda v: _conv(v, (128, 128), (56, 56), 1),
    "1x1, 7x7": lambda v: _conv(v, (1024, 1024), (7, 7), 1),
    "1x1, 13x13": lambda v: _conv(v, (512, 1024), (13, 13), 1),
    "3x3, 28x28": lambda v: _conv(v, (128, 128), (28, 28), 3),
    "3x3, stride 2": lambda v: _conv(v, (64, 128), (56, 56), 3, 2),
    "winograd 2": lambda v: _winograd(v, 2),
    "winograd 4": lambda v: _winograd(v, 4),
    "gemm, 196 rows": lambda v: _gemm(v, 196, 192, 768),
    "bmm": _bmm,
}


# ARMv7 has 16 registers and no fused add: there LLVM spills in two kernels whatever the tile.
SPILLS = {("3x3, stride 2", "android-arm32"), ("winograd 4", "android-arm32")}
CASES = [
    pytest.param(name, target, marks=[pytest.mark.xfail(strict=True)] if (name, target) in SPILLS else [])
    for name in KERNELS
    for target in TARGETS
]


@pytest.mark.parametrize(("name", "target"), CASES)
def test_no_spill_in_the_inner_loop(name: str, target: str, tmp_path: Path) -> None:
    machine = load_target(target)
    loops = innermost_loops(assembly_of(KERNELS[name](machine.machine.lanes), machine, tmp_path))
    heavy = [loop for loop in loops if loop.multiply_adds >= max(FEW, len(loop.instructions) / 4)]
    assert heavy, "the kernel's loop was not recognised"
    assert [loop.stack_accesses for loop in heavy if loop.stack_accesses] == []


@pytest.mark.parametrize("name", ["1x1, 14x14", "3x3, 28x28", "gemm, 196 rows", "bmm"])
def test_arm_multiplies_by_lane(name: str, tmp_path: Path) -> None:
    """At most 1.35 instructions for a multiply-add of 4 lanes; a load for each scalar would make it 1.5 and more."""
    target = load_target("linux-arm64")
    loops = innermost_loops(assembly_of(KERNELS[name](4), target, tmp_path))
    heavy = max(loops, key=lambda loop: loop.multiply_adds)
    assert len(heavy.instructions) <= 1.35 * heavy.multiply_adds
