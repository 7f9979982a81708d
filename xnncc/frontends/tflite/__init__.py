"""TFLite -> Imported: read, pre-flight, conversion with constant folding, and the check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from ..imported import Imported


def load_tflite(
    path: Path,
    shapes: dict[str, tuple[int, ...]],
    samples: dict[str, np.ndarray] | None,
    *,
    check: bool = True,
) -> Imported:
    """Return the network in a TFLite file; see ``frontends.load_model`` for the errors it raises."""
    from ..imported import Imported
    from ..loading import checked
    from ..tie_states import tie_states
    from .convert import GraphConverter
    from .preflight import check_model, check_shapes
    from .read import read_tflite
    from .reference import TfliteReference
    from .state import NEXT

    model = read_tflite(path)
    check_model(path, model)
    converter = GraphConverter(path, model)
    mod = converter.convert()
    check_shapes(converter.inputs, shapes)
    runtime = TfliteReference(
        model, converter.inputs, converter.outputs, converter.planar_tensors(), converter.variables
    )
    imported = Imported(
        mod=mod,
        inputs=converter.inputs,
        outputs=converter.outputs,
        source=path,
        tensors=converter.tensors(mod),
        runtime=runtime,
        warnings=(*converter.warnings, *runtime.warnings),
    )
    imported = checked(imported, samples, check)
    return tie_states(imported, [f"{v.name}:{v.name}{NEXT}" for v in converter.variables if v.is_kept])
