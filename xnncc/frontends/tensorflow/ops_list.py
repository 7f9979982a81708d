"""TensorLists: at import a list of values, so that unrolled loops read and write them without any operator."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import Expr, TupleGetItem

from ..network import shape_of
from ..refused import Refused
from .node import Node
from .registry import converter
from .tensor_list import MAX_ITEMS, TensorList

R = relax.op


def _list(n: Node, index: int = 0) -> TensorList:
    value = n.values[index]
    if not isinstance(value, TensorList):
        raise Refused(f"input {index} is no list of tensors")
    return value


def _place(n: Node, items: tuple[Any, ...]) -> int:
    place = n.integer(1, "index")
    if not 0 <= place < len(items):
        raise Refused(f"index {place} is out of range for a list of {len(items)}")
    return place


@converter("TensorListReserve")
def reserve(n: Node) -> list[Any]:
    count = n.integer(1, "num_elements")
    if not 0 <= count <= MAX_ITEMS:
        raise Refused(f"a list of {count} tensors is not supported", f"Supported: up to {MAX_ITEMS}.")
    return [TensorList((None,) * count)]


@converter("TensorListFromTensor")
def from_tensor(n: Node) -> list[Any]:
    shape = list(n.shape())
    if not shape or not 0 < shape[0] <= MAX_ITEMS:
        raise Refused(f"{list(shape)} cannot become a list")
    if n.is_const(0):
        return [TensorList(tuple(n.const(0, "tensor")))]
    if shape[0] == 1:
        return [TensorList((n.emit(n.reshaped(n.expr(0), shape[1:])),))]
    whole = n.emit(R.split(n.expr(0), shape[0], 0))
    parts = [n.emit(n.reshaped(TupleGetItem(whole, i), shape[1:])) for i in range(shape[0])]
    return [TensorList(tuple(parts))]


@converter("TensorListGetItem")
def get_item(n: Node) -> Expr:
    items = _list(n).items
    item = items[_place(n, items)]
    if item is None:
        raise Refused("it reads an element that was never written")
    return item


@converter("TensorListSetItem")
def set_item(n: Node) -> list[Any]:
    items = _list(n).items
    place = _place(n, items)
    return [TensorList((*items[:place], n.values[2], *items[place + 1 :]))]


@converter("TensorListStack")
def stack(n: Node) -> Expr:
    items = _list(n).items
    if not items or any(item is None for item in items):
        raise Refused("it reads an element that was never written")
    parts = [n.as_expr(item) for item in items]
    lifted = [n.emit(n.reshaped(part, [1, *shape_of(part)])) for part in parts]
    return lifted[0] if len(lifted) == 1 else R.concat(lifted, 0)


@converter("TensorListLength")
def length(n: Node) -> np.ndarray:
    return np.array(len(_list(n).items), "int32")
