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
    import dataclasses

    from ..check import check_import
    from ..imported import Imported
    from .convert import NetConverter, check_types
    from .inputs import static_inputs
    from .read import read_net
    from .reference import CaffeReference

    net = read_net(path, weights)
    check_types(path, net)
    inputs = static_inputs(path, net, shapes)
    converter = NetConverter(path, net)
    mod, outputs = converter.convert(inputs)
    imported = Imported(
        mod=mod,
        inputs=inputs,
        outputs=outputs,
        source=path,
        tensors=converter.tensors(mod),
        runtime=CaffeReference(net),
        warnings=net.warnings + tuple(converter.warnings),
    )
    return dataclasses.replace(imported, check=check_import(imported, samples)) if check else imported
