"""A network whose weights came as integers: its artefact is small, gives the same numbers, and says what it stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op
from tvm.relax.op import nn

from xnncc import build, pack
from xnncc.compress.result import Squeezed
from xnncc.ir.coded import CodedTensor, coded_table
from xnncc.pack.coding import decode_blob
from xnncc.squeeze.file import to_bytes

RNG = np.random.default_rng(4)


def coded(*shape: int, density: float = 0.1, axis: int | None = None) -> CodedTensor:
    """Return a weight of which ``density`` is not zero, as after pruning."""
    integers = RNG.integers(-7, 7, shape, np.int32, endpoint=True) * (RNG.random(shape) < density)
    steps = RNG.random(1 if axis is None else shape[axis], np.float32) * np.float32(0.1) + np.float32(0.01)
    return CodedTensor(np.asarray(integers, np.int32), steps, axis=axis or 0)


def module_of(shape: tuple[int, ...], body: Callable[..., relax.Var]) -> tvm.IRModule:
    """Return ``main(x)`` whose one output ``body(emit, x)`` makes."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            results = builder.emit_output(relax.Tuple([body(builder.emit, x)]))
        builder.emit_func_output(results)
    return builder.finalize()


def product_with(tensor: CodedTensor) -> tvm.IRModule:
    """Return the network of one matrix product."""
    return module_of((1, tensor.shape[0]), lambda emit, x: emit(op.matmul(x, relax.const(tensor.values())), "y"))


def network(weights: dict[str, CodedTensor]) -> tvm.IRModule:
    """Return a network with a layer of each kind."""
    values = {name: relax.const(tensor.values()) for name, tensor in weights.items()}

    def body(emit: Callable[..., relax.Var], x: relax.Var) -> relax.Var:
        y = emit(nn.conv2d(x, values["first"], padding=(1, 1)), "first")
        y = emit(nn.conv2d(emit(op.nn.relu(y), "a"), values["winograd"], padding=(1, 1)), "winograd")
        y = emit(op.add(y, values["bias"]), "biased")
        y = emit(nn.conv2d(y, values["depthwise"], padding=(1, 1), groups=40), "depthwise")
        y = emit(nn.conv2d(y, values["strided"], strides=(2, 2)), "strided")
        y = emit(nn.conv2d_transpose(y, values["transposed"], strides=(2, 2)), "transposed")
        y = emit(op.matmul(emit(op.mean(y, [2, 3]), "pooled"), values["matrix"]), "matrix")
        return emit(op.matmul(y, emit(op.permute_dims(values["across"]), "across")), "last")

    return module_of((1, 3, 24, 24), body)


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, CodedTensor], object]:
    folder = tmp_path_factory.mktemp("coded")
    weights = {
        "first": coded(32, 3, 3, 3, density=0.5), "winograd": coded(40, 32, 3, 3, axis=0),
        "bias": coded(1, 40, 1, 1, density=0.9), "depthwise": coded(40, 1, 3, 3, density=0.6, axis=0),
        "strided": coded(48, 40, 3, 3), "transposed": coded(48, 24, 4, 4), "matrix": coded(24, 300),
        "across": coded(70, 300, axis=0),
    }  # fmt: skip
    state = Squeezed(network(weights), coded_table(list(weights.values())))
    (folder / "net.xq").write_bytes(to_bytes(state, ["last"]))
    result = build(folder / "net.xq", "host", folder / "net")
    return folder / "net", weights, result


def test_is_small_and_verified(artefact: tuple[Path, dict[str, CodedTensor], object]) -> None:
    folder, weights, result = artefact
    floats = sum(4 * tensor.size for tensor in weights.values())
    assert result.warnings == ()  # type: ignore[attr-defined]
    assert (folder / "net.xnn").stat().st_size < floats / 25  # 0.75 bits a weight and 500 bytes of names
    package = pack.read(folder / "net.xnn")
    assert package.blob_bytes is not None
    assert package.prepared_bytes > 0  # Winograd's kernels are made of what was decoded
    assert len(decode_blob(bytes(package.weights), package.blob_bytes)) == package.blob_bytes


def test_says_what_each_layer_takes(artefact: tuple[Path, dict[str, CodedTensor], object]) -> None:
    folder, weights, result = artefact
    manifest = pack.read_manifest(folder)
    assert {layer["name"] for layer in manifest["coded"]} == {*weights} - {"bias"} | {"biased"}
    by_name = {layer["name"]: layer for layer in manifest["coded"]}
    assert by_name["matrix"]["shape"] == [24, 300]
    assert 0.3 < by_name["matrix"]["bits_per_weight"] < 1
    assert sum(layer["bytes"] for layer in manifest["coded"]) < manifest["coded_bytes"] < manifest["weights_bytes"] / 20
    assert result.report["coded"] == manifest["coded"]  # type: ignore[attr-defined]


def test_a_tenth_of_the_weights_shrinks_the_package(tmp_path: Path) -> None:
    """The whole line: the same network dense and with 90 % zeros."""
    sizes = []
    for density in (1.0, 0.1):
        tensor = coded(256, 400, density=density)
        state = Squeezed(product_with(tensor), coded_table([tensor]))
        (tmp_path / "one.xq").write_bytes(to_bytes(state, ["y"]))
        build(tmp_path / "one.xq", "host", tmp_path / "one")
        sizes.append((tmp_path / "one" / "one.xnn").stat().st_size)
    assert sizes[1] < 0.25 * sizes[0] < 0.05 * 4 * 256 * 400


def test_without_coded_weights_nothing_changes(tmp_path: Path) -> None:
    """A package of floats has encoding 0 and its manifest no word of coding."""
    tensor = coded(64, 64)
    (tmp_path / "one.xq").write_bytes(to_bytes(Squeezed(product_with(tensor)), ["y"]))
    result = build(tmp_path / "one.xq", "host", tmp_path / "one")
    package = pack.read(tmp_path / "one" / "one.xnn")
    assert package.blob_bytes is None
    assert not {"coded", "coded_bytes"} & {*result.manifest, *result.report}
