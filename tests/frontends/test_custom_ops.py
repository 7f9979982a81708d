"""Operators of the user's own in ONNX graphs; the plugin of docs/plugins.md is the one that is tested."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from xnncc.errors import ImportCheckFailed, PluginError, UnsupportedModel
from xnncc.frontends import load_model
from xnncc.frontends.custom_ops import load_plugins

DOCS = Path(__file__).parents[2] / "docs" / "plugins.md"


@pytest.fixture
def plugin(registries: None, tmp_path: Path) -> Path:
    """The plugin that docs/plugins.md shows."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "swirl.py"
    path.write_text(code)
    return path


def _model(path: Path, operator: str = "Swirl", **attributes: float) -> Path:
    """x [1, 3, 6, 6] -> Conv -> Swirl -> Relu6-free mean y [1, 4, 1, 1]."""
    kernel = numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype("float32"), "k")
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], name="conv1"),
        helper.make_node(operator, ["c"], ["s"], name="swirl1", domain="com.example", **attributes),
        helper.make_node("GlobalAveragePool", ["s"], ["y"], name="pool1"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 6, 6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 1, 1])
    graph = helper.make_graph(nodes, "g", [x], [y], [kernel])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_the_plugin_of_the_manual_is_imported_and_checked(plugin: Path, tmp_path: Path) -> None:
    model = _model(tmp_path / "m.onnx", slope=0.5)
    with pytest.raises(UnsupportedModel, match=r"com.example.Swirl \(node 'swirl1'\)"):
        load_model(model)
    load_plugins([plugin])
    imported = load_model(model)
    assert imported.check is not None and imported.check.max_relative_error < 1e-6
    x = np.random.default_rng(1).standard_normal((1, 3, 6, 6)).astype("float32")
    found = imported.reference_tensors({"x": x}, ["c", "s"])
    expected = np.where(found["c"] > 0, found["c"], np.float32(0.5) * found["c"] ** 2)
    np.testing.assert_allclose(found["s"], expected, rtol=1e-6)
    assert "with the plugin's com.example.Swirl" in imported.runtime.name


def test_a_wrong_reference_is_found_by_the_check(plugin: Path, tmp_path: Path) -> None:
    plugin.write_text(plugin.read_text().replace("np.where(x > 0, x,", "np.where(x > 0, 2 * x,"))
    load_plugins([plugin])
    with pytest.raises(ImportCheckFailed, match="the first tensor that differs is 's'"):
        load_model(_model(tmp_path / "m.onnx", slope=0.5))


def test_without_a_reference_its_own_code_is_the_judge(plugin: Path, tmp_path: Path) -> None:
    plugin.write_text(plugin.read_text().replace(", reference=swirl_in_numpy", ""))
    (op,) = load_plugins([plugin])
    assert op.reference is None
    imported = load_model(_model(tmp_path / "m.onnx", slope=0.5))
    assert imported.check is not None and imported.check.max_relative_error < 1e-6


TWO_OUTPUTS = """
import xnncc
from tvm import te

@xnncc.custom_op("com.example::Swirl")
def swirl(call, x):
    assert call.shapes == ((1, 4, 4, 4),) and call.dtypes == ("float32",) and len(call.constants) == 1
    double = te.compute(x.shape, lambda *i: x(*i) * 2.0, name="double")
    return double, te.compute(x.shape, lambda *i: x(*i) + 1.0, name="one_more")
"""

TENSOR_IR = """
import xnncc
from tvm import te

@xnncc.custom_op("com.example::Swirl", reference=lambda call, x: x * 3)
def swirl(call, x):
    y = te.compute(x.shape, lambda *i: x(*i) * 3.0, name="y")
    return te.create_prim_func([x, y])
"""


@pytest.mark.parametrize("code", [TWO_OUTPUTS, TENSOR_IR], ids=["two outputs", "TensorIR"])
def test_what_the_function_may_return(code: str, registries: None, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(code)
    load_plugins([tmp_path / "p.py"])
    imported = load_model(_model(tmp_path / "m.onnx"))
    assert imported.check is not None and imported.check.max_relative_error < 1e-6


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 5", "gives [5] for it, no te.Tensor and no PrimFunc"),
        ("return te.compute((4,), lambda i: x[i, i, i, i] / call.attributes['nope'])", "raises KeyError: 'nope'"),
    ],
)
def test_a_function_that_is_wrong_is_told_by_its_file(body: str, words: str, registries: None, tmp_path: Path) -> None:
    text = f"import xnncc\nfrom tvm import te\n\n@xnncc.custom_op('com.example::Swirl')\ndef f(call, x):\n    {body}\n"
    (tmp_path / "p.py").write_text(text)
    load_plugins([tmp_path / "p.py"])
    with pytest.raises(UnsupportedModel) as caught:
        load_model(_model(tmp_path / "m.onnx"))
    assert words in str(caught.value) and "node 'swirl1'" in str(caught.value) and "p.py" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "it registers no operator"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("def f(:\n", "SyntaxError"),
        (
            "import xnncc\nxnncc.custom_op('Conv', formats=('onnx',))(len)\n",
            "operator 'Conv': xnncc has its own for onnx",
        ),
        ("import xnncc\nxnncc.custom_op('Mine', formats=('onxn',))(len)\n", "no format 'onxn'"),
    ],
)
def test_plugins_that_cannot_be_loaded(text: str, words: str, registries: None, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(text)
    with pytest.raises(PluginError) as caught:
        load_plugins([tmp_path / "p.py"])
    assert words in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"--plugin .*p\.py: no such Python file"):
        load_plugins([tmp_path / "p.py"])


def test_two_plugins_for_one_operator_are_refused_and_one_twice_is_fine(plugin: Path, tmp_path: Path) -> None:
    load_plugins([plugin])
    load_plugins([plugin])
    (tmp_path / "other.py").write_text(plugin.read_text())
    with pytest.raises(PluginError, match=r"swirl.py and .*other.py both register it"):
        load_plugins([tmp_path / "other.py"])


def test_what_a_file_no_longer_registers_is_gone(plugin: Path, tmp_path: Path) -> None:
    load_plugins([plugin])
    plugin.write_text(plugin.read_text().replace("com.example::Swirl", "com.example::Twirl"))
    assert [op.kind for op in load_plugins([plugin])] == ["com.example.Twirl"]
    with pytest.raises(UnsupportedModel, match="the plugin no longer registers it"):
        load_model(_model(tmp_path / "m.onnx", slope=0.5))
