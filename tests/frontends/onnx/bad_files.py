"""Broken ONNX files, each with a part of the sentence that must say what is wrong. ``BAD[name](folder)`` writes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx_models import const, graph, info, model, node, one_node, random, save

Make = Callable[[Path], Path]
BAD: dict[str, tuple[Make, str]] = {}
X = random(2, 3)
_KEEP = "m.onnx"


def bad(words: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function that makes a ModelProto, or the bytes of a file."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        def write(folder: Path) -> Path:
            made = make()
            path = folder / _KEEP
            if isinstance(made, bytes):
                path.write_bytes(made)
                return path
            return save(made, path)

        BAD[make.__name__] = (write, words)
        return make

    return register


def _model(nodes: list[Any], weights: dict[str, Any] | None = None) -> onnx.ModelProto:
    return model(nodes, [info("x", X)], [info("y")], weights)


def _with_weight(change: Callable[[TensorProto], None]) -> onnx.ModelProto:
    """Return x + w, with a change made to the weight of 64 float32."""
    made = one_node("Add", random(64), const(random(64)))[0]
    change(made.graph.initializer[0])
    return made


def _external(**entries: str) -> onnx.ModelProto:
    def change(tensor: TensorProto) -> None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)

    return _with_weight(change)


@bad("cut off or damaged")
def truncated() -> bytes:
    return one_node("Add", random(64), const(random(64)))[0].SerializeToString()[:-30]


@bad("not an ONNX model, it looks like a web page")
def web_page() -> bytes:
    return b"<!DOCTYPE html><html><body>404</body></html>"


@bad("m.onnx: ")
def noise() -> bytes:
    return np.random.default_rng(0).integers(0, 256, 4096).astype("uint8").tobytes()


@bad("needs tensor 'w', which no earlier node computes")
def missing_weight() -> onnx.ModelProto:
    return _model([node("Add", ["x", "w"], ["y"], name="sum")])


@bad("the graph's output needs tensor 'y'")
def output_that_nobody_computes() -> onnx.ModelProto:
    return _model([node("Relu", ["x"], ["z"])])


@bad("matrices [2, 3] and [4, 5] do not fit")
def shapes_that_do_not_fit() -> onnx.ModelProto:
    return _model([node("MatMul", ["x", "w"], ["y"], name="product")], {"w": random(4, 5)})


@bad("needs tensor 'b', which no earlier node computes")
def cycle() -> onnx.ModelProto:
    return _model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])])


@bad("computes a tensor that exists")
def two_nodes_of_one_name() -> onnx.ModelProto:
    return _model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])])


@bad("two inputs are called 'x'")
def two_inputs_of_one_name() -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"])], [info("x", X), info("x", X)], [info("y")])


@bad("two weights are called 'w'")
def two_weights_of_one_name() -> onnx.ModelProto:
    made = _model([node("Add", ["x", "w"], ["y"])], {"w": X})
    made.graph.initializer.add().CopyFrom(made.graph.initializer[0])
    return made


@bad("1 operator is not supported: Foo (node 'strange')")
def unknown_operator() -> onnx.ModelProto:
    return _model([node("Foo", ["x"], ["y"], name="strange")])


@bad("keeps its data in 'weights.bin', which is missing. Put 'weights.bin' beside the model")
def external_data_missing() -> onnx.ModelProto:
    return _external(location="weights.bin", offset="0", length=str(2 << 30))


@bad("keeps its data in '../../secret', outside the model's folder")
def external_data_outside() -> onnx.ModelProto:
    return _external(location="../../secret")


@bad("keeps its data in '/etc/passwd', outside the model's folder")
def external_data_absolute() -> onnx.ModelProto:
    return _external(location="/etc/passwd")


@bad("the data of tensor 'x1'")
def external_data_beyond_the_file() -> onnx.ModelProto:
    return _external(location=_KEEP, offset=str(1 << 40), length="256")


@bad("the data of tensor 'x1'")
def external_data_before_the_file() -> onnx.ModelProto:
    return _external(location=_KEEP, offset="-8", length="256")


@bad("the data of tensor 'x1'")
def external_data_of_no_length() -> onnx.ModelProto:
    return _external(location=_KEEP, length="many")


@bad("weight 'x1'")
def huge_weight() -> onnx.ModelProto:
    def change(tensor: TensorProto) -> None:
        tensor.dims[:] = [1 << 40, 1 << 20]

    return _with_weight(change)


@bad("has a negative dimension: [-64]")
def negative_weight() -> onnx.ModelProto:
    def change(tensor: TensorProto) -> None:
        tensor.dims[:] = [-64]

    return _with_weight(change)


@bad("weight 'x1'")
def too_few_bytes() -> onnx.ModelProto:
    def change(tensor: TensorProto) -> None:
        tensor.raw_data = tensor.raw_data[:-6]

    return _with_weight(change)


@bad("dtype 99 (unknown) of tensor 'x1' is not supported")
def unknown_dtype() -> onnx.ModelProto:
    def change(tensor: TensorProto) -> None:
        tensor.data_type = 99

    return _with_weight(change)


@bad("input 'x' is [1099511627776, 3]")
def huge_input() -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"])], [info("x", shape=[1 << 40, 3])], [info("y")])


@bad("Type for example: --shape x=1,3")
def negative_input() -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"])], [info("x", shape=[-7, 3])], [info("y")])


@bad("larger than")
def huge_constant() -> onnx.ModelProto:
    nodes = [node("ConstantOfShape", ["s"], ["c"], name="fill"), node("Add", ["x", "c"], ["y"])]
    return _model(nodes, {"s": np.array([1 << 30, 1 << 30])})


@bad("larger than")
def huge_range() -> onnx.ModelProto:
    nodes = [node("Range", ["a", "b", "c"], ["r"], name="count"), node("Add", ["x", "r"], ["y"])]
    return _model(nodes, {"a": np.array(0), "b": np.array(1 << 50), "c": np.array(1)})


@bad("larger than")
def huge_tile_of_a_constant() -> onnx.ModelProto:
    nodes = [node("Tile", ["w", "n"], ["t"], name="tile"), node("Add", ["x", "t"], ["y"])]
    return _model(nodes, {"w": X, "n": np.array([1 << 20, 1 << 20])})


@bad("has more than 268435456 elements")
def huge_expand() -> onnx.ModelProto:
    return _model([node("Expand", ["x", "s"], ["y"], name="grow")], {"s": np.array([1 << 30, 2, 3])})


@bad("larger than")
def huge_pad() -> onnx.ModelProto:
    nodes = [node("Pad", ["w", "p"], ["c"], name="pad"), node("Add", ["x", "c"], ["y"])]
    return _model(nodes, {"w": X, "p": np.array([1 << 40, 0, 0, 0])})


@bad("larger than")
def huge_outer_sum() -> onnx.ModelProto:
    nodes = [node("Add", ["a", "b"], ["c"], name="outer"), node("Add", ["x", "c"], ["y"])]
    return _model(nodes, {"a": np.zeros((1 << 16, 1), "float32"), "b": np.zeros((1, 1 << 16), "float32")})


@bad("more than 256 steps")
def endless_loop() -> onnx.ModelProto:
    body = graph([node("Identity", ["go"], ["on"]), node("Add", ["v", "v"], ["w"])],
                 [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                  helper.make_tensor_value_info("go", TensorProto.BOOL, []), info("v", X)],
                 [helper.make_tensor_value_info("on", TensorProto.BOOL, []), info("w", X)])  # fmt: skip
    weights = {"n": np.array(1 << 60), "c": np.array(True)}
    return _model([node("Loop", ["n", "c", "x"], ["y"], body=body, name="forever")], weights)


@bad("cut off or damaged")
def subgraphs_without_end() -> bytes:
    data = b""
    for _ in range(4000):  # AttributeProto.g, NodeProto.attribute and GraphProto.node around each other
        for field in (6, 5, 1):
            data = bytes([field << 3 | 2]) + _varint(len(data)) + data
    return b"\x08\x08\x3a" + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


@bad("calls itself")
def function_that_calls_itself() -> onnx.ModelProto:
    made = one_node("Again", X, domain="mine")[0]
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    again = helper.make_node("Again", ["a"], ["b"], domain="mine")
    made.functions.append(helper.make_function("mine", "Again", ["a"], ["b"], [again], opset))
    return made


@bad("nodes, at most 1048576 are read")
def functions_that_grow() -> onnx.ModelProto:
    made = one_node("F0", X, domain="mine")[0]
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    for level in range(40):
        calls = [helper.make_node(f"F{level + 1}", [a], [b], domain="mine") for a, b in (("a", "t"), ("t", "b"))]
        made.functions.append(helper.make_function("mine", f"F{level}", ["a"], ["b"], calls, opset))
    last = [helper.make_node("Relu", ["a"], ["b"])]
    made.functions.append(helper.make_function("mine", "F40", ["a"], ["b"], last, opset))
    return made


@bad("attribute 'axis' has type float, the standard says int")
def attribute_of_another_type() -> onnx.ModelProto:
    return _model([node("Softmax", ["x"], ["y"], axis=0.5, name="soft")])


@bad("axis 9 is out of range for 2 dimensions")
def axis_out_of_range() -> onnx.ModelProto:
    return _model([node("Softmax", ["x"], ["y"], axis=9, name="soft")])


@bad("a name in it is not text")
def name_that_is_not_text() -> bytes:
    return _model([node("Relu", ["x"], ["y"], name="caf_")]).SerializeToString().replace(b"caf_", b"caf\xff")
