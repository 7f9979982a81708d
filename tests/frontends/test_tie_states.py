"""tie_states: outputs that are inputs of the next run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tvm import relax

from xnncc.errors import BadInput
from xnncc.frontends import load_model
from xnncc.frontends.evaluate import evaluate
from xnncc.frontends.imported import Imported
from xnncc.frontends.tie_states import tie_states

sys.path.insert(0, str(Path(__file__).resolve().parent / "onnx"))
from onnx_models import info, model, node, save


def step(folder: Path) -> Imported:
    """``y, s:1 = x * s:0, x + s:0`` with s first among inputs and outputs; ``z`` is of another shape."""
    x = np.zeros((1, 2), "float32")
    nodes = [
        node("Add", ["x", "s:0"], ["s:1"]),
        node("Mul", ["x", "s:0"], ["y"]),
        node("Flatten", ["x"], ["z"], axis=0),
    ]
    inputs = [info("s:0", x), info("x", x)]
    outputs = [info("s:1", x), info("y", x), info("z", shape=[1, 2])]
    outputs[2] = info("z", shape=None)
    return load_model(save(model(nodes, inputs, outputs), folder / "step.onnx"), {}, None)


def test_states_stand_last_and_leave_the_signature(tmp_path: Path) -> None:
    imported = step(tmp_path)
    tied = tie_states(imported, ["s:0:s:1"])  # names may contain colons
    assert [i.name for i in tied.inputs] == ["x"]
    assert [o.name for o in tied.outputs] == ["y", "z"]
    assert [(a.name, b.name) for a, b in tied.states] == [("s:0", "s:1")]
    assert [p.name for p in tied.mod["main"].params] == ["x", "s:0"]
    assert relax.analysis.check_well_formed(tied.mod)
    x, s = np.array([[2.0, 3.0]], "float32"), np.array([[10.0, 20.0]], "float32")
    y, _, new = evaluate(tied.mod, [x, s])[0]
    assert y.tolist() == [[20.0, 60.0]]
    assert new.tolist() == [[12.0, 23.0]]


def test_reference_begins_at_zero(tmp_path: Path) -> None:
    tied = tie_states(step(tmp_path), ["s:0:s:1"])
    found = tied.reference({"x": np.array([[2.0, 3.0]], "float32")})
    assert found["y"].tolist() == [[0.0, 0.0]]
    assert found["s:1"].tolist() == [[2.0, 3.0]]
    assert tied.reference_tensors({"x": np.ones((1, 2), "float32")}, ["y"])["y"].tolist() == [[0.0, 0.0]]


def test_a_stream_hands_the_state_on(tmp_path: Path) -> None:
    """y = x * s, s' = x + s from zero: x of 2, 3, 4 gives y of 0, 6, 20."""
    tied = tie_states(step(tmp_path), ["s:0:s:1"])
    steps = [{"x": np.full((1, 2), value, "float32")} for value in (2, 3, 4)]
    assert [found["y"].tolist() for found in tied.reference_stream(steps)] == [[[v, v]] for v in (0.0, 6.0, 20.0)]


def test_without_states_every_run_stands_alone(tmp_path: Path) -> None:
    imported = step(tmp_path)
    steps = [{"x": np.full((1, 2), v, "float32"), "s:0": np.ones((1, 2), "float32")} for v in (2, 3)]
    assert [found["y"].tolist() for found in imported.reference_stream(steps)] == [[[2.0, 2.0]], [[3.0, 3.0]]]


def test_no_pairs_no_change(tmp_path: Path) -> None:
    imported = step(tmp_path)
    assert tie_states(imported, ()) is imported


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["s"], "--state 's': expected INPUT:OUTPUT. Write it like --state h:hn"),
        (["x:yy"], "--state 'x:yy': the model has no output 'yy'"),
        (["q:y"], "--state 'q:y': the model has no input 'q'"),
        (["x:y", "x:s:1"], "--state for 'x': it is in two pairs. Give each input and output once."),
        (["x:y", "s:0:y"], "--state for 'y': it is in two pairs. Give each input and output once."),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, pairs: Sequence[str], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        tie_states(step(tmp_path), pairs)
    assert str(caught.value).startswith(message)


def test_refuses_a_state_that_changes_its_shape(tmp_path: Path) -> None:
    x = np.zeros((1, 2), "float32")
    path = save(
        model([node("Flatten", ["x"], ["y"], axis=2)], [info("x", x)], [info("y", shape=None)]), tmp_path / "m.onnx"
    )
    with pytest.raises(BadInput, match=r"the input is \[1, 2\] float32, the output \[2, 1\] float32"):
        tie_states(load_model(path, {}, None), ["x:y"])
