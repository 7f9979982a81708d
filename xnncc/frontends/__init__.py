"""Model files -> Imported: one suffix table, and a look into files whose suffix says nothing.

Importing this package loads neither TVM nor onnx; ``load_model`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BadModel, UnsupportedModel
from .sniff import looks_like

if TYPE_CHECKING:
    import numpy as np

    from .imported import Imported

# suffix -> (what it is, module beside this file, loader in it)
LOADERS: dict[str, tuple[str, str, str]] = {
    ".onnx": ("ONNX", ".onnx", "load_onnx"),
    ".tflite": ("TensorFlow Lite", ".tflite", "load_tflite"),
}

Shapes = Mapping[str, tuple[int, ...]]


def load_model(
    path: str | Path,
    shapes: Shapes | None = None,
    samples: Mapping[str, np.ndarray] | None = None,
    *,
    check: bool = True,
) -> Imported:
    """Return the network in ``path``, compared with its own runtime on ``samples`` or on random input.

    ``shapes`` gives each input with free dimensions its static shape, as ``--shape NAME=1,3,224,224`` does.

    Raises:
        BadModel: no such file, cut off, or no model.
        UnsupportedModel: all operators, attributes and dtypes that cannot be built.
        ShapeError: a free dimension, or a shape that does not fit.
        BadInput: a sample with the wrong name, shape or dtype.
        ImportCheckFailed: the imported network computes other numbers than the source's runtime.
    """
    path = Path(path)
    return _loader_of(path)(path, dict(shapes or {}), dict(samples) if samples else None, check=check)


def _loader_of(path: Path) -> Callable[..., Imported]:
    if not path.exists():
        raise BadModel(f"{path}", "no such file", "Check the path of the model.")
    if path.is_dir():
        raise BadModel(f"{path}", "this is a folder, not a model file", f"Give a file: {supported_suffixes()}.")
    entry = LOADERS.get(path.suffix.lower())
    if entry is None:
        found = looks_like(path)
        what = f"suffix '{path.suffix}' is not a model format that xnncc reads"
        raise UnsupportedModel(f"{path}", f"{what}; the file looks like {found}", f"Supported: {supported_suffixes()}.")
    _, module, function = entry
    return getattr(import_module(module, __package__), function)


def supported_suffixes() -> str:
    """Return the formats for a message: ``.onnx (ONNX)``."""
    return ", ".join(f"{suffix} ({what})" for suffix, (what, _, _) in sorted(LOADERS.items()))
