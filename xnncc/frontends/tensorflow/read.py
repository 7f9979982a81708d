"""Read a frozen graph as something hostile: size and form are checked before anything is believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from ...errors import BadModel
from ..sniff import looks_like
from .graph import BrokenGraph, Graph, graph_of
from .inline import without_calls
from .schema import message

MAX_FILE_BYTES = 2**31 - 1  # a protobuf message cannot be longer


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a GraphDef file.

    Raises:
        BadModel: empty, too large, or not readable.
    """
    size = path.stat().st_size
    if size == 0:
        raise BadModel(f"{path}", "the file is empty", "Download or freeze the model again.")
    if size > MAX_FILE_BYTES:
        raise BadModel(f"{path}", f"{size} bytes, a GraphDef has at most {MAX_FILE_BYTES}", "Use a smaller model.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadModel(f"{path}", f"cannot be read ({error.strerror})", "Check the file and its rights.") from error


def parse_graph_def(data: bytes, path: Path) -> Graph:
    """Return the graph in the bytes of a GraphDef that came from ``path``, functions in place of their calls.

    Raises:
        BadModel: cut off, no GraphDef, or no graph.
    """
    proto: Any = message("GraphDef")()
    try:
        proto.ParseFromString(data)
    except (DecodeError, ValueError) as error:
        found = _kind(path)
        why = "cut off or damaged" if found == "binary data" else f"not a GraphDef, it looks like {found}"
        raise BadModel(f"{path}", why, "Give a frozen graph (.pb); download or freeze the model again.") from error
    if not proto.node:
        raise BadModel(f"{path}", f"not a GraphDef, it looks like {_kind(path)}", "Give a frozen graph (.pb).")
    try:
        graph = without_calls(graph_of(proto))
    except UnicodeDecodeError:
        raise BadModel(f"{path}", "a name in it is not text (UTF-8)", _AGAIN) from None
    except BrokenGraph as broken:
        raise BadModel(f"{path}", f"{broken}", _AGAIN) from None
    if not graph.outputs:
        raise BadModel(f"{path}", "the graph has no output", _AGAIN)
    return graph


def _kind(path: Path) -> str:
    return looks_like(path) if path.is_file() else "something else"


_AGAIN = "The file is damaged; download or freeze the model again."
