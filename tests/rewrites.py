"""What every rewrite of a flat network is checked for, and small helpers to build one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax

from xnncc.frontends.evaluate import evaluate
from xnncc.transform.flat_network import FlatNetwork

_SEEDS = iter(range(1 << 30))


def constant(*shape: int) -> relax.Expr:
    """Return a new float32 constant with values in [-1, 1]."""
    return relax.const(np.random.default_rng(next(_SEEDS)).uniform(-1, 1, shape).astype("float32"))


def operators(mod: tvm.IRModule) -> list[str]:
    """Return the names of the operators of ``main`` in order."""
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    return [b.value.op.name.rpartition(".")[2] for b in bindings if isinstance(b.value, tvm.ir.Call)]


def check_rewrite(
    rewrite: Callable[[tvm.IRModule], tvm.IRModule], mod: tvm.IRModule, shape: tuple[int, ...]
) -> tvm.IRModule:
    """Return ``rewrite(mod)`` for one input of ``shape``: same numbers but for rounding, names of results kept, and
    twice is once."""
    before = FlatNetwork(mod).module()
    after = rewrite(mod)
    assert rewrite(after) is after
    names = [[out.name for out in one["main"].body.body.fields] for one in (before, after)]
    assert names[0] == names[1]
    x = np.random.default_rng(9).standard_normal(shape).astype("float32")
    for expected, found in zip(evaluate(before, [x])[0], evaluate(after, [x])[0], strict=True):
        assert expected.shape == found.shape
        assert np.abs(expected - found).max() <= 2e-5 * np.abs(expected).max()  # float32, sums in another order
    return after
