"""ONNX -> Imported: read, pre-flight, static shapes, conversion with constant folding, and the check."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from ..imported import Imported


def load_onnx(
    path: Path,
    shapes: dict[str, tuple[int, ...]],
    samples: dict[str, np.ndarray] | None,
    *,
    check: bool = True,
    fixed: Mapping[str, np.ndarray] | None = None,
) -> Imported:
    """Return the network in an ONNX file; see ``frontends.load_model`` for the errors it raises.

    ``fixed`` gives inputs their values now: they become weights (``fix_inputs.py``).
    """
    import dataclasses

    from ..check import check_import
    from ..imported import Imported
    from .convert import GraphConverter
    from .fix_inputs import fix_inputs
    from .preflight import check_model
    from .read import read_onnx
    from .reference import OnnxReference
    from .shapes import static_inputs

    model = read_onnx(path)
    if fixed:
        model = fix_inputs(model, fixed)
    opset = check_model(path, model)
    inputs = static_inputs(path, model.graph, shapes)
    converter = GraphConverter(path, model, opset)
    mod, outputs = converter.convert(inputs)
    imported = Imported(
        mod=mod,
        inputs=inputs,
        outputs=outputs,
        source=path,
        tensors=converter.tensors(mod),
        runtime=OnnxReference(path, model, inputs),
        warnings=tuple(converter.warnings),
    )
    return dataclasses.replace(imported, check=check_import(imported, samples)) if check else imported
