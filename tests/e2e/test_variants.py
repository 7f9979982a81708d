"""One artefact for several widths: right at each, on the host, under emulators and in a wasm module; weights once."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from xnncc.errors import BadInput, ShapeError

pytestmark = pytest.mark.e2e

WIDTHS = (16, 40, 24)
CHANNELS = 24  # 3 x 3 over 24 channels is a Winograd convolution: prepared memory is shared too


def _wide(path: Path) -> Path:
    """x [1, 3, 8, width] -> two convolutions -> mean over the height -> dense for each column: y [1, width, 5]."""
    rng = np.random.default_rng(0)
    shapes = {"k1": (CHANNELS, 3, 3, 3), "k2": (CHANNELS, CHANNELS, 3, 3), "w": (CHANNELS, 5)}
    weights = [numpy_helper.from_array(rng.normal(0, 0.2, s).astype("float32"), n) for n, s in shapes.items()]
    nodes = [
        helper.make_node("Conv", ["x", "k1"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "k2"], ["c"], pads=[1] * 4),
        helper.make_node("ReduceMean", ["c"], ["d"], axes=[2], keepdims=0),
        helper.make_node("Transpose", ["d"], ["e"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["e", "w"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"], axis=-1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, "width"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, "width", 5])
    graph = helper.make_graph(nodes, "wide", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _wide(tmp_path_factory.mktemp("wide") / "wide.onnx")


@pytest.fixture(scope="module")
def built(model: Path) -> Any:
    from xnncc.build import build

    shapes = {"x": [(1, 3, 8, width) for width in WIDTHS]}
    # verified at every width; vectors of 8 lanes, of which 24 channels are a multiple
    return build(model, "linux-x86-64", model.parent / "built", shapes=shapes)


def _size(folder: Path) -> int:
    return (folder / "wide.xnn").stat().st_size


def test_every_width_is_right_in_any_order(model: Path, built: Any) -> None:
    import onnxruntime

    import xnncc

    session = onnxruntime.InferenceSession(str(model))
    with xnncc.load(built.directory, threads=1) as net:
        for width in (*WIDTHS, *reversed(WIDTHS)):
            x = np.random.default_rng(width).standard_normal((1, 3, 8, width)).astype("float32")
            (expected,) = session.run(None, {"x": x})
            assert np.abs(net(x)["y"] - expected).max() < 5e-6  # Winograd sums differently
            assert net.outputs[0].shape == (1, width, 5)
        with pytest.raises(BadInput, match=r"built for 'x' \[1, 3, 8, 16\]; 'x' \[1, 3, 8, 40\]; 'x' \[1, 3, 8, 24\]"):
            net(np.zeros((1, 3, 8, 17), "float32"))


def test_the_weights_are_there_once(model: Path, built: Any) -> None:
    from xnncc.build import build

    single = build(model, "linux-x86-64", model.parent / "single", shapes={"x": (1, 3, 8, WIDTHS[0])}, verify=False)
    assert _size(built.directory) - _size(single.directory) < 1024  # two VARI sections of 250 bytes
    assert built.report["facts"]["weights that only further shapes read, bytes"] == 0
    assert built.manifest["prepared_bytes"] == single.manifest["prepared_bytes"] > 0
    assert built.report["facts"]["shapes"] == "x 1×3×8×16 | x 1×3×8×40 | x 1×3×8×24"


def test_verify_looks_at_every_width(model: Path, built: Any) -> None:
    from xnncc.verify import verify

    result = verify(model, built.directory, layers=True)
    assert result.passed
    assert [r.shapes for r in (result, *result.further)] == [f"x 1×3×8×{width}" for width in WIDTHS]
    assert result.layers and all(layers.layers for layers in result.further)
    x = np.random.default_rng(5).standard_normal((1, 3, 8, 40)).astype("float32")
    given = verify(model, built.directory, samples={"x": x})
    assert [r.data for r in (given, *given.further)] == ["random input", "the given samples", "random input"]
    with pytest.raises(BadInput, match="the artefact was built for"):
        verify(model, built.directory, samples={"x": x[..., :7]})


def test_bench_chooses_by_shape(built: Any) -> None:
    from xnncc.bench import bench

    result = bench(built.directory, repeat=2, per_op=True, shapes={"x": (1, 3, 8, 40)})
    assert result.per_op is not None and len(result.per_op) == built.manifest["variants"][0]["op_count"]
    with pytest.raises(ShapeError, match=r"was built for x 1×3×8×16 \| x 1×3×8×40"):
        bench(built.directory, shapes={"x": (1, 3, 8, 41)})


@pytest.mark.parametrize("target", ["linux-arm64", "web-wasm"])
def test_every_width_is_right_on_other_machines(model: Path, target: str) -> None:
    """The build verifies each width under the target's emulator."""
    from xnncc.build import build
    from xnncc.codegen.emulators import find_emulator
    from xnncc.target import load_target

    emulator = find_emulator(load_target(target))
    if emulator is None or emulator.missing:
        pytest.skip(f"{emulator and emulator.missing} is missing")
    result = build(model, target, model.parent / target, shapes={"x": [(1, 3, 8, 16), (1, 3, 8, 40)]})
    assert len(result.manifest["variants"]) == 1


_NODE = """
const { load, variants } = await import(process.argv[2]);
const net = await load();
const widths = variants.map(({ inputs }) => inputs[0].shape[3]);
const lengths = [40, 16, 40].map((width) => net.run({ x: new Float32Array(24 * width).fill(0.5) }).y.length);
let refused = "";
try { net.run({ x: new Float32Array(5) }); } catch (error) { refused = error.message; }
console.log(JSON.stringify({ widths, lengths, refused }));
"""


def test_the_es_module_chooses_by_length(model: Path) -> None:
    from xnncc.build import build

    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        pytest.skip("there is no node")
    folder = model.parent / "module"
    build(model, "web-wasm", folder, shapes={"x": [(1, 3, 8, 16), (1, 3, 8, 40)]}, verify=False)
    (model.parent / "drive.mjs").write_text(_NODE)
    command = [node, str(model.parent / "drive.mjs"), (folder / "wide.mjs").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "widths": [16, 40],
        "lengths": [200, 80, 200],
        "refused": "input 'x' must be a Float32Array of 384 = 1 x 3 x 8 x 16 or 960 = 1 x 3 x 8 x 40",
    }
