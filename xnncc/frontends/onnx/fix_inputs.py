"""Inputs that are given at build time: their values become weights, and the artefact has no such input.

A library is compiled for fixed shapes, so what decides a shape (the axes of a reduction, the sizes of a slice) must be
known then. A model that takes such a thing as an input can still be built for one value of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from ...errors import BadInput, nearest


def fix_inputs(model: onnx.ModelProto, fixed: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Return a copy of ``model`` in which the named inputs are constants.

    Raises:
        BadInput: no such input, or a value of another dtype.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for name, value in fixed.items():
        names = [info.name for info in result.graph.input]
        if name not in names:
            raise BadInput(f"fixed input '{name}'", f"the model has no such input{nearest(name, names)}", _names(names))
        info = result.graph.input[names.index(name)]
        tensor = onnx.numpy_helper.from_array(np.asarray(value), name)
        expected = info.type.tensor_type.elem_type
        if tensor.data_type != expected:
            kinds = [onnx.TensorProto.DataType.Name(kind).lower() for kind in (tensor.data_type, expected)]
            raise BadInput(f"fixed input '{name}'", f"it is {kinds[0]}, the model wants {kinds[1]}", "Cast it first.")
        result.graph.input.remove(info)
        result.graph.initializer.append(tensor)
    return result


def _names(names: list[str]) -> str:
    return f"Inputs: {', '.join(repr(name) for name in names) or 'none'}."
