"""A user's own layer: its bottoms and blobs are operands, its messages are tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

TEXT = """
name: "n" input: "a" input_shape { dim: 2 dim: 3 } input: "b" input_shape { dim: 2 dim: 3 }
layer { name: "sum" type: "MyPlus" bottom: "a" bottom: "b" top: "s"
  my_param { scale: 0.5 steps: 3 steps: 4 fast: true mode: "x" inner { deep: 1 } } }
layer { name: "act" type: "ReLU" bottom: "s" top: "y" }
"""


def test_a_layer_of_the_users_own(my_plus: Callable, load: Callable) -> None:
    blob = np.arange(6, dtype="float32").reshape(2, 3)
    feeds = {"a": np.full((2, 3), -3, "float32"), "b": np.ones((2, 3), "float32")}
    imported = load(TEXT, {"sum": [blob]}, feeds)
    assert imported.check is not None and imported.check.max_relative_error == 0
    assert not imported.warnings
    np.testing.assert_array_equal(imported.reference(feeds)["y"], [[0, 0, 0], [1, 2, 3]])
    call = my_plus()[0]
    assert (call.kind, call.name, call.shapes) == ("MyPlus", "sum", ((2, 3),) * 3)
    assert call.constants[:2] == (None, None) and np.array_equal(call.constants[2], blob)
    wanted = {"scale": 0.5, "steps": [3, 4], "fast": True, "mode": "x", "inner": {"deep": 1}}
    assert call.attributes == {"my_param": wanted}
