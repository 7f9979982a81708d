"""The reader of ``.xq``: an Imported with coded weights, its own judge, and fixed shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

from xnncc.errors import BadModel, ShapeError
from xnncc.frontends import load_model
from xnncc.ir.coded import CodedTensor, digest
from xnncc.ir.graph_records import record_module
from xnncc.pack.xq_file import XqFile, write_xq


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return data [1, 4] -> hidden [1, 6] (coded weights) -> out [1, 6]."""
    tensor = CodedTensor(np.arange(-12, 12, dtype=np.int32).reshape(4, 6), np.array([0.5], np.float32))

    builder, x = relax.BlockBuilder(), relax.Var("data", relax.TensorType((1, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            hidden = builder.emit(op.matmul(x, relax.const(tensor.values())), "hidden")
            out = builder.emit_output(relax.Tuple([builder.emit(op.nn.relu(hidden), "raw")]))
        builder.emit_func_output(out)
    records, arrays = record_module(builder.get())
    coded = {digest(tensor.values()): tensor}
    constants = [coded.get(digest(array), array) for array in arrays]
    write_xq(tmp_path / "net.xq", XqFile(records, constants, {"outputs": ["out"]}))
    return tmp_path / "net.xq"


def test_names_shapes_and_coded_weights(file: Path) -> None:
    imported = load_model(file)
    assert [(info.name, info.shape) for info in imported.inputs] == [("data", (1, 4))]
    assert [(info.name, info.shape) for info in imported.outputs] == [("out", (1, 6))]
    assert {"hidden", "raw"} <= set(imported.tensors)
    ((key, tensor),) = imported.coded.items()
    assert key == digest(tensor.values())


def test_it_is_its_own_judge(file: Path) -> None:
    imported = load_model(file)
    feeds = {"data": np.array([[1, 0, 0, -1]], "float32")}
    weights = np.arange(-12, 12).reshape(4, 6) * 0.5
    hidden = weights[0] - weights[3]
    assert imported.reference(feeds)["out"].tolist() == [np.maximum(hidden, 0).tolist()]
    assert imported.reference_tensors(feeds, ["hidden"])["hidden"].tolist() == [hidden.tolist()]


def test_shapes_are_fixed(file: Path) -> None:
    load_model(file, {"data": (1, 4)})
    with pytest.raises(ShapeError, match=r"compressed for \[1, 4\]"):
        load_model(file, {"data": (2, 4)})
    with pytest.raises(ShapeError, match="did you mean 'data'"):
        load_model(file, {"dat": (1, 4)})


def test_outputs_without_names_are_damage(file: Path) -> None:
    from xnncc.pack.xq_file import read_xq

    found = read_xq(file)
    write_xq(file, XqFile(found.records, found.constants, {"outputs": ["a", "b"]}))
    with pytest.raises(BadModel, match="1 outputs and the names"):
        load_model(file)
