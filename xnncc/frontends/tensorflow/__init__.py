"""TensorFlow -> Imported: read or freeze, pre-flight, static shapes, conversion with folding, and the check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from ...ir.plan import TensorInfo
    from ..imported import Imported, Reference

Shapes = dict[str, tuple[int, ...]]


def load_graph_def(
    path: Path, shapes: Shapes, samples: dict[str, np.ndarray] | None, *, check: bool = True
) -> Imported:
    """Return the network in a frozen GraphDef (``.pb``); see ``frontends.load_model`` for the errors it raises."""
    if path.name == "saved_model.pb":
        return load_with_tensorflow(path.parent, shapes, samples, check=check)
    from .read import read_bytes

    return _imported(path, read_bytes(path), shapes, samples, check)


def load_with_tensorflow(
    path: Path, shapes: Shapes, samples: dict[str, np.ndarray] | None, *, check: bool = True
) -> Imported:
    """Return the network in a SavedModel folder or a Keras file, frozen by TensorFlow itself."""
    from .freeze import frozen

    return _imported(path, frozen(path), shapes, samples, check)


def _imported(path: Path, data: bytes, shapes: Shapes, samples: dict[str, np.ndarray] | None, check: bool) -> Imported:
    from ..loading import checked, imported_by
    from .convert import GraphConverter
    from .custom import has_custom
    from .graph import needed_for
    from .preflight import check_operators
    from .read import parse_graph_def
    from .reference import NUMPY_NAME, NumpyReference, TensorFlowReference, has_tensorflow, used_placeholders
    from .shapes import static_inputs

    graph = parse_graph_def(data, path)
    needed = needed_for(graph.operations, graph.outputs)
    check_operators(path, graph, needed)
    inputs = static_inputs(path, used_placeholders(needed), shapes)

    is_judge = has_tensorflow() and not has_custom(needed)

    def runtime(outputs: tuple[TensorInfo, ...]) -> Reference:
        return TensorFlowReference(path, data, outputs) if is_judge else NumpyReference(path, graph, outputs)

    why = "does not know the plugin's operators" if has_tensorflow() else "is not installed"
    note = [] if is_judge else [f"TensorFlow {why}: compared with {NUMPY_NAME} instead"]
    return checked(imported_by(GraphConverter(path, graph), inputs, path, runtime, note), samples, check)
