"""Compute what is constant at import, node by node, with ONNX's own reference operators.

Shapes are static, so Shape and Size are constants too, and with them the Shape -> Gather -> Concat -> Reshape chains
that exporters write, Range, ConstantOfShape, and the sizes of Pad, Slice, Split, Expand and Resize.

Weights that were stored small stay small: a Cast or DequantizeLinear whose result is at least twice its input and
more than ``SMALL_BYTES`` is emitted as an operator on the small constant, and what reads it then is no constant
either. So 23 MB of int8 weights stay 23 MB here, and the compiler decides where they grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from .node import Refused
from .preflight import RANDOM
from .shapes import SUPPORTED_DTYPES, dtype_words, numpy_dtype

SMALL_BYTES = 4096
MAX_BYTES = 2**30  # of one constant: more is a broken or hostile model
_GROWING = frozenset({"Cast", "DequantizeLinear"})
# Sequences are lists here and not among numpy's types: their converters see to them.
_SEQUENCES = frozenset({
    "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength",
    "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement",
})  # fmt: skip
_SIZED_BY_INPUT = {"ConstantOfShape": 0, "Expand": 1}  # which input is the shape of the result


def constant_of(proto: onnx.NodeProto) -> np.ndarray:
    """Return the value of a Constant node."""
    attribute = proto.attribute[0] if proto.attribute else onnx.AttributeProto()
    match attribute.name:
        case "value":
            return array_of(attribute.t)
        case "value_float":
            return np.asarray(attribute.f, "float32")
        case "value_int":
            return np.asarray(attribute.i, "int64")
        case "value_floats":
            return np.asarray(attribute.floats, "float32")
        case "value_ints":
            return np.asarray(attribute.ints, "int64")
    raise Refused(f"a constant of kind '{attribute.name}' is not supported", "Supported: tensors, floats and ints.")


def array_of(tensor: onnx.TensorProto) -> np.ndarray:
    """Return a weight as numpy; refuses dtypes that cannot be built, bytes that do not fill the shape."""
    if not numpy_dtype(tensor.data_type):
        raise Refused(f"dtype {dtype_words(tensor.data_type)} of tensor '{tensor.name}' is not supported", _dtypes())
    if any(dim < 0 for dim in tensor.dims):
        raise Refused(f"tensor '{tensor.name}' has a negative dimension: {list(tensor.dims)}")
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise Refused(f"tensor '{tensor.name}' is damaged ({error})", "Export the model again.") from error


def _dtypes() -> str:
    return f"Supported: {', '.join(SUPPORTED_DTYPES)}."


def is_foldable(proto: onnx.NodeProto, values: list[Any]) -> bool:
    """Return whether the node's result is a constant that we want as one."""
    if (
        proto.op_type in RANDOM
        or proto.op_type in _SEQUENCES
        or any(a.type == onnx.AttributeProto.GRAPH for a in proto.attribute)
    ):
        return False
    if not all(value is None or isinstance(value, np.ndarray) for value in values):
        return False
    return proto.op_type not in _GROWING or not _grows(proto, values)


def _grows(proto: onnx.NodeProto, values: list[Any]) -> bool:
    source = values[0]
    if source is None:
        return False
    target = 4
    if proto.op_type == "Cast":
        name = numpy_dtype(next((a.i for a in proto.attribute if a.name == "to"), 0))
        if not name:
            return False
        target = np.dtype(name).itemsize
    return source.size * target > SMALL_BYTES and target >= 2 * source.itemsize


def evaluate(proto: onnx.NodeProto, values: list[Any], opset: int) -> list[np.ndarray]:
    """Return the outputs of a node all of whose inputs are constants.

    Raises:
        Refused: the node cannot be computed, or its result is too large or no tensor.
    """
    if proto.op_type == "Constant":
        return [constant_of(proto)]
    axes = next((list(a.ints) for a in proto.attribute if a.name == "axes"), None)
    if proto.op_type == "Unsqueeze" and axes is not None:  # onnx 1.23.2 has no reference for axes as an attribute
        return [_unsqueezed(values[0], axes)]
    if _most_elements(proto.op_type, values) * 8 > MAX_BYTES:
        raise Refused(f"its constant result is larger than {MAX_BYTES} bytes")
    names = list(proto.input)
    feeds = {name: value for name, value in zip(names, values, strict=False) if name and value is not None}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(proto, opsets={"": opset}).run(None, feeds)
    except MemoryError:
        raise Refused(f"a constant is larger than {MAX_BYTES} bytes") from None
    except Exception as error:  # the reference operators raise whatever numpy raises; all of it means: a bad node
        raise Refused(f"its constant result cannot be computed ({type(error).__name__}: {error})") from error
    return [_checked(proto, result) for result in results]


def _most_elements(operator: str, values: list[Any]) -> float:
    """Return how many elements the result has at most, for operators that make much of little; 0 for others."""

    def product(index: int, least: float = 0) -> float:
        given = values[index] if index < len(values) else None
        return 1.0 if given is None else float(np.prod(np.maximum(np.asarray(given, "float64"), least)))

    if operator in _SIZED_BY_INPUT:
        return product(_SIZED_BY_INPUT[operator])
    if operator == "Range" and all(value is not None and value.size == 1 for value in values):
        start, limit, step = (float(value.reshape(-1)[0]) for value in values)
        return (limit - start) / step if step else 0
    if operator in ("Tile", "OneHot") and values[0] is not None:
        return values[0].size * product(1, least=1)
    if operator == "Pad" and len(values) > 1 and values[0] is not None and values[1] is not None:
        return values[0].size * float(np.prod(1 + np.abs(np.asarray(values[1], "float64"))))
    try:
        shape = np.broadcast_shapes(*(value.shape for value in values if value is not None))
    except ValueError:
        return 0
    return float(np.prod(np.array(shape, "float64")))


def _unsqueezed(array: np.ndarray, axes: list[int]) -> np.ndarray:
    try:
        return np.expand_dims(array, tuple(axes))
    except ValueError as error:
        raise Refused(f"axes {axes} do not fit {list(array.shape)} ({error})") from error


def _checked(proto: onnx.NodeProto, result: Any) -> np.ndarray:
    if isinstance(result, list | tuple) or result is None:
        raise Refused("its constant result is not a tensor")
    array = np.asarray(result)
    if str(array.dtype) not in SUPPORTED_DTYPES:
        raise Refused(f"its constant result has dtype {array.dtype}", _dtypes())
    return array
