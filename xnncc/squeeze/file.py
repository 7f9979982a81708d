"""A network under compression as the bytes of an ``.xq`` file, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..compress.result import Squeezed
from ..ir.coded import CodedTensor, digest
from ..ir.graph_records import module_of, record_module
from ..pack.xq_file import XqFile, decode_xq, encode_xq

if TYPE_CHECKING:
    import numpy as np
    import tvm


def to_file(mod: tvm.IRModule, coded: Mapping[str, CodedTensor], facts: Mapping[str, Any]) -> XqFile:
    """Return the contents of the file: constants coded where the table has them.

    Raises: UnsupportedModel, naming the operators that no record can say.
    """
    records, arrays = record_module(mod)
    constants: list[CodedTensor | np.ndarray] = [coded.get(digest(array), array) for array in arrays]
    return XqFile(records, constants, dict(facts))


def to_bytes(
    state: Squeezed, outputs: Sequence[str], facts: Mapping[str, Any] | None = None, is_final: bool = False
) -> bytes:
    """Return ``state`` as a file; ``outputs``: the names of the results; ``is_final``: take time for the best coder."""
    return encode_xq(to_file(state.mod, state.coded, {"outputs": list(outputs), **(facts or {})}), is_final)


def from_bytes(data: bytes, what: str) -> Squeezed:
    """Return the network in ``data``.

    Raises: BadModel.
    """
    file = decode_xq(data, what)
    arrays = [one.values() if isinstance(one, CodedTensor) else one for one in file.constants]
    coded = {
        digest(array): one for array, one in zip(arrays, file.constants, strict=True) if isinstance(one, CodedTensor)
    }
    return Squeezed(module_of(file.records, arrays, what)[0], coded)


def recorded(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` as it comes back from a file: what cannot be written is known before hours of work.

    Raises: UnsupportedModel.
    """
    records, arrays = record_module(mod)
    return module_of(records, arrays, "the model")[0]
