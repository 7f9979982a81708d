"""CaffeReference: the network run by Caffe's own formulas in numpy, what an import and an artefact are judged by.

No installable Caffe is left (2026-11), and OpenCV dropped its reader with version 5. The formulas are compared with
OpenCV 4.14 in ``tests/frontends/caffe``, on stored results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from . import formulas_elementwise, formulas_shape, formulas_ssd, formulas_windows
from .formulas import FORMULAS, Array
from .net import Net

FAMILIES = (formulas_elementwise, formulas_shape, formulas_ssd, formulas_windows)


class CaffeReference:
    """See ``frontends.imported.Reference``."""

    def __init__(self, net: Net) -> None:
        self._net = net

    @property
    def name(self) -> str:
        """The runtime and its version, for messages."""
        return f"Caffe's formulas in numpy {np.__version__}"

    def run(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """Return the network's outputs by name."""
        return self._computed(feeds, set(self._net.outputs))

    def tensors(self, feeds: dict[str, Array], names: Iterable[str]) -> dict[str, Array]:
        """Return tensors by name; names that are none of the network's are left out."""
        return self._computed(feeds, set(names))

    def _computed(self, feeds: dict[str, Array], wanted: set[str]) -> dict[str, Array]:
        values = {name: feeds[name] for name, _ in self._net.inputs}
        left, kept = Counter(name for layer in self._net.layers for name in layer.inputs), {}
        with np.errstate(all="ignore"):
            for layer in self._net.layers:
                result = FORMULAS[layer.type](layer, [values[name] for name in layer.inputs])
                results = result if isinstance(result, list | tuple) else [result]
                for name, value in zip(layer.outputs, results, strict=False):
                    values[name] = np.asarray(value, "float32")
                    if name in wanted:
                        kept[name] = values[name]
                for name in layer.inputs:
                    left[name] -= 1
                    if not left[name]:
                        values.pop(name, None)
        return kept
