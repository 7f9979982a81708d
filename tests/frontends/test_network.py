"""NetworkBuilder: names as given, one binding an operator, dead code gone."""

from __future__ import annotations

import numpy as np
from tvm import relax, te

from xnncc.frontends.network import NetworkBuilder, constant, dtype_of, shape_of


def bindings(mod):
    return [b for block in mod["main"].body.blocks for b in block.bindings]


def test_nested_calls_become_parts_of_the_named_tensor():
    build = NetworkBuilder()
    x = build.input("x:0", (2, 3), "float32")
    y = build.emit(relax.op.exp(relax.op.add(x, relax.op.negative(x))))
    build.rename(y, "y/1")
    mod = build.finish([y])
    assert [b.var.name for b in bindings(mod)] == ["y/1#2", "y/1#1", "y/1"]
    assert relax.analysis.check_well_formed(mod)


def test_a_tensor_keeps_its_first_name():
    build = NetworkBuilder()
    y = build.emit(relax.op.exp(build.input("x", (2,), "float32")))
    build.rename(y, "first")
    build.rename(y, "second")
    assert [b.var.name for b in bindings(build.finish([y]))] == ["first"]


def test_dead_bindings_and_kernels_are_dropped():
    build = NetworkBuilder()
    x = build.input("x", (2,), "float32")

    def times(factor):
        return lambda a: te.compute(a.shape, lambda i: a[i] * factor)

    build.emit(build.call_te(times(2), x, name="unused"))
    used = build.emit(build.call_te(times(3), x, name="used"))
    mod = build.finish([used, used, x])
    assert sorted(var.name_hint for var in mod.get_global_vars()) == ["main", "used"]
    assert len(mod["main"].ret_ty.fields) == 3


def test_tuples_are_taken_apart():
    build = NetworkBuilder()
    parts = build.emit(relax.op.split(build.input("x", (4,), "float32"), 2))
    joined = build.emit(relax.op.concat([relax.TupleGetItem(parts, 1), relax.TupleGetItem(parts, 0)]))
    assert relax.analysis.check_well_formed(build.finish([joined]))


def test_constants_keep_dtype_and_identity():
    build = NetworkBuilder()
    array = np.array([1], "int64")
    assert build.constant(array).same_as(build.constant(array))
    turned = [build.derived(array, "turned", lambda a: -a) for _ in range(2)]
    assert turned[0].same_as(turned[1])
    for dtype in ("int64", "float64", "float16", "bool", "uint8"):
        assert dtype_of(constant(np.zeros((), dtype))) == dtype
    assert shape_of(constant(np.zeros((2, 0), "float32"))) == (2, 0)
