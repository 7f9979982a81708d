"""Every operator and attribute against what TensorFlow 2.21 computed for it (stored), twice: the imported module and
the numpy formulas that stand in for TensorFlow; and once more after CancelTransposes."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_cases import error_of, operator_cases
from tvm import relax

from xnncc.frontends.evaluate import evaluate
from xnncc.frontends.tensorflow import load_graph_def
from xnncc.frontends.tensorflow.read import parse_graph_def
from xnncc.frontends.tensorflow.reference import NumpyReference
from xnncc.transform.cancel_transposes import CancelTransposes

CASES = operator_cases()
TOLERANCE = 1e-5  # sums of at most a hundred terms in float32, in another order


@pytest.mark.parametrize("name", CASES)
def test_matches_tensorflow(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = tmp_path / "net.pb"
    path.write_bytes(case.graph)
    imported = load_graph_def(path, case.shapes, None, check=False)
    assert [info.name for info in imported.outputs] == list(case.expected)
    feeds = [case.feeds[info.name] for info in imported.inputs]
    found, _ = evaluate(imported.mod, feeds)
    theirs = NumpyReference(path, parse_graph_def(case.graph, path), imported.outputs).run(case.feeds)
    moved = CancelTransposes()(relax.transform.CanonicalizeBindings()(imported.mod))
    after, _ = evaluate(moved, feeds)
    for info, ours, cancelled in zip(imported.outputs, found, after, strict=True):
        assert (info.shape, info.dtype) == (ours.shape, str(ours.dtype))
        assert error_of(theirs[info.name], case.expected[info.name]) <= TOLERANCE, "numpy's formula"
        assert error_of(ours, case.expected[info.name]) <= TOLERANCE, "the imported module"
        assert error_of(cancelled, case.expected[info.name]) <= TOLERANCE, "after CancelTransposes"
