"""Constants by name, and the module again with others."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi
from channel_networks import ZOO, Net, op

from xnncc.compress.constants import constant_arrays, rebuilt
from xnncc.frontends.evaluate import evaluate


@pytest.mark.parametrize("name", ["joined", "transformer", "lstm"])
def test_rebuilt_with_the_same_constants_it_is_the_same_module(name: str) -> None:
    mod = ZOO[name]()
    again = rebuilt(mod, {key: array.copy() for key, array in constant_arrays(mod).items()})
    assert tvm_ffi.structural_equal(mod["main"], again["main"], map_free_vars=True)


def test_equal_arrays_have_names_of_their_own() -> None:
    n = Net()
    x = n.builder.input("x", (1, 4), "float32")
    zeros = [n.builder.constant(np.zeros(4, "float32")) for _ in range(2)]
    y = n.emit(op.multiply(n.emit(op.add(x, zeros[0]), "a"), n.w(4)), "b")
    mod = n.builder.finish([n.emit(op.add(y, zeros[1]), "c")])
    assert list(constant_arrays(mod)) == ["a.1", "b.1", "c.1"]
    other = rebuilt(mod, {"c.1": np.arange(4, dtype="float32")})
    feeds = [np.zeros((1, 4), "float32")]
    np.testing.assert_array_equal(evaluate(other, feeds)[0][0], [[0, 1, 2, 3]])


def test_shapes_follow_the_constants() -> None:
    mod = ZOO["chain"]()
    arrays = constant_arrays(mod)
    smaller = rebuilt(
        mod, {"c#1.1": arrays["c#1.1"][:, :5], "c.1": arrays["c.1"][:5], "logits#1.1": arrays["logits#1.1"][:5]}
    )
    assert evaluate(smaller, [np.zeros((1, 3, 8, 8), "float32")])[0][0].shape == (1, 10)
