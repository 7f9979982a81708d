"""TensorLists in numpy."""

from __future__ import annotations

import numpy as np

from ..refused import Refused
from .graph import Operation
from .meanings import Array, meaning, sized
from .tensor_list import MAX_ITEMS, TensorList


@meaning("TensorListReserve")
def reserve(o: Operation, element_shape: Array, count: Array) -> TensorList:
    if not 0 <= int(count) <= MAX_ITEMS:
        raise Refused(f"a list of {int(count)} tensors is not supported", f"Supported: up to {MAX_ITEMS}.")
    return TensorList((None,) * int(count))


@meaning("TensorListFromTensor")
def from_tensor(o: Operation, x: Array, element_shape: Array) -> TensorList:
    sized([len(x)])
    return TensorList(tuple(x))


@meaning("TensorListGetItem")
def get_item(o: Operation, items: TensorList, index: Array, element_shape: Array) -> Array:
    return items.items[int(index)]


@meaning("TensorListSetItem")
def set_item(o: Operation, items: TensorList, index: Array, item: Array) -> TensorList:
    place = int(index)
    return TensorList((*items.items[:place], item, *items.items[place + 1 :]))


@meaning("TensorListStack")
def stack(o: Operation, items: TensorList, element_shape: Array) -> Array:
    return np.stack(items.items)


@meaning("TensorListLength")
def length(o: Operation, items: TensorList) -> Array:
    return np.array(len(items.items), "int32")
