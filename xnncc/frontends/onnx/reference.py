"""onnxruntime on the model as it came in: one thread, no graph optimisation, so that its numbers are always the same.

With optimisations onnxruntime moves quantised networks by a step or two between versions (2026-11, onnxruntime 1.32).
A model that onnxruntime cannot load is refused: onnx's own reference operators are no judge (their LRN loops over the
batch where it means the channels: onnx 1.23.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ...errors import BadModel
from ...ir.plan import TensorInfo
from ...ir.transposed import untransposed
from .batchwise import without_batchwise
from .exact_integers import with_unsigned_weights


class OnnxReference:
    """Sessions are made at first use; see ``frontends.imported.Reference``."""

    def __init__(self, path: Path, model: onnx.ModelProto, inputs: tuple[TensorInfo, ...]) -> None:
        model = with_unsigned_weights(without_batchwise(model))
        self._path, self._model, self._inputs = path, model, inputs
        self._session: _Session | None = None
        self._traced: tuple[frozenset[str], _Session | None] = (frozenset(), None)

    @property
    def name(self) -> str:
        """The runtime and its version, for messages."""
        return self._main().name

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the model's outputs by name."""
        return self._main().run([output.name for output in self._model.graph.output], self._known(feeds), self._path)

    def tensors(self, feeds: dict[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return tensors of the main graph by name, ``name@0312`` with its axes in that order; names that are none of
        its are left out."""
        asked = {name: untransposed(name) for name in names}
        found = self._plain_tensors(feeds, {tensor for tensor, _ in asked.values()})
        return {
            name: found[tensor] if axes is None else found[tensor].transpose(axes)
            for name, (tensor, axes) in asked.items()
            if tensor in found and (axes is None or len(axes) == found[tensor].ndim)
        }

    def _plain_tensors(self, feeds: dict[str, np.ndarray], names: set[str]) -> dict[str, np.ndarray]:
        computed = {name for node in self._model.graph.node for name in node.output}
        wanted = frozenset(names) & computed
        if not wanted:
            return {}  # onnxruntime takes an empty list of names for all outputs
        session = self._traced[1]
        if session is None or self._traced[0] != wanted:
            session = _open(self._with_outputs(wanted), self._path)
            self._traced = (wanted, session)
        return session.run(sorted(wanted), self._known(feeds), self._path)

    def _main(self) -> _Session:
        self._session = self._session or _open(self._model, self._path)
        return self._session

    def _with_outputs(self, wanted: frozenset[str]) -> onnx.ModelProto:
        traced = onnx.ModelProto()
        traced.CopyFrom(self._model)
        existing = {output.name for output in traced.graph.output}
        traced.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(wanted - existing))
        return traced

    def _known(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {info.name: feeds[info.name] for info in self._inputs}


class _Session:
    """onnxruntime with one model loaded."""

    def __init__(self, name: str, runtime: Any) -> None:
        self.name, self._runtime = name, runtime

    def run(self, names: list[str], feeds: dict[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
        try:
            values = self._runtime.run(names, feeds)
        except Exception as error:  # onnxruntime's exceptions have no common base below Exception
            why = f"{self.name} cannot run it ({_short(error)})"
            raise BadModel(f"{path}", why, "Check the model, and that --shape and samples suit it.") from error
        return dict(zip(names, map(np.asarray, values), strict=True))


def _open(model: onnx.ModelProto, path: Path) -> _Session:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    name = f"onnxruntime {onnxruntime.__version__}"
    try:
        data = model.SerializeToString(deterministic=True)
        return _Session(name, onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]))
    except Exception as error:  # onnxruntime's exceptions have no common base below Exception
        why = f"{name} cannot load it, so the import cannot be checked ({_short(error)})"
        raise BadModel(f"{path}", why, "Check that the model runs in onnxruntime.") from error


def _short(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
