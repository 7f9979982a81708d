"""A user's own operator in a frozen graph: numpy judges it, as TensorFlow does not know it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from graph_writing import const, graph, node, placeholder

from xnncc.frontends import load_model


def test_an_operator_of_the_users_own(my_plus: Callable, tmp_path: Path) -> None:
    weights = np.arange(6, dtype="float32").reshape(2, 3)
    nodes = (placeholder("x", (2, 3)), const("w", weights), node("s", "MyPlus", "x", "w", scale=0.5),
             node("y", "Relu", "s"))  # fmt: skip
    (tmp_path / "net.pb").write_bytes(graph(*nodes))
    imported = load_model(tmp_path / "net.pb")
    assert imported.check is not None and imported.check.max_relative_error == 0
    feeds = {"x": np.full((2, 3), -2, "float32")}
    np.testing.assert_array_equal(imported.reference(feeds)["y"], [[0, 0, 0], [1, 2, 3]])
    call = my_plus()[0]
    assert (call.name, call.attributes["scale"], call.shapes) == ("s", 0.5, ((2, 3), (2, 3)))
    assert call.constants[0] is None and np.array_equal(call.constants[1], weights)


def test_of_constants_it_is_computed_at_import(my_plus: Callable, tmp_path: Path) -> None:
    nodes = (placeholder("x", (2,)), const("a", [1.0, 2.0], "float32"), node("s", "MyPlus", "a", "a"),
             node("y", "Mul", "x", "s"))  # fmt: skip
    (tmp_path / "net.pb").write_bytes(graph(*nodes))
    imported = load_model(tmp_path / "net.pb")
    assert my_plus() == [], "nothing is emitted: the reference gave the constant"
    np.testing.assert_array_equal(imported.reference({"x": np.ones(2, "float32")})["y"], [2, 4])
