"""Rows or columns first: the order in which a matrix costs fewer bytes.

The range coder learns along rows faster than across them, so a matrix whose columns differ from each other more than
its rows do is smaller turned. ``.xq`` notes it in the tensor's record; in a package the tensor is turned and its map.

    Given  tensor [O, C, KH, KW], dims of O, C, KH, KW      Result  tensor [C*KH*KW, O], dims of C, KH, KW, O
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from xnncc.ir.coded import CodedTensor
from xnncc.ir.placement import Placement
from xnncc.pack.coding.coders import encode_stream, may_try_all
from xnncc.pack.coding.layout import record_of, view_of

SMALL = 1 << 13  # weights below which it is not tried: they share a stream and learn little


def turning_pays(tensor: CodedTensor, coders: Collection[str]) -> bool:
    """Return whether the range coder, if it is among ``coders``, makes less of the turned matrix."""
    rows, columns = view_of(tensor.shape)
    if "range" not in coders or tensor.size < SMALL or min(rows, columns) < 2 or not may_try_all(tensor.size):
        return False
    plain, turned = (record_of(tensor, 0, way).plain(tensor.integers) for way in (False, True))
    return len(encode_stream([turned], ("range",))[0].data) < len(encode_stream([plain], ("range",))[0].data)


def turned(placement: Placement) -> Placement | None:
    """Return the placement of the turned matrix; None where its steps would lie along a part of an axis."""
    tensor, (rows, columns) = placement.tensor, view_of(placement.tensor.shape)
    long = [axis for axis, size in enumerate(tensor.shape) if size > 1]
    axis = 0
    if tensor.codebook is None and len(tensor.table) > 1:
        if tensor.axis != long[0] and long != [long[0], tensor.axis]:
            return None
        axis = 1 if tensor.axis == long[0] else 0
    cut, product = 0, 1
    while product < rows:
        product *= placement.dims[cut].extent
        cut += 1
    assert product == rows, f"dims {placement.dims} of {rows} rows"
    integers = np.ascontiguousarray(tensor.integers.reshape(rows, columns).T)
    turned_tensor = CodedTensor(integers, tensor.steps, tensor.codebook, axis)
    return replace(placement, tensor=turned_tensor, dims=(*placement.dims[cut:], *placement.dims[:cut]))
