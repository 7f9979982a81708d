"""Read an ONNX file as something hostile: size, form and external data are checked before anything is believed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import external_data_helper

from ...errors import BadModel, UnsupportedModel
from ..sniff import looks_like

MAX_FILE_BYTES = 2**31 - 1  # a protobuf message cannot be longer; larger models keep weights in external files
MAX_NODES = 2**20  # after local functions are put in place
MAX_EXTERNAL_BYTES = 2**34  # 16 GiB of weights: nothing for a device is larger


def read_onnx(path: Path) -> onnx.ModelProto:
    """Return the model in ``path`` with external data loaded and its local functions inlined.

    Raises:
        BadModel: missing, too large, cut off, no ONNX model, or external data that is missing or outside the folder.
        UnsupportedModel: sparse weights.
    """
    model = read_graph(path)
    if model.graph.sparse_initializer:
        names = ", ".join(f"'{s.values.name}'" for s in model.graph.sparse_initializer)
        raise UnsupportedModel(f"{path}", f"sparse weights are not supported: {names}", "Export them dense.")
    _load_external_data(model, path)
    return model


def read_graph(path: Path) -> onnx.ModelProto:
    """Return the model in ``path`` with its local functions inlined; external data is left where it is.

    Raises:
        BadModel: missing, too large, cut off, or no ONNX model.
    """
    model = _parse(path)
    if not model.graph.node and not model.graph.output:
        raise BadModel(f"{path}", f"not an ONNX model, it looks like {looks_like(path)}", "Give an .onnx file.")
    if not _is_text(model.graph):
        raise BadModel(f"{path}", "a name in it is not text (UTF-8)", "Download or export the model again.")
    if not model.graph.output:
        raise BadModel(f"{path}", "the graph has no output", "Export the model again.")
    return _inlined(model, path) if model.functions else model


def _inlined(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """Return the model without local functions; counts first, as functions that call others twice grow like 2^n."""
    from onnx import inliner

    bodies = {(function.domain, function.name): function.node for function in model.functions}
    counts: dict[tuple[str, str], int | None] = {}

    def count_of(nodes: Iterable[onnx.NodeProto]) -> int:
        total = 0
        for node in nodes:
            subgraphs = [a.g.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
            total += 1 + sum(count_of(inner) for inner in subgraphs)
            key = (node.domain, node.op_type)
            if key in bodies:
                if key in counts and counts[key] is None:
                    raise BadModel(f"{path}", f"function '{node.op_type}' calls itself", "Export the model again.")
                if key not in counts:
                    counts[key] = None
                    counts[key] = count_of(bodies[key])
                total += counts[key] or 0
        return total

    if (total := count_of(model.graph.node)) > MAX_NODES:
        why = f"its functions stand for {total} nodes, at most {MAX_NODES} are read"
        raise BadModel(f"{path}", why, "Export the model again.")
    try:
        return inliner.inline_local_functions(model)
    except Exception as error:  # what the inliner raises has no common base below Exception
        why = f"its functions cannot be put in place ({str(error).strip().splitlines()[0][:200]})"
        raise BadModel(f"{path}", why, "Export the model again.") from error


def _parse(path: Path) -> onnx.ModelProto:
    size = path.stat().st_size
    if size == 0:
        raise BadModel(f"{path}", "the file is empty", "Download or export the model again.")
    if size > MAX_FILE_BYTES:
        why = f"{size} bytes, an ONNX file has at most {MAX_FILE_BYTES}"
        raise BadModel(f"{path}", why, "Save it with external data: onnx.save(..., save_as_external_data=True).")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadModel(f"{path}", f"cannot be read ({error.strerror})", "Check the file and its rights.") from error
    try:
        return onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        found = looks_like(path)
        next_step = "Give an .onnx file." if found != "binary data" else "Download or export the model again."
        why = "cut off or damaged" if found == "binary data" else f"not an ONNX model, it looks like {found}"
        raise BadModel(f"{path}", why, next_step) from error


def _is_text(graph: onnx.GraphProto) -> bool:
    """Return whether all names are strings: protobuf hands over damaged ones as bytes, or raises."""
    try:
        names = [v.name for v in (*graph.input, *graph.output, *graph.initializer)]
        names += [dim.dim_param for v in graph.input for dim in v.type.tensor_type.shape.dim]
        for node in graph.node:
            names += [node.name, node.op_type, node.domain, *node.input, *node.output]
            for attribute in node.attribute:
                names.append(attribute.name)
                if attribute.type == onnx.AttributeProto.GRAPH and not _is_text(attribute.g):
                    return False
        return all(isinstance(name, str) for name in names)
    except UnicodeDecodeError:
        return False


def _load_external_data(model: onnx.ModelProto, path: Path) -> None:
    folder = path.resolve().parent
    total = 0
    for tensor in external_data_helper._get_all_tensors(model):
        if not external_data_helper.uses_external_data(tensor):
            continue
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        file = (folder / location).resolve()
        if not location or not file.is_relative_to(folder):
            why = f"tensor '{tensor.name}' keeps its data in '{location}', outside the model's folder"
            raise BadModel(f"{path}", why, "Put the data file beside the model and export again.")
        if not file.is_file():
            why = f"tensor '{tensor.name}' keeps its data in '{location}', which is missing"
            raise BadModel(f"{path}", why, f"Put '{location}' beside the model.")
        try:
            external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            why = f"the data of tensor '{tensor.name}' in '{location}' cannot be read ({error})"
            raise BadModel(f"{path}", why, "Copy the model together with its data files again.") from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
        total += len(tensor.raw_data)
        if total > MAX_EXTERNAL_BYTES:
            raise BadModel(f"{path}", f"more than {MAX_EXTERNAL_BYTES} bytes of external data", "Use a smaller model.")
