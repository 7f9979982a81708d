"""The layer loop: every tensor becomes a constant or a Relax variable that carries its name.

Goes on after a layer that cannot be converted (what depends on it is skipped), so one run names every problem.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.relax import Expr

from ...errors import BadModel, UnsupportedModel
from ...ir.plan import TensorInfo
from ..network import NetworkBuilder, dtype_of, shape_of
from ..refused import MISFITS, Refused, last_line
from .layers import CONVERTERS
from .net import Layer, Net
from .node import Node, Value
from .refused import Broken
from .types import REASONS

MAX_ELEMENTS = 2**28  # of any one tensor, 1 GiB: no network for a device has a larger one


def check_types(path: Path, net: Net) -> None:
    """Name all layers that have no converter at once.

    Raises:
        UnsupportedModel: there are some.
    """
    missing: dict[str, list[str]] = {}
    for layer in net.layers:
        if layer.type not in CONVERTERS:
            missing.setdefault(layer.type, []).append(layer.name)
    if not missing:
        return
    words = []
    for kind, names in sorted(missing.items()):
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        listed = ", ".join(f"'{name}'" for name in names[:5])
        words.append(f"{kind} ({listed}{more}{f': {REASONS[kind]}' if kind in REASONS else ''})")
    count = "1 type of layer is" if len(missing) == 1 else f"{len(missing)} types of layers are"
    why = f"{count} not supported: {', '.join(words)}"
    raise UnsupportedModel(f"{path}", why, "See docs/errors.md#unsupported-operator.")


class NetConverter:
    """Converts one network; ``warnings`` collects what was left out."""

    def __init__(self, path: Path, net: Net) -> None:
        self._path, self._net = path, net
        self._build = NetworkBuilder()
        self._readers = net.readers()
        self.problems: list[tuple[bool, str]] = []  # whether Caffe would refuse it too, and the sentence
        self.warnings: list[str] = []

    def convert(self, inputs: tuple[TensorInfo, ...]) -> tuple[tvm.IRModule, tuple[TensorInfo, ...]]:
        """Return the module and its outputs.

        Raises:
            UnsupportedModel: names every layer that cannot be converted, and why.
            BadModel: the same, when all that is wrong lies in the files.
        """
        values: dict[str, Value] = {i.name: self._build.input(i.name, i.shape, i.dtype) for i in inputs}
        for layer in self._net.layers:
            if all(name in values for name in layer.inputs):
                try:
                    values.update(self._converted(layer, [values[name] for name in layer.inputs]))
                except Refused as refused:
                    self.problems.append((isinstance(refused, Broken), f"{layer.label}: {refused.sentence}"))
        if self.problems:
            raise self._refusal()
        exprs = [self._expr(values[name]) for name in self._net.outputs]
        infos = tuple(TensorInfo(n, shape_of(e), dtype_of(e)) for n, e in zip(self._net.outputs, exprs, strict=True))
        return self._build.finish(exprs), infos

    def tensors(self, mod: tvm.IRModule) -> frozenset[str]:
        """Return the names of the module's variables that compute a tensor of the network."""
        known = {name for layer in self._net.layers for name in layer.outputs}
        return frozenset(b.var.name for block in mod["main"].body.blocks for b in block.bindings) & known

    def _refusal(self) -> BadModel:
        count = "1 layer" if len(self.problems) == 1 else f"{len(self.problems)} layers"
        shown = "; ".join(sentence for _, sentence in self.problems[:12])
        more = f"; and {len(self.problems) - 12} more" if len(self.problems) > 12 else ""
        why = f"{count} cannot be built: {shown}{more}"
        if all(broken for broken, _ in self.problems):
            return BadModel(f"{self._path}", why, "Check that prototxt and caffemodel belong together.")
        return UnsupportedModel(f"{self._path}", why, "See docs/errors.md#unsupported-attribute.")

    def _expr(self, value: Value) -> Expr:
        return self._build.constant(value) if isinstance(value, np.ndarray) else value

    def _converted(self, layer: Layer, values: list[Value]) -> dict[str, Value]:
        node = Node(layer, values, self._build, lambda name: self._readers[name])
        try:
            result: Any = CONVERTERS[layer.type](node)
            results = list(result) if isinstance(result, list | tuple) else [result]
            for value in results:  # before numpy or TVM makes anything of that size
                _check_size(value)
            results = [self._build.emit(r) if isinstance(r, Expr) else r for r in results]
        except MemoryError:
            raise Refused("it needs more memory than there is") from None
        except MISFITS as error:
            shapes = ", ".join(str(list(node.shape(i))) for i in range(len(node))) or "none"
            raise Broken(f"inputs {shapes} do not fit ({last_line(error)})") from error
        if any(node.wants(index) for index in range(len(results), len(layer.outputs))):
            raise Broken(f"it has {len(layer.outputs)} tops, expected {len(results)}")
        for field in node.unread():
            self.warnings.append(f"{layer.label}: field '{field}' is not known and was left out")
        named = dict(zip(layer.outputs, results, strict=False))
        for name, value in named.items():
            if isinstance(value, Expr):
                _check_size(value)
                self._build.rename(value, name)
        return named


def _check_size(value: Any) -> None:
    shape = value.shape if isinstance(value, np.ndarray) else shape_of(value) if _is_typed(value) else ()
    if math.prod(shape) > MAX_ELEMENTS:
        raise Refused(f"its result {list(shape)} has more than {MAX_ELEMENTS} elements")


def _is_typed(value: Any) -> bool:
    return getattr(value, "ty", None) is not None and hasattr(value.ty, "shape") and value.ty.shape is not None
