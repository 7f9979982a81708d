"""The reference runtime: TensorFlow where it is installed, otherwise the formulas of ``meaning_*.py`` in numpy."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadModel
from ...ir.plan import TensorInfo
from ...ir.transposed import untransposed
from ..refused import Refused
from .graph import Graph, Operation, node_of
from .interpret import interpret

NUMPY_NAME = f"xnncc's numpy formulas of TensorFlow's operators (numpy {np.__version__})"


def _with_transposed(tensors: Any, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return ``tensors(feeds, names)`` with names like ``conv1@0312`` as those tensors transposed."""
    asked = {name: untransposed(name) for name in names}
    found = tensors(feeds, sorted({tensor for tensor, _ in asked.values()}))
    return {
        name: found[tensor] if axes is None else found[tensor].transpose(axes)
        for name, (tensor, axes) in asked.items()
        if tensor in found and (axes is None or found[tensor].ndim == len(axes))
    }


class NumpyReference:
    """The graph run by numpy; see ``frontends.imported.Reference``."""

    def __init__(self, path: Path, graph: Graph, outputs: tuple[TensorInfo, ...]) -> None:
        self._path, self._graph, self._outputs = path, graph, outputs

    @property
    def name(self) -> str:
        """The runtime, for messages."""
        return NUMPY_NAME

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        return self.tensors(feeds, [info.name for info in self._outputs])

    def tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return tensors by name; names that are none of the graph are left out."""
        return _with_transposed(self._tensors, feeds, names)

    def _tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        known = {operation.name for operation in self._graph.operations}
        wanted = [name for name in names if node_of(name) in known]
        try:
            return interpret(self._graph, feeds, wanted)
        except Refused as refused:
            why = f"numpy cannot run it ({refused.sentence})"
            raise BadModel(f"{self._path}", why, "Install TensorFlow for the check: pip install 'xnncc[tf]'") from None


class TensorFlowReference:
    """The graph run by TensorFlow itself; the session is made at first use."""

    def __init__(self, path: Path, data: bytes, outputs: tuple[TensorInfo, ...]) -> None:
        self._path, self._data, self._outputs = path, data, outputs
        self._session: Any = None

    @property
    def name(self) -> str:
        """The runtime and its version, for messages."""
        return f"TensorFlow {tensorflow_version()}"

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        return self.tensors(feeds, [info.name for info in self._outputs])

    def tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return tensors by name; names that are none of the graph are left out."""
        return _with_transposed(self._tensors, feeds, names)

    def _tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        session = self._open()
        known = {operation.name for operation in session.graph.get_operations()}
        wanted = [name for name in names if node_of(name) in known]
        fed = {_full(name): value for name, value in feeds.items() if name in known}
        try:
            values = session.run([_full(name) for name in wanted], fed)
        except Exception as error:  # TensorFlow's errors have no common base below Exception
            why = f"{self.name} cannot run it ({str(error).strip().splitlines()[0][:300]})"
            raise BadModel(f"{self._path}", why, "Check the model, and that --shape and samples suit it.") from error
        return dict(zip(wanted, map(np.asarray, values), strict=True))

    def _open(self) -> Any:
        if self._session is None:
            import tensorflow as tf  # type: ignore[import-untyped]

            v1, definition = tf.compat.v1, tf.compat.v1.GraphDef()
            definition.ParseFromString(self._data)
            graph = tf.Graph()
            try:
                with graph.as_default():
                    tf.import_graph_def(definition, name="")
            except Exception as error:  # see above
                why = f"{self.name} cannot load it ({str(error).strip().splitlines()[0][:300]})"
                raise BadModel(f"{self._path}", why, "Freeze the model again.") from error
            options = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
            options.graph_options.rewrite_options.disable_meta_optimizer = True
            self._session = v1.Session(graph=graph, config=options)
        return self._session


def _full(name: str) -> str:
    return name if ":" in name else f"{name}:0"


def has_tensorflow() -> bool:
    """Return whether TensorFlow can be imported here; does not import it. A mere folder of that name does not count."""
    spec = find_spec("tensorflow")
    return spec is not None and spec.origin is not None


def tensorflow_version() -> str:
    """Return the installed version, or "(unknown version)"."""
    for package in ("tensorflow", "tensorflow-cpu"):
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return "(unknown version)"


def used_placeholders(operations: Iterable[Operation]) -> list[Operation]:
    """Return the inputs among ``operations``, in file order."""
    return [operation for operation in operations if operation.kind == "Placeholder"]
