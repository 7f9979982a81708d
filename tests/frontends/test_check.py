"""The check: wrong modules are caught and the first wrong tensor is named; samples are looked at."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tvm import relax

from xnncc.errors import BadInput, ImportCheckFailed
from xnncc.frontends.check import check_import, relative_error
from xnncc.frontends.imported import Imported
from xnncc.frontends.network import NetworkBuilder
from xnncc.ir.plan import TensorInfo

X = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
X_INFO = TensorInfo("x", (2, 3), "float32")


class Runtime:
    """A reference that computes a = exp(x), y = -a."""

    name = "a test's runtime"

    def run(self, feeds):
        return {"y": -np.exp(feeds["x"])}

    def tensors(self, feeds, names):
        return {name: value for name, value in {"a": np.exp(feeds["x"]), **self.run(feeds)}.items() if name in names}


def imported(first=relax.op.exp, second=relax.op.negative, runtime=None):
    build = NetworkBuilder()
    a = build.emit(first(build.input("x", (2, 3), "float32")), "a")
    y = build.emit(second(a), "y")
    info = (X_INFO,), (TensorInfo("y", (2, 3), "float32"),)
    return Imported(build.finish([y]), *info, Path("m.onnx"), frozenset({"a", "y"}), runtime or Runtime())


def test_right_module_passes():
    report = check_import(imported())
    assert report.max_relative_error < 1e-6 and report.runs == 1 and list(report.per_output) == ["y"]


@pytest.mark.parametrize(
    ("first", "second", "culprit"), [(relax.op.sin, relax.op.negative, "a"), (relax.op.exp, relax.op.abs, "y")]
)
def test_wrong_module_names_output_and_first_tensor(first, second, culprit):
    with pytest.raises(ImportCheckFailed) as failure:
        check_import(imported(first, second))
    assert "m.onnx: output 'y': differs from a test's runtime by" in str(failure.value)
    assert f"the first tensor that differs is '{culprit}'" in str(failure.value)


def test_wrong_dtype_or_shape_is_told():
    runtime = Runtime()
    runtime.run = lambda feeds: {"y": np.zeros((3, 2), "float64")}
    with pytest.raises(ImportCheckFailed, match=r"is \[2, 3\] float32, a test's runtime gives \[3, 2\] float64"):
        check_import(imported(runtime=runtime))


def test_samples_must_fit():
    with pytest.raises(BadInput, match=r"sample 'xx': the model has no such input; did you mean 'x'\?"):
        check_import(imported(), {"xx": X})
    with pytest.raises(BadInput, match=r"sample 'x': is \[1, 3\] float32, the model takes \[2, 3\] float32"):
        check_import(imported(), {"x": X[:1]})
    with pytest.raises(BadInput, match=r"input 'z' is missing\. Inputs: 'x', 'z'"):
        check_import(dataclasses.replace(imported(), inputs=(X_INFO, TensorInfo("z", (1,), "float32"))), {"x": X})


@pytest.mark.parametrize(
    ("ours", "theirs", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0), ([1.0, 2.1], [1.0, 2.0], 0.05), ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [0.0, 1.0], np.inf), ([0.0, np.inf], [0.0, np.inf], 0.0),
        ([0.0, -np.inf], [0.0, np.inf], np.inf), ([1e-6, 0.0], [0.0, 0.0], 1e-4),
    ],
)  # fmt: skip
def test_relative_error(ours, theirs, error):
    assert relative_error(np.array(ours), np.array(theirs)) == pytest.approx(error, rel=1e-3)


def test_integers_differ_by_whole_numbers():
    assert relative_error(np.array([1, 5]), np.array([1, 3])) == 2
