"""FuseKernels: every variable of the fused graph still says which tensors of the model it computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from network_running import check, module, target_of, variable
from tvm import relax
from tvm.relax import op

from xnncc.transform.fuse_kernels import fuse_kernels
from xnncc.transform.pipeline import lower_graph, prepare


def _fuse(build: Callable, *inputs: relax.Var) -> tuple[tvm.IRModule, list[tuple[str, ...]]]:
    """Return the fused module and the names of its kernel calls, in order."""
    with target_of(8).tvm_target():
        fused, names = fuse_kernels(relax.transform.LegalizeOps()(module(build, *inputs)))
    calls = [b for block in fused["main"].body.blocks for b in block.bindings if _is_kernel(b.value)]
    return fused, [names[b.var] for b in calls]


def _is_kernel(expr: object) -> bool:
    return isinstance(expr, tvm.ir.Call) and expr.op.name == "relax.call_tir"


def test_a_fused_kernel_names_all_that_it_computes() -> None:
    def build(emit: Callable, x: relax.Var) -> relax.Var:
        return emit(op.nn.relu(emit(op.exp(emit(op.add(x, x), "a")), "b")), "c")

    fused, names = _fuse(build, variable("x", (4, 8)))
    assert names == [("a", "b", "c")]
    assert len(fused.functions) == 2, "functions that nobody calls are gone"


def test_two_equal_groups_keep_their_own_names() -> None:
    """FuseOps makes one function of both groups; their operands tell them apart."""

    def build(emit: Callable, x: relax.Var, y: relax.Var) -> list[relax.Var]:
        first = emit(op.exp(emit(op.add(x, y), "a")), "b")
        second = emit(op.exp(emit(op.add(y, x), "c")), "d")
        return [first, second]

    fused, names = _fuse(build, variable("x", (4, 8)), variable("y", (4, 8)))
    assert names == [("a", "b"), ("c", "d")]
    assert len(fused.functions) == 2


def test_a_chain_of_equal_groups() -> None:
    def build(emit: Callable, x: relax.Var) -> relax.Var:
        for i in range(3):
            m = emit(op.sum(emit(op.exp(x), f"e{i}"), axis=[1], keepdims=True), f"s{i}")
            x = emit(op.subtract(x, m), f"x{i}")
        return x

    _, names = _fuse(build, variable("x", (4, 8)))
    assert [n for group in names for n in group] == [f"{k}{i}" for i in range(3) for k in "esx"]


def test_the_same_computation_twice_is_two_variables() -> None:
    def build(emit: Callable, x: relax.Var) -> list[relax.Var]:
        return [emit(op.exp(x), "first"), emit(op.exp(x), "second")]

    _, names = _fuse(build, variable("x", (4, 8)))
    assert names == [("first",), ("second",)]


def test_constants_tell_groups_apart() -> None:
    def build(emit: Callable, x: relax.Var) -> list[relax.Var]:
        return [emit(op.add(x, relax.const(np.full((4, 8), i, "float32"))), f"y{i}") for i in range(3)]

    _, names = _fuse(build, variable("x", (4, 8)))
    assert names == [("y0",), ("y1",), ("y2",)]


def test_kernels_of_several_outputs() -> None:
    def build(emit: Callable, x: relax.Var) -> list[relax.Var]:
        parts = emit(op.split(emit(op.exp(x), "e"), 2, axis=1), "parts")
        return [emit(op.nn.relu(emit(parts[1], "right")), "r"), emit(op.negative(emit(parts[0], "left")), "l")]

    _, names = _fuse(build, variable("x", (4, 8)))
    assert [group[-1] for group in names][-2:] in (["r", "l"], ["l", "r"])


def test_names_survive_the_whole_lowering() -> None:
    w = relax.const(np.ones((8, 3, 3, 3), "float32"))

    def build(emit: Callable, x: relax.Var) -> list[relax.Var]:
        y = emit(op.nn.conv2d(x, w, padding=1), "conv/out")
        z = emit(op.nn.relu(emit(op.add(y, relax.const(np.ones((1, 8, 1, 1), "float32"))), "conv/bias")), "act:0")
        flat = emit(op.reshape(z, (1, 512)), "flat")
        return [emit(op.nn.max_pool2d(z, 2, 2), "pool"), emit(op.nn.softmax(flat, -1), "s")]

    target = target_of(8)
    graph = lower_graph(prepare(module(build, variable("x", (1, 3, 8, 8)))), target.machine, target.tvm_target())
    claimed = {source for group in graph.sources.values() for source in group}
    assert {"conv/out", "conv/bias", "act:0", "pool", "s"} <= claimed
    assert {shape for shape, lanes in graph.packed.values() if lanes == 8} == {(1, 8, 8, 8), (1, 8, 4, 4)}


def test_what_the_names_claim_is_what_the_kernels_compute() -> None:
    """Two equal branches, one after the other, through shared functions: each tensor holds its own numbers."""
    w = relax.const(np.random.default_rng(0).standard_normal((8, 8, 1, 1)).astype("float32"))

    def build(emit: Callable, x: relax.Var) -> list[relax.Var]:
        out = []
        for i in range(3):
            x = emit(op.nn.relu(emit(op.nn.conv2d(x, w), f"c{i}")), f"r{i}")
            x = emit(op.multiply(emit(op.add(x, x), f"a{i}"), relax.const(np.float32(0.1))), f"m{i}")
            out.append(emit(op.exp(x), f"e{i}"))
        return out

    network = check(build, np.random.default_rng(1).standard_normal((1, 8, 3, 3)).astype("float32"))
    assert {"m0", "m1", "e0", "e1", "e2"} <= set(network.traced)
