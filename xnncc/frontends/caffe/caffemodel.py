"""Weights of a .caffemodel: name of a layer -> its blobs, read with messages of our own.

Only what holds weights is described; protobuf skips all else. The numbers are Caffe's (caffe.proto):

    NetParameter      layer = 100 (V2), layers = 2 (V1)
    LayerParameter    name = 1, type = 2, blobs = 7          V1LayerParameter  name = 4, blobs = 6
    BlobProto         num, channels, height, width = 1..4, data = 5, shape = 7, double_data = 8,
                      raw_data_type = 10, raw_data = 12 (NVIDIA's fork: half precision)

Packed floats are one run of bytes on the wire, so ``data`` is declared as bytes: numpy takes them as they are, where a
repeated float would make a Python object of each (24 bytes, 138 million of them in VGG-16).
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message,
    message_factory,
)

from ...errors import BadModel

Blobs = dict[str, tuple[np.ndarray, ...]]

MAX_RANK = 8
_F = descriptor_pb2.FieldDescriptorProto
_RAW_DTYPES = {0: "<f8", 1: "<f4", 2: "<f2"}
_FETCH_AGAIN = "Fetch or copy the file again."

# message -> (field, number, type or message's name, repeated)
_SCHEMA: dict[str, tuple[tuple[str, int, int | str, bool], ...]] = {
    "BlobShape": (("dim", 1, _F.TYPE_INT64, True),),
    "BlobProto": (
        ("num", 1, _F.TYPE_INT32, False), ("channels", 2, _F.TYPE_INT32, False),
        ("height", 3, _F.TYPE_INT32, False), ("width", 4, _F.TYPE_INT32, False),
        ("data", 5, _F.TYPE_BYTES, True), ("shape", 7, "BlobShape", False), ("double_data", 8, _F.TYPE_BYTES, True),
        ("raw_data_type", 10, _F.TYPE_INT32, False), ("raw_data", 12, _F.TYPE_BYTES, False),
    ),
    "LayerParameter": (("name", 1, _F.TYPE_BYTES, False), ("blobs", 7, "BlobProto", True)),
    "V1LayerParameter": (("name", 4, _F.TYPE_BYTES, False), ("blobs", 6, "BlobProto", True)),
    "NetParameter": (("layers", 2, "V1LayerParameter", True), ("layer", 100, "LayerParameter", True)),
}  # fmt: skip


def read_caffemodel(path: Path) -> Blobs:
    """Return the blobs of each layer that has any.

    Raises:
        BadModel: no such file, cut off, no caffemodel, or a blob whose size contradicts its shape.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadModel(f"{path}", str(error.strerror or error).lower(), "Check the file of the weights.") from error
    if not data:
        raise BadModel(f"{path}", "the file is empty", _FETCH_AGAIN)
    if data.startswith(b"\x89HDF"):
        raise BadModel(f"{path}", "an HDF5 file, not protobuf", "Save it again with snapshot_format: BINARYPROTO.")
    net = _parsed(path, data, packed=True)
    if any(not _has_values(blob) for layer in (*net.layer, *net.layers) for blob in layer.blobs):
        net = _parsed(path, data, packed=False)
    layers = [*net.layer, *net.layers]
    if not layers:
        raise BadModel(f"{path}", "there are no layers in it, so it is no caffemodel", _FETCH_AGAIN)
    found: Blobs = {}
    for layer in layers:
        if not layer.blobs:
            continue
        name = layer.name.decode("utf-8", "replace")
        if name in found:
            raise BadModel(f"{path}", f"two layers with weights are called '{name}'", "Give every layer its own name.")
        found[name] = tuple(_array(path, name, index, blob) for index, blob in enumerate(layer.blobs))
    return found


def _has_values(blob: Any) -> bool:
    return bool(blob.data or blob.double_data or blob.raw_data) or _size(blob) == 0


def _parsed(path: Path, data: bytes, packed: bool) -> Any:
    net = _net_parameter(packed)()
    try:
        net.ParseFromString(data)
    except (message.DecodeError, MemoryError) as error:
        raise BadModel(f"{path}", "cut off, damaged, or no caffemodel", _FETCH_AGAIN) from error
    return net


@functools.cache
def _net_parameter(packed: bool) -> Any:
    """Return the message class; not ``packed``: with values of one tag each, as protobuf 1 wrote them."""
    file = descriptor_pb2.FileDescriptorProto(name=f"xnncc_caffe_{packed}.proto", package=f"xnncc.caffe{int(packed)}")
    for name, fields in _SCHEMA.items():
        kind = file.message_type.add(name=name)
        for field, number, what, repeated in fields:
            label = _F.LABEL_REPEATED if repeated else _F.LABEL_OPTIONAL
            added = kind.field.add(name=field, number=number, label=label)
            if isinstance(what, str):
                added.type, added.type_name = _F.TYPE_MESSAGE, f".{file.package}.{what}"
            elif not packed and field in ("data", "double_data"):
                added.type = _F.TYPE_FLOAT if field == "data" else _F.TYPE_DOUBLE
            else:
                added.type = what  # type: ignore[assignment]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.NetParameter"))


def _shape(blob: Any) -> tuple[int, ...]:
    if blob.HasField("shape"):
        return tuple(blob.shape.dim)
    legacy = ("num", "channels", "height", "width")
    if any(blob.HasField(field) for field in legacy):
        return tuple(getattr(blob, field) if blob.HasField(field) else 1 for field in legacy)
    return ()


def _size(blob: Any) -> int:
    return math.prod(_shape(blob))


def _array(path: Path, layer: str, index: int, blob: Any) -> np.ndarray:
    """Return a blob as float32 in its own shape."""
    where, shape = f"{path}: blob {index} of layer '{layer}'", _shape(blob)
    if len(shape) > MAX_RANK or any(dim < 0 for dim in shape):
        raise BadModel(where, f"has the shape {list(shape)[:16]}", _FETCH_AGAIN)
    try:
        values = _values(blob)
    except ValueError as error:
        raise BadModel(where, "holds no whole number of values", _FETCH_AGAIN) from error
    if values.size != math.prod(shape):
        raise BadModel(
            where, f"has {values.size} values, its shape {list(shape)} needs {math.prod(shape)}", _FETCH_AGAIN
        )
    return values.astype("float32").reshape(shape)


def _values(blob: Any) -> np.ndarray:
    if blob.raw_data:
        return np.frombuffer(blob.raw_data, _RAW_DTYPES.get(blob.raw_data_type, "V3"))
    for field, dtype in ((blob.data, "<f4"), (blob.double_data, "<f8")):
        if len(field):
            is_packed = isinstance(field[0], bytes)
            return np.frombuffer(b"".join(field), dtype) if is_packed else np.array(field, dtype)
    return np.zeros(0, "f4")
