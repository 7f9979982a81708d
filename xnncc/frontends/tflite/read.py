"""Read a TFLite file as something hostile: every index and size is checked before the model is believed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadModel
from ..sniff import looks_like
from .flatbuffer import Buffer, Malformed, Table
from .model import Graph, Model, Operator, Quantisation, Tensor
from .schema import CUSTOM, NUMERIC, OPERATORS, OPTIONS, TYPES, VERSION
from .sparse import densify, read_sparsity

MAX_FILE_BYTES = 2**32
MAX_ELEMENTS = 2**31 - 1  # of one tensor
AGAIN = "Download or convert the model again."


def read_tflite(path: Path) -> Model:
    """Return the model in ``path``.

    Raises:
        BadModel: unreadable, cut off, no TFLite file, or one that contradicts itself.
    """
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise BadModel(f"{path}", f"{size} bytes, a TFLite file has at most {MAX_FILE_BYTES}", AGAIN)
        data = path.read_bytes()
    except OSError as error:
        raise BadModel(f"{path}", str(error.strerror or error).lower(), "Check the file.") from error
    if data[4:8] != b"TFL3":
        why = f"not a TFLite model, it looks like {looks_like(path)}"
        raise BadModel(f"{path}", why, "Give a .tflite file.")
    try:
        return _model(data)
    except Malformed as error:
        raise BadModel(f"{path}", f"the file is damaged: {error}", AGAIN) from None


def _model(data: bytes) -> Model:
    root = Buffer(data).root()
    version = root.scalar(0, "uint32")
    if version != VERSION:
        raise Malformed(f"schema version {version}, expected {VERSION}")
    codes = root.tables(1, _operator_code)
    buffers = root.tables(4, lambda table: _buffer(table, data))
    graphs = root.tables(2, lambda table: _graph(table, codes, buffers, data))
    if not graphs:
        raise Malformed("it has no graph")
    if not graphs[0].outputs:
        raise Malformed("its graph has no output")
    return Model(graphs, data)


def _operator_code(table: Table) -> tuple[str, bool]:
    """Return the operator's name, and whether it is a custom one."""
    number = max(table.scalar(0, "int8"), table.scalar(3, "int32"))  # numbers up to 127 may stand in the old field
    if number == CUSTOM:
        return table.text(1) or "CUSTOM", True
    return (OPERATORS[number] if 0 <= number < len(OPERATORS) else f"operator {number}"), False


def _buffer(table: Table, data: bytes) -> np.ndarray:
    """Return the bytes of a constant; large ones stand behind the FlatBuffer, at an offset of their own."""
    offset, size = table.scalar(1, "uint64"), table.scalar(2, "uint64")
    if offset <= 1:
        return table.array(0, "uint8")
    if offset + size > len(data):
        raise Malformed(f"{size} bytes of weights at byte {offset} are cut off")
    return np.frombuffer(data, "uint8", size, offset)


def _graph(table: Table, codes: tuple[tuple[str, bool], ...], buffers: tuple[np.ndarray, ...], data: bytes) -> Graph:
    tensors = table.tables(0, lambda t: _tensor(t, buffers, data))
    operators: list[Operator] = []
    table.tables(3, lambda t: operators.append(_operator(t, len(operators), codes, len(tensors))))
    inputs, outputs = table.ints(1), table.ints(2)
    _check_indices("the graph", inputs + outputs, len(tensors), optional=False)
    return Graph(table.text(4), tensors, tuple(operators), inputs, outputs)


def _tensor(table: Table, buffers: tuple[np.ndarray, ...], data: bytes) -> Tensor:
    name, shape, kind = table.text(3), table.ints(0), table.scalar(1, "int8")
    words = f"tensor '{name}'"
    if not 0 <= kind < len(TYPES):
        raise Malformed(f"{words} has element type {kind}, which is none")
    if min(shape, default=0) < 0 or math.prod(shape) > MAX_ELEMENTS:
        raise Malformed(f"{words} has shape {list(shape)}")
    number = table.scalar(2, "uint32")
    if number >= max(len(buffers), 1):
        raise Malformed(f"{words} has buffer {number} of {len(buffers)}")
    raw = buffers[number] if number else np.empty(0, "uint8")
    dtype = TYPES[kind]
    sparsity = table.table(6)
    constant = None
    if raw.size and dtype in NUMERIC:
        constant = _constant(words, raw, dtype, shape, sparsity)
    offset = -1
    if constant is not None and sparsity is None:
        offset = raw.__array_interface__["data"][0] - np.frombuffer(data, "uint8").__array_interface__["data"][0]
    return Tensor(
        name=name,
        shape=shape,
        dtype=dtype,
        data=constant,
        quantisation=_quantisation(words, table.table(4), shape),
        is_variable=table.scalar(5, "bool"),
        signature=table.ints(7),
        data_offset=offset,
    )


def _constant(words: str, raw: np.ndarray, dtype: str, shape: tuple[int, ...], sparsity: Table | None) -> np.ndarray:
    kind = np.dtype(dtype).newbyteorder("<")
    if raw.size % kind.itemsize:
        raise Malformed(f"{words} has {raw.size} bytes of {dtype}")
    values = np.frombuffer(raw.tobytes(), kind).astype(dtype, copy=False)
    if sparsity is not None:
        return densify(values, shape, read_sparsity(sparsity))
    if values.size != math.prod(shape):
        raise Malformed(f"{words} has shape {list(shape)} and {values.size} elements")
    return values.reshape(shape)


def _quantisation(words: str, table: Table | None, shape: tuple[int, ...]) -> Quantisation | None:
    if table is None:
        return None
    scale, zero, axis = table.array(2, "float32"), table.array(3, "int64"), table.scalar(6, "int32")
    if not scale.size:
        return None
    zero = zero if zero.size else np.zeros(scale.size, "int64")
    if zero.size == 1 and scale.size > 1:
        zero = np.repeat(zero, scale.size)
    if zero.size != scale.size or (scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size)):
        raise Malformed(f"{words} {list(shape)} has {scale.size} scales and {zero.size} zero points on axis {axis}")
    if not np.isfinite(scale).all() or (scale < 0).any():
        raise Malformed(f"{words} has a scale that is negative or not finite")
    return Quantisation(scale.astype("float32"), zero.astype("int64"), axis)


def _operator(table: Table, index: int, codes: tuple[tuple[str, bool], ...], tensors: int) -> Operator:
    number = table.scalar(0, "uint32")
    if number >= len(codes):
        raise Malformed(f"operator {index} has code {number} of {len(codes)}")
    kind, is_custom = codes[number]
    inputs, outputs = table.ints(1), table.ints(2)
    _check_indices(f"operator {index} ({kind})", inputs, tensors, optional=True)
    _check_indices(f"operator {index} ({kind})", outputs, tensors, optional=False)
    custom = table.array(5, "uint8").tobytes() if is_custom else b""
    return Operator(index, kind, inputs, outputs, {} if is_custom else _options(table, index, kind), custom, is_custom)


def _options(table: Table, index: int, kind: str) -> dict[str, Any]:
    if kind not in OPTIONS:
        return {}
    expected, fields = OPTIONS[kind]
    found, options = table.scalar(3, "uint8"), table.table(4)
    if options is not None and found != expected:
        raise Malformed(f"operator {index} ({kind}) has options of kind {found}, expected {expected}")
    return {name: _option(options, *field) for name, field in fields.items()}


def _option(options: Table | None, slot: int, kind: str, default: Any) -> Any:
    if kind == "ints":
        return options.ints(slot) if options is not None else ()
    if kind == "text":
        return options.text(slot) if options is not None else ""
    return options.scalar(slot, kind, default) if options is not None else default


def _check_indices(words: str, indices: tuple[int, ...], count: int, optional: bool) -> None:
    low = -1 if optional else 0
    wrong = [index for index in indices if not low <= index < count]
    if wrong:
        raise Malformed(f"{words} names tensor {wrong[0]} of {count}")
