"""Tiny TFLite files for tests, written with the flatbuffers package (which onnxruntime brings along)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np

from xnncc.frontends.tflite.schema import CUSTOM, OPERATORS, OPTIONS, TYPES

Feeds = dict[str, np.ndarray]


@dataclass
class T:
    """A tensor: an input of the file by default; ``const`` makes it a constant."""

    value: Any
    scale: Any = None  # one, or one for each index of ``axis``
    zero: Any = 0
    axis: int = 0
    is_const: bool = False
    name: str = ""
    sparsity: Any = None  # (stored values, traversal order, block map, levels)
    dtype: str = ""

    def array(self) -> np.ndarray:
        array = np.asarray(self.value)
        return array.astype("float32") if array.dtype == "float64" else array


def const(value: Any, **more: Any) -> T:
    """Return a constant."""
    return T(value, is_const=True, **more)


@dataclass
class Out:
    """An output: shape, dtype and how it is quantised."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    scale: Any = None
    zero: Any = 0
    name: str = ""


@dataclass
class Call:
    """An operator on tensors by number; -1 leaves an input out."""

    kind: str
    inputs: list[int]
    outputs: list[int]
    options: dict[str, Any] = field(default_factory=dict)
    custom: bytes | None = None


class Writer:
    """Collects the tables of a file; hostile files are made by changing what it holds before ``finish``."""

    def __init__(self) -> None:
        self.b = flatbuffers.Builder(1024)
        self.buffers: list[bytes] = [b""]
        self.codes: list[str] = []

    def vector(self, values: Any, dtype: str) -> int:
        return self.b.CreateNumpyVector(np.ascontiguousarray(np.asarray(values, dtype).reshape(-1)))

    def offsets(self, items: list[int]) -> int:
        self.b.StartVector(4, len(items), 4)
        for item in reversed(items):
            self.b.PrependUOffsetTRelative(item)
        return self.b.EndVector()

    def table(self, slots: int, **values: tuple[int, str, Any]) -> int:
        """``name=(slot, kind, value)``; kind is a scalar kind of the reader, or "offset"."""
        self.b.StartObject(slots)
        for slot, kind, value in values.values():
            if kind == "offset":
                self.b.PrependUOffsetTRelativeSlot(slot, value, 0)
            else:
                name = {"bool": "Bool", "int8": "Int8", "uint8": "Uint8", "int32": "Int32", "uint32": "Uint32",
                        "uint64": "Uint64", "float32": "Float32"}[kind]  # fmt: skip
                self.b.ForceDefaults(True)
                getattr(self.b, f"Prepend{name}Slot")(slot, value, 0)
        return self.b.EndObject()

    def tensor(self, name: str, shape: Any, dtype: str, data: bytes = b"", scale: Any = None, zero: Any = 0,
               axis: int = 0, sparsity: int = 0) -> int:  # fmt: skip
        more: dict[str, Any] = {}
        if scale is not None:
            scales = np.asarray(scale, "float32").reshape(-1)
            zeros = np.broadcast_to(np.asarray(zero, "int64"), scales.shape)
            q = {
                "scale": (2, "offset", self.vector(scales, "float32")),
                "zero": (3, "offset", self.vector(zeros, "int64")),
            }
            more["quantisation"] = (4, "offset", self.table(7, **q, axis=(6, "int32", axis)))
        if sparsity:
            more["sparsity"] = (6, "offset", sparsity)
        number = 0
        if data:
            self.buffers.append(data)
            number = len(self.buffers) - 1
        return self.table(
            10, shape=(0, "offset", self.vector(shape, "int32")), name=(3, "offset", self.b.CreateString(name)),
            type=(1, "int8", TYPES.index(dtype)), buffer=(2, "uint32", number), **more,
        )  # fmt: skip

    def sparse(self, order: Any, block_map: Any, levels: list[Any]) -> int:
        tables = []
        for level in levels:
            if isinstance(level, int):
                tables.append(self.table(6, format=(0, "int8", 0), size=(1, "int32", level)))
                continue
            parts = {}
            for slot, values in ((2, level[0]), (4, level[1])):
                vector = self.table(1, values=(0, "offset", self.vector(values, "int32")))
                parts[f"kind{slot}"], parts[f"at{slot}"] = (slot, "uint8", 1), (slot + 1, "offset", vector)
            tables.append(self.table(6, format=(0, "int8", 1), **parts))
        dims = self.offsets(tables)
        return self.table(
            3, order=(0, "offset", self.vector(order, "int32")), block=(1, "offset", self.vector(block_map, "int32")),
            dims=(2, "offset", dims),
        )  # fmt: skip

    def operator(self, call: Call) -> int:
        if call.kind not in self.codes:
            self.codes.append(call.kind)
        values: dict[str, Any] = {
            "code": (0, "uint32", self.codes.index(call.kind)),
            "inputs": (1, "offset", self.vector(call.inputs, "int32")),
            "outputs": (2, "offset", self.vector(call.outputs, "int32")),
        }
        if call.kind in OPTIONS:
            kind, fields = OPTIONS[call.kind]
            filled = {}
            for name, (slot, form, default) in fields.items():
                value = call.options.get(name, default)
                if form == "ints":
                    filled[name] = (slot, "offset", self.vector(value or [], "int32"))
                elif form == "text":
                    filled[name] = (slot, "offset", self.b.CreateString(value or ""))
                else:
                    filled[name] = (slot, form, value)
            values["options_type"] = (3, "uint8", kind)
            values["options"] = (4, "offset", self.table(8, **filled))
        if call.custom is not None:
            values["custom"] = (5, "offset", self.vector(np.frombuffer(call.custom, "uint8"), "uint8"))
        return self.table(14, **values)

    def graph(self, tensors: list[int], calls: list[int], inputs: Any, outputs: Any) -> int:
        return self.table(
            6, tensors=(0, "offset", self.offsets(tensors)), inputs=(1, "offset", self.vector(inputs, "int32")),
            outputs=(2, "offset", self.vector(outputs, "int32")), operators=(3, "offset", self.offsets(calls)),
        )  # fmt: skip

    def finish(self, graphs: list[int], version: int = 3) -> bytes:
        codes = []
        for kind in self.codes:
            is_custom = kind not in OPERATORS
            number = CUSTOM if is_custom else OPERATORS.index(kind)
            more = {"custom": (1, "offset", self.b.CreateString(kind))} if is_custom else {}
            codes.append(self.table(4, old=(0, "int8", min(number, 127)), new=(3, "int32", number), **more))
        buffers = []
        for data in self.buffers:
            more = {"data": (0, "offset", self.vector(np.frombuffer(data, "uint8"), "uint8"))} if data else {}
            buffers.append(self.table(3, **more))
        parts = {"codes": (1, "offset", self.offsets(codes)), "graphs": (2, "offset", self.offsets(graphs)),
                 "buffers": (4, "offset", self.offsets(buffers))}  # fmt: skip
        self.b.Finish(self.table(8, version=(0, "uint32", version), **parts), file_identifier=b"TFL3")
        return bytes(self.b.Output())


def one_operator(
    kind: str, *inputs: T | None, out: Out | list[Out], custom: bytes | None = None, **options: Any
) -> tuple[bytes, Feeds]:
    """Return a file of one operator, and what to feed it. Inputs are called x0, x1, ..., outputs y0, y1, ..."""
    w, tensors, calls, feeds = Writer(), [], [], {}
    used, outputs = [], []
    for i, x in enumerate(inputs):
        if x is None:
            used.append(-1)
            continue
        array, name = x.array(), x.name or f"x{i}"
        sparsity, data = 0, array.tobytes() if x.is_const else b""
        if x.sparsity is not None:
            values, order, block_map, levels = x.sparsity
            sparsity, data = w.sparse(order, block_map, levels), np.asarray(values, array.dtype).tobytes()
        used.append(len(tensors))
        tensors.append(w.tensor(name, array.shape, str(array.dtype), data, x.scale, x.zero, x.axis, sparsity))
        if not x.is_const:
            feeds[name] = array
    given = [index for index, x in zip(used, inputs, strict=True) if x is not None and not x.is_const]
    for i, o in enumerate(out if isinstance(out, list) else [out]):
        outputs.append(len(tensors))
        tensors.append(w.tensor(o.name or f"y{i}", o.shape, o.dtype, b"", o.scale, o.zero))
    calls.append(w.operator(Call(kind, used, outputs, options, custom)))
    return w.finish([w.graph(tensors, calls, given, outputs)]), feeds
