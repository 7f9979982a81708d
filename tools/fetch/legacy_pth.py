"""Read a legacy ``.pth`` state dict (PyTorch before 1.6) with numpy alone.

The file is five pickles (magic number, format version, system info, the state dict, storage keys) and then, for each
key, the element count as int64 and the raw little-endian elements. A pickle may name any Python function, so the
unpickler here knows four names and refuses every other one: loading runs nothing from the file.
"""

from __future__ import annotations

import collections
import pickle
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_STORAGES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}


@dataclass(frozen=True)
class _Storage:
    """Where a tensor's elements are: the key of a storage of the file, and its dtype."""

    key: str
    dtype: np.dtype


@dataclass(frozen=True)
class _Tensor:
    """A tensor as pickled: a strided view of a storage, offset and strides in elements."""

    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def _rebuild_tensor(storage: _Storage, offset: int, size: tuple, stride: tuple, *_ignored: Any) -> _Tensor:
    """Stands in for ``torch._utils._rebuild_tensor_v2``."""
    return _Tensor(storage, offset, tuple(size), tuple(stride))


class _StateDictUnpickler(pickle.Unpickler):
    """Builds a dict of :class:`_Tensor`; refuses every other type."""

    def find_class(self, module: str, name: str) -> Any:
        """Only what a state dict needs."""
        if module == "torch._utils" and name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        raise pickle.UnpicklingError(f"'{module}.{name}' has no place in a state dict")

    def persistent_load(self, pid: Any) -> _Storage:
        """``("storage", type, key, device, elements)``"""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], np.dtype):
            raise pickle.UnpicklingError(f"unknown persistent id {pid!r}")
        return _Storage(str(pid[2]), pid[1])


def read_state_dict(path: Path) -> dict[str, np.ndarray]:
    """Name -> array of every tensor of a legacy ``.pth`` file.

    Raises:
        ValueError: the file is no legacy state dict, is cut off, or holds something else than tensors.
    """
    try:
        with path.open("rb") as file:
            magic, version = _StateDictUnpickler(file).load(), _StateDictUnpickler(file).load()
            if (magic, version) != (_MAGIC, _VERSION):
                raise ValueError(f"{path}: no legacy PyTorch file (magic {magic!r}, version {version!r})")
            _StateDictUnpickler(
                file
            ).load()  # byte order and word sizes of the writer; always little-endian in practice
            tensors = _StateDictUnpickler(file).load()
            keys = _StateDictUnpickler(file).load()
            if not all(isinstance(t, _Tensor) for t in tensors.values()):
                raise ValueError(f"{path}: the state dict holds something else than tensors")
            storages = _read_storages(file, keys, {t.storage.key: t.storage.dtype for t in tensors.values()})
    except (pickle.UnpicklingError, EOFError, struct.error, AttributeError, IndexError) as error:
        raise ValueError(f"{path}: no legacy PyTorch state dict: {error}") from error
    return {name: _array(tensor, storages, name) for name, tensor in tensors.items()}


def _read_storages(file: BinaryIO, keys: list[str], dtypes: dict[str, np.dtype]) -> dict[str, np.ndarray]:
    """Elements of every storage, in the order of ``keys``."""
    storages = {}
    for key in keys:
        (count,) = struct.unpack("<q", file.read(8))
        dtype = dtypes[key]
        content = file.read(count * dtype.itemsize)
        if count < 0 or len(content) != count * dtype.itemsize:
            raise EOFError(f"storage {key} is cut off")
        storages[key] = np.frombuffer(content, dtype)
    return storages


def _array(tensor: _Tensor, storages: dict[str, np.ndarray], name: str) -> np.ndarray:
    """A dense copy of the tensor, after a check that its view stays inside the storage."""
    elements = storages[tensor.storage.key]
    if min((*tensor.size, *tensor.stride, tensor.offset, 0)) < 0 or len(tensor.size) != len(tensor.stride):
        raise ValueError(f"tensor '{name}' has a negative size or stride")
    last = tensor.offset + sum((n - 1) * s for n, s in zip(tensor.size, tensor.stride, strict=True))
    if 0 not in tensor.size and last >= elements.size:
        raise ValueError(f"tensor '{name}' reaches beyond its storage")
    strides = [s * elements.itemsize for s in tensor.stride]
    return np.lib.stride_tricks.as_strided(elements[tensor.offset :], tensor.size, strides).copy()
