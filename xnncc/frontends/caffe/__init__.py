"""Caffe -> Imported: prototxt and caffemodel read without Caffe, conversion, and the check against Caffe's formulas.

No package with Caffe itself exists any more, so the runtime that an import is compared with is an interpreter of our
own (``reference.py``), written from Caffe's formulas and sharing nothing with the converters but the reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from ..imported import Imported


def load_caffe(
    path: Path,
    shapes: dict[str, tuple[int, ...]],
    samples: dict[str, np.ndarray] | None,
    *,
    check: bool = True,
    weights: Path | None = None,
) -> Imported:
    """Return the network in a prototxt; see ``frontends.load_model`` for the errors it raises."""
    from ..loading import checked, imported_by
    from .convert import NetConverter, check_types
    from .inputs import static_inputs
    from .read import read_net, weights_of
    from .reference import CaffeReference

    net = read_net(path, weights)
    check_types(path, net)
    inputs = static_inputs(path, net, shapes)
    files = (weights_of(path, weights),)
    converter = NetConverter(path, net)
    imported = imported_by(converter, inputs, path, lambda outputs: CaffeReference(net), net.warnings, files)
    return checked(imported, samples, check)
