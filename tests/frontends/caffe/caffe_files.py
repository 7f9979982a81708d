"""Writes prototxt and caffemodel files for tests: with an encoder of protobuf that shares nothing with ours."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

Blobs = Mapping[str, Sequence[np.ndarray]]


def varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def number(number_: int, value: int) -> bytes:
    return varint(number_ << 3) + varint(value)


def blob(array: np.ndarray, *, legacy: bool = False, packed: bool = True, double: bool = False) -> bytes:
    """Return a BlobProto: ``legacy`` with num, channels, height, width instead of a shape."""
    if legacy:
        dims = (1,) * (4 - array.ndim) + array.shape
        head = b"".join(number(i + 1, dim) for i, dim in enumerate(dims))
    else:
        head = field(7, field(1, b"".join(varint(dim) for dim in array.shape)))
    if double:
        return head + field(8, array.astype("<f8").tobytes())
    if packed:
        return head + field(5, array.astype("<f4").tobytes())
    tag = varint(5 << 3 | 5)
    return head + b"".join(tag + struct.pack("<f", value) for value in array.reshape(-1))


def caffemodel(blobs: Blobs, *, v1: bool = False, **options: bool) -> bytes:
    """Return a NetParameter with a layer for each name."""
    out = field(1, b"net")
    for name, arrays in blobs.items():
        body = field(4 if v1 else 1, name.encode())
        body += b"".join(field(6 if v1 else 7, blob(np.asarray(a, "f4"), **options)) for a in arrays)
        out += field(2 if v1 else 100, body)
    return out


def input_text(name: str, shape: Sequence[int]) -> str:
    dims = " ".join(f"dim: {dim}" for dim in shape)
    return f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {dims} }} }} }}\n'


def layer_text(kind: str, params: str = "", bottom: Sequence[str] = ("data",), top: Sequence[str] = ("out",)) -> str:
    """Return one layer, called as its type in lower case."""
    ends = " ".join([f'bottom: "{b}"' for b in bottom] + [f'top: "{t}"' for t in top])
    return f'layer {{ name: "{kind.lower()}" type: "{kind}" {ends} {params} }}\n'


def save(folder: Path, text: str, blobs: Blobs | None = None, **options: bool) -> Path:
    """Write net.prototxt and net.caffemodel and return the first."""
    path = folder / "net.prototxt"
    path.write_text(text)
    path.with_suffix(".caffemodel").write_bytes(caffemodel(blobs or {"nothing": []}, **options))
    return path
