"""Which kernels of two variants are one."""

from __future__ import annotations

from tvm import te, tirx

from xnncc.codegen.share_kernels import share_kernels


def _scaled(count: int, factor: float, symbol: str = "k") -> tirx.PrimFunc:
    x = te.placeholder((count,), name="x")
    y = te.compute((count,), lambda i: x[i] * factor, name="y")
    return te.create_prim_func([x, y]).with_attr("global_symbol", symbol)


def test_the_same_code_is_kept_once_whatever_its_name() -> None:
    first = {"a": _scaled(8, 2.0, "a"), "b": _scaled(8, 3.0, "b")}
    second = {"b": _scaled(8, 2.0, "b"), "c": _scaled(16, 2.0, "c")}
    kernels, names = share_kernels([first, second])
    assert list(kernels) == ["a", "b", "c_shape1"]
    assert names == [{"a": "a", "b": "b"}, {"b": "a", "c": "c_shape1"}]


def test_the_first_network_is_left_as_it_is() -> None:
    kernels, names = share_kernels([{"a": _scaled(8, 2.0), "b": _scaled(8, 2.0)}])
    assert list(kernels) == ["a", "b"] and names == [{"a": "a", "b": "b"}]


def test_names_stay_unique() -> None:
    kernels, names = share_kernels([{"a_shape1": _scaled(8, 2.0)}, {"a": _scaled(8, 4.0)}])
    assert list(kernels) == ["a_shape1", "a_shape1_"] and names[1] == {"a": "a_shape1_"}
