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
    nms_rows: int | None = None,
) -> Imported:
    """Return the network in an ONNX file; see ``frontends.load_model`` for the errors it raises.

    ``fixed`` gives inputs their values now: they become weights (``fix_inputs.py``). ``nms_rows``
    is the fixed number of rows of every NonMaxSuppression (``pad_selections.py``).
    """
    import dataclasses

    from ..loading import checked, imported_by
    from .convert import GraphConverter
    from .custom_reference import reference_for
    from .fix_inputs import fix_inputs
    from .pad_selections import pad_selections, warning
    from .preflight import check_model
    from .read import read_onnx
    from .shapes import static_inputs

    model = read_onnx(path)
    warnings: tuple[str, ...] = ()
    if fixed:
        model, fixed = fix_inputs(model, fixed)
    judge = model
    if nms_rows is not None:
        model, judge = pad_selections(model, nms_rows, path)
        warnings = (warning(nms_rows),)
    opset = check_model(path, model)
    inputs = static_inputs(path, model.graph, shapes)
    converter = GraphConverter(path, model, opset)
    imported = imported_by(converter, inputs, path, lambda outputs: reference_for(path, judge, inputs), warnings)
    imported = dataclasses.replace(imported, fixed=fixed or {}, nms_rows=nms_rows)
    return checked(imported, samples, check)
