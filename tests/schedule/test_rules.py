"""What holds for every rule: its space, its choice, and that no configuration changes a number."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
import tvm
from kernel_running import AVX2, MACHINES, NEON, host, kernel, placeholders, random, relative_error, run
from tvm import te, tirx

from xnncc.codegen.lower_kernel import lower_kernel
from xnncc.kernels import conv2d, conv2d_filter, depthwise, matmul, pool, winograd
from xnncc.kernels.spatial import Window
from xnncc.schedule import RULES, schedule_kernel, tuning_space
from xnncc.schedule.blocks import main_block, schedule_of
from xnncc.schedule.records import config_fields
from xnncc.target import Machine

AVX512 = Machine(lanes=16, registers=32, l2_kib=1024)
# Every configuration of a space adds the same products, in another order at most for passes over input blocks.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Case:
    """A small kernel that one rule answers to."""

    rule: str
    lanes: int
    func: tirx.PrimFunc
    inputs: tuple[np.ndarray, ...]


def _case(rule: str, lanes: int, fn: object, *shapes: tuple[int, ...]) -> Case:
    inputs = tuple(random(i, *shape) for i, shape in enumerate(shapes))
    args = placeholders(*inputs)
    return Case(rule, lanes, kernel(*args, fn(*args)), inputs)


def _relu(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: tirx.max(x(*i), tirx.const(0.0, "float32")), "relu")


def _conv(v: int, blocks: tuple[int, int], image: tuple[int, int], k: int = 3, stride: int = 1, n: int = 1) -> Case:
    """A convolution and the relu that fusion leaves behind it."""
    (cb, ob), (h, w), pad = blocks, image, k // 2
    win = Window(image, (k, k), (stride, stride), (pad,) * 4, (-(-h // stride), -(-w // stride)))
    shapes = (n, cb, h * w, v), (ob, cb, k, k, v, v), (ob, v)
    return _case("conv2d", v, lambda *t: _relu(conv2d.f32_conv2d(*t, win)), *shapes)


def _filter(v: int, taps: int, pixels: int) -> Case:
    win = Window((1, taps + pixels - 1), (1, taps), (1, 1), (0, 0, 0, 0), (1, pixels))
    shapes = (2, 1, 1, taps + pixels - 1), (1, 1, 1, -(-taps // v), v), (1,)
    return _case("conv2d_filter", v, lambda *t: _relu(conv2d_filter.f32_conv2d_filter(*t, win)), *shapes)


def _winograd(v: int, m: int, image: tuple[int, int]) -> Case:
    win = Window(image, (3, 3), (1, 1), (1, 1, 1, 1), image)
    shapes = (1, 2, image[0] * image[1], v), ((m + 2) ** 2, 2, 2, v, v), (2, v)
    return _case("winograd", v, lambda *t: _relu(winograd.f32_conv2d_winograd(*t, win, m)), *shapes)


def _depthwise(v: int, image: tuple[int, int], k: int, stride: int) -> Case:
    (h, w), pad = image, k // 2
    win = Window(image, (k, k), (stride, stride), (pad,) * 4, (-(-h // stride), -(-w // stride)))
    return _case(
        "depthwise", v, lambda *t: _relu(depthwise.f32_depthwise(*t, win)), (1, 3, h * w, v), (3, k, k, v), (3, v)
    )


def _pool(v: int, is_max: bool) -> Case:
    win = Window((6, 9), (3, 3), (1, 1), (1, 1, 1, 1), (6, 9))
    return _case("pool", v, lambda x: pool.f32_pool2d(x, win, is_max), (2, 2, 54, v))


CASES = {
    "conv 3x3": lambda: _conv(8, (2, 4), (4, 6)),
    "conv 3x3 stride 2": lambda: _conv(4, (2, 2), (6, 10), stride=2, n=2),
    "conv 1x1": lambda: _conv(8, (2, 4), (2, 14), k=1),
    "conv in pieces of the image": lambda: _conv(4, (2, 16), (60, 4), k=1, n=1),
    "conv in passes": lambda: _conv(8, (32, 4), (2, 3)),
    "conv of long windows": lambda: _filter(4, 70, 13),
    "winograd 2": lambda: _winograd(4, 2, (4, 7)),
    "winograd 4": lambda: _winograd(8, 4, (8, 8)),
    "depthwise": lambda: _depthwise(8, (4, 12), 3, 1),
    "depthwise stride 2": lambda: _depthwise(4, (6, 10), 3, 2),
    "depthwise 7x7": lambda: _depthwise(8, (7, 6), 7, 1),
    "max pool": lambda: _pool(8, True),
    "mean pool": lambda: _pool(4, False),
    "global mean": lambda: _case("global_mean", 8, pool.f32_global_mean, (2, 6, 7, 8)),
    "gemv": lambda: _case("gemv", 8, lambda *t: matmul.f32_gemv(*t, 45), (1, 12), (6, 12, 8), (6, 8)),
    "gemm": lambda: _case("gemm", 8, lambda *t: matmul.f32_gemm(*t), (12, 10), (4, 10, 8), (4, 8)),
    "bmm": lambda: _case("bmm", 4, lambda *t: matmul.f32_bmm(*t, 4), (2, 6, 5), (2, 5, 14)),
}


def _machine(name: str, lanes: int) -> Machine:
    """Return a machine whose second cache is small enough that convolutions are cut into pieces."""
    small = Machine(lanes=4, registers=32, l2_kib=4)
    return small if name == "conv in pieces of the image" else MACHINES[lanes]


def _extents(func: tirx.PrimFunc) -> list[str]:
    """Return what stands in the parentheses of every loop of ``func``."""
    return re.findall(r"for .+ in (?:range|T\.\w+)\((.*)\):", func.script())


@pytest.mark.parametrize("name", CASES)
def test_every_configuration_computes_what_the_unscheduled_kernel_does(name: str) -> None:
    case = CASES[name]()
    machine, rule = _machine(name, case.lanes), RULES[case.rule]
    expected = run(case.func, *case.inputs, optimised=False)
    _, found, numbers = main_block(schedule_of(case.func))
    assert found == case.rule
    configs = rule.space(numbers, machine)
    assert 1 <= len(configs) <= 12 and len(set(configs)) == len(configs)
    for config in configs:
        sch = schedule_of(case.func)
        block, _, numbers = main_block(sch)
        rule.apply(sch, block, numbers, machine, config)
        scheduled = sch.mod["main"]
        lowered = lower_kernel(scheduled, "kernel", host())
        (func,) = lowered.module.functions.values()
        assert all(re.fullmatch(r"[\d, ]+", extent) for extent in _extents(func)), (config, _extents(func))
        # A kernel whose loops are not vectors is right and useless.
        assert re.search(rf"float(32|64)x{case.lanes}\b", func.script()), f"{config}: no vectors of {case.lanes} lanes"
        assert relative_error(run(scheduled, *case.inputs), expected) < TOLERANCE, config


def _one_of_each(configs: list) -> list:
    """Return the first configuration with each value of each field."""
    found: dict[tuple[str, object], object] = {}
    for config in configs:
        for name, value in config_fields(config).items():
            found.setdefault((name, value), config)
    return list(dict.fromkeys(found.values()))


@pytest.mark.parametrize("name", [n for n in CASES if hasattr(RULES[CASES[n]().rule], "wider")])
def test_what_tuning_may_try_computes_the_same(name: str) -> None:
    """One configuration with each value of each field, of those that the space itself has not."""
    case = CASES[name]()
    machine, rule = _machine(name, case.lanes), RULES[case.rule]
    expected = run(case.func, *case.inputs, optimised=False)
    numbers = main_block(schedule_of(case.func))[2]
    space, wide = rule.space(numbers, machine), tuning_space(rule, numbers, machine)
    assert wide[: len(space)] == space and len(set(wide)) == len(wide) <= 400
    for config in _one_of_each(wide[len(space) :]):
        sch = schedule_of(case.func)
        block, _, numbers = main_block(sch)
        rule.apply(sch, block, numbers, machine, config)
        scheduled = sch.mod["main"]
        (func,) = lower_kernel(scheduled, "kernel", host()).module.functions.values()
        assert all(re.fullmatch(r"[\d, ]+", extent) for extent in _extents(func)), (config, _extents(func))
        assert relative_error(run(scheduled, *case.inputs), expected) < TOLERANCE, config


def test_the_cases_reach_the_special_configurations() -> None:
    def configs(name: str) -> list:
        case = CASES[name]()
        return RULES["conv2d"].space(main_block(schedule_of(case.func))[2], _machine(name, case.lanes))

    assert any(c.pass_blocks for c in configs("conv in passes"))
    assert any(c.chunk > 1 for c in configs("conv in pieces of the image"))
    assert any(c.ob > 1 for c in configs("conv 3x3")) and any(c.ht > 1 for c in configs("conv 3x3"))


@pytest.mark.parametrize("name", CASES)
def test_the_choice_is_the_first_configuration_and_always_the_same(name: str) -> None:
    case = CASES[name]()
    machine = _machine(name, case.lanes)
    first, again = schedule_kernel(case.func, machine), schedule_kernel(case.func, machine)
    config = RULES[case.rule].space(main_block(schedule_of(case.func))[2], machine)[0]
    assert (first.rule, first.reason) == (case.rule, f"analytic {config}")
    assert first.reason == again.reason
    tvm.ir.assert_structural_equal(first.func, again.func)


@pytest.mark.parametrize(
    "machine", [AVX2, NEON, AVX512, Machine(lanes=4, registers=16)], ids=lambda m: f"{m.lanes}x{m.registers}"
)
@pytest.mark.parametrize("rule", RULES)
def test_no_space_is_empty(rule: str, machine: Machine) -> None:
    """Over all the sizes that occur: primes, ones, more blocks than registers."""
    sizes = [1, 2, 7, 13, 31, 56, 97, 112, 480]
    for ow in sizes:
        for ob in (1, 3, 8, 13, 64):
            numbers = {
                "oh": ow, "ow": ow, "ic": 64, "ib": 8, "taps": 9, "ob": ob, "x_bytes": 1 << 20, "sh": 1, "kh": 3,
                "ph": ow + 2, "plane_bytes": (ow + 2) ** 2 * 32, "nb": ob, "k": 100, "n": 8 * ob,
                "m": 4 if rule == "winograd" else ow, "th": -(-ow // 4), "tw": -(-ow // 4),
                "half": ow, "cb": 4, "pieces": 1, "pixels": 2 * ow,
            }  # fmt: skip
            configs = RULES[rule].space(numbers, machine)
            assert 1 <= len(configs) <= 12, (ow, ob)


def test_rules_are_known_by_their_names() -> None:
    assert {name: rule.NAME for name, rule in RULES.items()} == {name: name for name in RULES}
