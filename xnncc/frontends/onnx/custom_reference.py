"""The reference of an ONNX model with the user's own operators, which onnxruntime does not know.

The graph is cut at these nodes: onnxruntime computes what they read, their reference in numpy what they give, and so
on to the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx

from ...errors import BadModel
from ...ir.plan import TensorInfo
from ..custom_ops import custom_named, run_reference
from ..refused import Refused
from .custom import call_of
from .node import label_of, operator_of
from .reference import OnnxReference

_KNOWN_DOMAINS = ("", "ai.onnx", "com.microsoft")  # onnxruntime's own
Arrays = dict[str, np.ndarray]


def reference_for(path: Path, model: onnx.ModelProto, inputs: tuple[TensorInfo, ...]) -> OnnxReference | CutReference:
    """Return onnxruntime on the whole model, or on the parts of it between the user's own operators."""
    cuts = [node for node in model.graph.node if _is_cut(node)]
    return CutReference(path, model, inputs, cuts) if cuts else OnnxReference(path, model, inputs)


def _is_cut(node: onnx.NodeProto) -> bool:
    op = custom_named(operator_of(node))
    return op is not None and (op.reference is not None or node.domain not in _KNOWN_DOMAINS)


class CutReference:
    """See ``frontends.imported.Reference``. Nodes within branches and loops stay in the graph, uncut."""

    def __init__(
        self, path: Path, model: onnx.ModelProto, inputs: tuple[TensorInfo, ...], cuts: list[onnx.NodeProto]
    ) -> None:
        self._path, self._model, self._inputs, self._cuts = path, model, inputs, cuts
        self._weights = {tensor.name for tensor in model.graph.initializer}

    @property
    def name(self) -> str:
        """The runtime and its version, for messages."""
        import onnxruntime

        kinds = ", ".join(sorted({operator_of(node) for node in self._cuts}))
        return f"onnxruntime {onnxruntime.__version__} with the plugin's {kinds}"

    def run(self, feeds: Arrays) -> Arrays:
        """Return the model's outputs by name."""
        return self.tensors(feeds, [output.name for output in self._model.graph.output])

    def tensors(self, feeds: Arrays, names: Iterable[str]) -> Arrays:
        """Return tensors of the main graph by name; names that are none of its are left out."""
        known: Arrays = {info.name: feeds[info.name] for info in self._inputs}
        made = {name for node in self._model.graph.node for name in node.output}
        wanted = [name for name in names if name in made or name in known]
        for node in self._cuts:
            known |= self._computed(known, [name for name in node.input if name])
            arrays = [known[name] for name in node.input if name]
            try:
                results = run_reference(call_of(node, arrays), arrays)
            except Refused as refused:
                raise BadModel(f"{self._path}: {label_of(node)}", refused.sentence, "Correct the plugin.") from refused
            known |= dict(zip(node.output, results, strict=False))
        known |= self._computed(known, wanted)
        return {name: known[name] for name in wanted}

    def _computed(self, known: Arrays, wanted: list[str]) -> Arrays:
        """Return what onnxruntime computes of ``wanted`` from what is known."""
        missing = [name for name in dict.fromkeys(wanted) if name not in known]
        if not missing:
            return {}
        part = onnx.ModelProto()
        part.CopyFrom(self._model)
        nodes, read = self._needed(known, missing)
        given = {name: known[name] for name in known if name in read}
        graph = part.graph
        for items in (graph.node, graph.input, graph.output, graph.value_info):
            del items[:]
        graph.node.extend(nodes)
        kept = [t for t in self._model.graph.initializer if t.name in read or t.name in missing]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        graph.input.extend(_described(name, array) for name, array in given.items())
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in missing)
        infos = tuple(TensorInfo(name, array.shape, str(array.dtype)) for name, array in given.items())
        return OnnxReference(self._path, part, infos).run(given)

    def _needed(self, known: Arrays, wanted: list[str]) -> tuple[list[onnx.NodeProto], set[str]]:
        """Return the nodes that ``wanted`` needs beyond what is known, and the tensors that they read."""
        from .convert import _node_reads

        left, read, nodes = set(wanted), set[str](), []
        for node in reversed(self._model.graph.node):
            if left & set(node.output) and not set(node.output) <= set(known):
                nodes.append(node)
                reads = set(_node_reads([node])) - {""}
                read |= reads
                left |= {name for name in reads if name not in known}
        return nodes[::-1], read


def _described(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
