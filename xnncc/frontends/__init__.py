"""Model files -> Imported: one suffix table, and a look into files whose suffix says nothing.

Importing this package loads neither TVM nor onnx; ``load_model`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, BadModel, UnsupportedModel
from .sniff import looks_like

if TYPE_CHECKING:
    import numpy as np

    from .imported import Imported

# suffix -> (what it is, module beside this file, loader in it)
LOADERS: dict[str, tuple[str, str, str]] = {
    ".caffemodel": ("Caffe weights", ".caffe", "load_caffe"),  # refused there, with the name of what to give
    ".onnx": ("ONNX", ".onnx", "load_onnx"),
    ".pb": ("TensorFlow, frozen", ".tensorflow", "load_graph_def"),
    ".keras": ("Keras", ".tensorflow", "load_with_tensorflow"),
    ".h5": ("Keras", ".tensorflow", "load_with_tensorflow"),
    ".prototxt": ("Caffe", ".caffe", "load_caffe"),
    ".tflite": ("TensorFlow Lite", ".tflite", "load_tflite"),
    ".xq": ("compressed by xnncc", ".xq", "load_xq"),
}

WEIGHTS_APART = (".prototxt",)  # formats whose weights lie in a second file

Shapes = Mapping[str, tuple[int, ...]]


def load_model(
    path: str | Path,
    shapes: Shapes | None = None,
    samples: Mapping[str, np.ndarray] | None = None,
    *,
    check: bool = True,
    weights: str | Path | None = None,
    fixed: Mapping[str, np.ndarray] | None = None,
    nms_rows: int | None = None,
) -> Imported:
    """Return the network in ``path``, compared with its own runtime on ``samples`` or on random input.

    ``shapes`` gives each input with free dimensions its static shape, as ``--shape NAME=1,3,224,224`` does. ``weights``
    is the file of the weights where the format keeps them apart; by default the one beside ``path``.
    ``fixed`` gives ONNX inputs their values now, as ``--fix NAME=1,2,3`` does: they are constants then, and no inputs.
    ``nms_rows`` is the number of rows of every ONNX NonMaxSuppression, whose own is known only at run time.

    Raises:
        BadModel: no such file, cut off, or no model.
        UnsupportedModel: all operators, attributes and dtypes that cannot be built.
        ShapeError: a free dimension, or a shape that does not fit.
        BadInput: a sample or a fixed input with the wrong name, shape or dtype.
        ImportCheckFailed: the imported network computes other numbers than the source's runtime.
    """
    path = Path(path)
    loader, apart = _loader_of(path), _onnx_options(path, fixed, nms_rows)
    if weights is not None:
        if path.suffix.lower() not in WEIGHTS_APART:
            raise BadModel(f"--weights {weights}", f"{path} holds its weights itself", "Leave --weights out.")
        apart["weights"] = Path(weights)
    return loader(path, dict(shapes or {}), dict(samples) if samples else None, check=check, **apart)


def _onnx_options(path: Path, fixed: Mapping[str, np.ndarray] | None, nms_rows: int | None) -> dict[str, Any]:
    """Return the options that only the ONNX front-end has, as far as they are given."""
    options: dict[str, Any] = {"fixed": dict(fixed)} if fixed else {}
    options |= {"nms_rows": nms_rows} if nms_rows is not None else {}
    if options and path.suffix.lower() != ".onnx":
        flag = "--fix" if fixed else "--nms-rows"
        raise BadInput(flag, f"it is for ONNX models, {path} is none", f"Leave {flag} out.")
    return options


def _loader_of(path: Path) -> Callable[..., Imported]:
    if not path.exists():
        raise BadModel(f"{path}", "no such file", "Check the path of the model.")
    if (path / "saved_model.pb").is_file():
        loader: Callable[..., Imported] = import_module(".tensorflow", __package__).load_with_tensorflow
        return loader
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
