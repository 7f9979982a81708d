"""The analytic choice keeps its register tile in registers: no innermost loop of multiply-adds touches the stack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from assembly import assembly_of, innermost_loops
from kernel_running import kernel
from tvm import te, tirx

from xnncc.ir.tiles import padded_blocks, padded_pixels, side_by_side
from xnncc.kernels import conv2d, matmul, winograd
from xnncc.kernels.spatial import Window
from xnncc.target import Machine, list_targets, load_target

# Wasm has no registers of its own: its engine allocates them.
TARGETS = sorted(name for name in list_targets() if load_target(name).toolchain.kind != "wasm")
FEW = (
    8  # multiply-adds from which a loop, a quarter of which they are and which subtracts nothing, is a register tile's
)


def _tensors(*shapes: tuple[int, ...]) -> list[te.Tensor]:
    return [te.placeholder(shape, "float32", f"t{i}") for i, shape in enumerate(shapes)]


def _conv(
    machine: Machine, channels: tuple[int, int], image: tuple[int, int], k: int, stride: int = 1
) -> tirx.PrimFunc:
    (c, o), (h, w), pad, v = channels, image, k // 2, machine.lanes
    win = Window(image, (k, k), (stride, stride), (pad,) * 4, ((h - 1) // stride + 1, (w - 1) // stride + 1))
    blocks = -(-o // v)
    pixels = padded_pixels(h * w, blocks, machine)
    g = side_by_side(blocks, *((1, pixels) if win.is_pointwise else win.out), machine)
    args = _tensors((1, -(-c // v), h * w, v), (blocks // g, -(-c // v), k, k, v, g * v), (blocks, v))
    return kernel(*args, conv2d.f32_conv2d(*args, win, pixels=pixels))


def _winograd(machine: Machine, m: int) -> tirx.PrimFunc:
    win, v = Window((28, 28), (3, 3), (1, 1), (1, 1, 1, 1), (28, 28)), machine.lanes
    blocks = 64 // v
    g = side_by_side(blocks, 1, (28 // m) ** 2, machine)
    args = _tensors((1, blocks, 784, v), ((m + 2) ** 2, blocks // g, blocks, v, g * v), (blocks, v))
    return kernel(*args, winograd.f32_conv2d_winograd(*args, win, m))


def _gemm(machine: Machine, m: int, k: int, n: int) -> tirx.PrimFunc:
    blocks, v = n // machine.lanes, machine.lanes
    g = side_by_side(blocks, 1, m, machine)
    args = _tensors((m, k), (blocks // g, k, g * v), (blocks, v))
    return kernel(*args, matmul.f32_gemm(*args))


def _bmm(machine: Machine) -> tirx.PrimFunc:
    args = _tensors((3, 196, 64), (3, 64, 196))
    g = padded_blocks(-(-196 // machine.lanes), 196, machine)
    return kernel(*args, matmul.f32_bmm(*args, machine.lanes, g))


def _first(machine: Machine, o: int, image: tuple[int, int], k: int) -> tirx.PrimFunc:
    (h, w), v, pad = image, machine.lanes, k // 2
    by_lane = machine.multiplies_by_lane and machine.registers >= 32
    g = 4 if by_lane else side_by_side(o // v, h // 2, w // 2, machine)
    win = Window(image, (k, k), (2, 2), (pad,) * 4, (h // 2, w // 2))
    args = _tensors((1, 3, h, w), (o // v // g, 1, k, k, 3, g * v), (o // v, v))
    return kernel(*args, conv2d.f32_conv2d_first(*args, win, by_lane))


KERNELS: dict[str, Callable[[Machine], tirx.PrimFunc]] = {
    "1x1, 14x14": lambda m: _conv(m, (512, 512), (14, 14), 1),
    "1x1, 56x56": lambda m: _conv(m, (128, 128), (56, 56), 1),
    "1x1, 7x7": lambda m: _conv(m, (1024, 1024), (7, 7), 1),
    "1x1, 13x13": lambda m: _conv(m, (512, 1024), (13, 13), 1),
    "3x3, 28x28": lambda m: _conv(m, (128, 128), (28, 28), 3),
    "3x3, stride 2": lambda m: _conv(m, (64, 128), (56, 56), 3, 2),
    "winograd 2": lambda m: _winograd(m, 2),
    "winograd 4": lambda m: _winograd(m, 4),
    "gemm, 196 rows": lambda m: _gemm(m, 196, 192, 768),
    "bmm": _bmm,
}
FIRST_LAYERS: dict[str, Callable[[Machine], tirx.PrimFunc]] = {
    "first 7x7": lambda m: _first(m, 64, (224, 224), 7),
    "first 3x3": lambda m: _first(m, 32, (224, 224), 3),
}
LANES_OF_PIXELS = [
    name
    for name in TARGETS
    if load_target(name).machine.multiplies_by_lane and load_target(name).machine.registers == 32
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_no_spill_in_the_inner_loop(name: str, target: str, tmp_path: Path) -> None:
    machine = load_target(target)
    loops = innermost_loops(assembly_of(KERNELS[name](machine.machine), machine, tmp_path))
    tiles = [loop for loop in loops if not loop.subtracts]  # a transformation's 36 vectors fit no register file
    heavy = [loop for loop in tiles if loop.multiply_adds >= max(FEW, len(loop.instructions) / 4)]
    assert heavy, "the kernel's loop was not recognised"
    assert [loop.stack_accesses for loop in heavy if loop.stack_accesses] == []


@pytest.mark.parametrize("target", LANES_OF_PIXELS)
@pytest.mark.parametrize("name", FIRST_LAYERS)
def test_first_layers_keep_a_row_of_the_window(name: str, target: str, tmp_path: Path) -> None:
    machine = load_target(target)
    loops = innermost_loops(assembly_of(FIRST_LAYERS[name](machine.machine), machine, tmp_path))
    heavy = max(loops, key=lambda loop: loop.multiply_adds)
    assert heavy.stack_accesses == () and len(heavy.instructions) <= 1.3 * heavy.multiply_adds


@pytest.mark.parametrize("name", ["1x1, 14x14", "3x3, 28x28", "gemm, 196 rows", "bmm"])
def test_arm_multiplies_by_lane(name: str, tmp_path: Path) -> None:
    """At most 1.35 instructions for a multiply-add of 4 lanes; a load for each scalar would make it 1.5 and more."""
    target = load_target("linux-arm64")
    loops = innermost_loops(assembly_of(KERNELS[name](target.machine), target, tmp_path))
    heavy = max(loops, key=lambda loop: loop.multiply_adds)
    assert len(heavy.instructions) <= 1.35 * heavy.multiply_adds
