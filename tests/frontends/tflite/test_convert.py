"""What the operator loop promises: names, layouts, state, and that integers stay integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tflite_cases import CASES, IMAGE, r
from tflite_models import Call, Out, T, Writer, const, one_operator

from xnncc.errors import BadModel
from xnncc.frontends.check import check_import, first_difference
from xnncc.frontends.evaluate import evaluate
from xnncc.frontends.imported import Imported

Load = Callable[..., Imported]


def _chain(*calls: Call, channels: int = 4) -> bytes:
    """Return image x -> a -> y of three pointwise convolutions' shapes, with weights ``w`` at tensor 3."""
    w = Writer()
    shape = (1, 7, 6, channels)
    tensors = [w.tensor(name, shape, "float32") for name in ("image/x:0", "a;b", "y (out)")]
    weights = r(channels, 1, 1, channels)
    tensors.append(w.tensor("w", weights.shape, "float32", weights.tobytes()))
    tensors.append(w.tensor("bias", (channels,), "float32", r(channels).tobytes()))
    operators = [w.operator(call) for call in calls]
    return w.finish([w.graph(tensors, operators, [0], [2])])


ONE = {"stride_h": 1, "stride_w": 1}
TWO_CONVS = (Call("CONV_2D", [0, 3, 4], [1], ONE), Call("CONV_2D", [1, 3, 4], [2], ONE))


def _transposes(imported: Imported) -> int:
    return sum("permute_dims" in str(b.value) for block in imported.mod["main"].body.blocks for b in block.bindings)


def test_names_of_the_users_tensors_survive(load: Load) -> None:
    imported = load(_chain(*TWO_CONVS))
    assert [i.name for i in imported.inputs] == ["image/x:0"] and [o.name for o in imported.outputs] == ["y (out)"]
    assert {"a;b", "y (out)"} <= imported.tensors


def test_images_stay_planar_between_convolutions(load: Load) -> None:
    assert _transposes(load(_chain(*TWO_CONVS))) == 2  # in and out
    calls = (Call("CONV_2D", [0, 3, 4], [1], ONE), Call("ADD", [1, 4], [2]))
    assert _transposes(load(_chain(*calls))) == 2


def test_single_pixels_are_reshaped_not_transposed(load: Load) -> None:
    data, feeds = one_operator(
        "CONV_2D", T(r(1, 1, 1, 4)), const(r(3, 1, 1, 4)), const(r(3)), out=Out((1, 1, 1, 3)), **ONE
    )
    assert _transposes(load(data, feeds)) == 0


def test_intermediate_tensors_are_compared_in_the_modules_layout(load: Load) -> None:
    imported = load(_chain(*TWO_CONVS))
    feeds = {"image/x:0": IMAGE}
    assert imported.reference_tensors(feeds, ["a;b"])["a;b"].shape == (1, 4, 7, 6)
    assert first_difference(imported, feeds) == ""


def test_integers_stay_integers(load: Load) -> None:
    kinds = (
        "conv activation 1,depthwise,fully connected,ADD,MUL,softmax,AVERAGE_POOL_2D,mean,bilinear half,LOGISTIC,prelu"
    )
    names = [f"int8 {kind}" for kind in kinds.split(",")]
    for name in names:
        data, feeds = CASES[name]()
        imported = load(data, feeds, check=False)
        assert "float" not in imported.mod.script(), name


def test_the_own_runtime_is_named(load: Load) -> None:
    imported = load(_chain(*TWO_CONVS))
    assert imported.runtime.name.startswith(("xnncc's TFLite interpreter", "LiteRT"))
    assert imported.runtime.name.startswith("LiteRT") or any("not LiteRT" in text for text in imported.warnings)


def _counter(init: bool = True, dtype: str = "float32") -> bytes:
    """Return a network that adds x to variable 'total' and gives the sum; it starts as 1, 2."""
    w = Writer()
    tensors = [w.tensor("x", (2,), dtype), w.tensor("handle", (), "resource"), w.tensor("old", (2,), dtype),
               w.tensor("y", (2,), dtype)]  # fmt: skip
    calls = [Call("CALL_ONCE", [], [], {"init_subgraph_index": 1})] if init else []
    calls += [Call("VAR_HANDLE", [], [1], {"shared_name": "total"}), Call("READ_VARIABLE", [1], [2]),
              Call("ADD", [0, 2], [3]), Call("ASSIGN_VARIABLE", [1, 3], [])]  # fmt: skip
    start = [w.tensor("handle", (), "resource"), w.tensor("start", (2,), dtype, np.array([1, 2], dtype).tobytes())]
    begin = [Call("VAR_HANDLE", [], [0], {"shared_name": "total"}), Call("ASSIGN_VARIABLE", [0, 1], [])]
    main = w.graph(tensors, [w.operator(call) for call in calls], [0], [3])
    return w.finish([main, w.graph(start, [w.operator(call) for call in begin], [], [])])


def test_integer_variables_are_kept_by_the_runtime(load: Load) -> None:
    """As difference from their start: zero begins them."""
    imported = load(_counter(dtype="int32"))
    assert [i.name for i in imported.inputs] == ["x"] and [o.name for o in imported.outputs] == ["y"]
    assert [(a.name, b.name) for a, b in imported.states] == [("total", "total:next")]
    y, kept = evaluate(imported.mod, [np.array([3, 4], "int32"), np.zeros(2, "int32")])[0]
    assert y.tolist() == [4, 6] and kept.tolist() == [3, 4]


def test_real_variables_that_begin_elsewhere_become_inputs_and_outputs(load: Load) -> None:
    imported = load(_counter())
    assert [i.name for i in imported.inputs] == ["x", "total"]
    assert [o.name for o in imported.outputs] == ["y", "total:next"]
    assert any("'total' (starts as values of the file)" in text for text in imported.warnings)
    feeds = [np.array([3, 4], "float32"), np.array([10, 20], "float32")]
    y, after = evaluate(imported.mod, feeds)[0]
    assert y.tolist() == after.tolist() == [13, 24]


def test_a_variable_that_never_starts_is_refused(load: Load) -> None:
    with pytest.raises(BadModel, match="variable 'total' is read and never initialised"):
        load(_counter(init=False))


def test_a_wrong_import_is_named_by_its_tensor(load: Load) -> None:
    imported = load(_chain(*TWO_CONVS), check=False)
    assert check_import(imported).max_relative_error < 1e-6
