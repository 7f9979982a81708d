"""Batches and results as JSON: what a rack's broker and its clients say to each other.

result_document(Measurement(3, (100, 101), 0.0)) -> {"type": "measurement", "candidate": 3, "ns": [100, 101], ...}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from xnncc.device.bench import Fault, Group, Measurement
from xnncc.errors import DeviceError

_LONGEST_WORDS = 2000


def batch_document(
    kind: str,
    target: str,
    files: Mapping[str, str],
    groups: Sequence[Group] = (),
    rounds: int = 0,
    threads: int = 1,
    core_mask: int = 0,
    arguments: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return a batch as the broker takes it; the fields are those of rack/phone.py's Batch."""
    return {
        "kind": kind, "target": target, "files": dict(files), "rounds": rounds, "threads": threads,
        "core_mask": core_mask, "arguments": dict(arguments or {}),
        "groups": [
            {"candidates": list(g.candidates), "floats": g.floats, "out_offset": g.out_offset, "out_bytes": g.out_bytes}
            for g in groups
        ],
    }  # fmt: skip


def result_document(result: Measurement | Fault) -> dict[str, Any]:
    """Return a result as JSON; an error that is no number (the output was NaN) is null."""
    if isinstance(result, Fault):
        words = result.words[:_LONGEST_WORDS]
        return {"type": "fault", "candidate": result.candidate, "kind": result.kind, "words": words}
    error = result.error if math.isfinite(result.error) else None
    return {"type": "measurement", "candidate": result.candidate, "ns": list(result.ns), "error": error}


def read_result(document: Mapping[str, Any]) -> Measurement | Fault:
    """Return the result of a document. Raises: DeviceError when it is none."""
    try:
        candidate = _whole(document["candidate"])
        if document["type"] == "fault":
            return Fault(candidate, str(document["kind"]), str(document["words"]))
        if document["type"] == "measurement":
            error = document["error"]
            return Measurement(
                candidate, tuple(_whole(one) for one in document["ns"]), math.inf if error is None else float(error)
            )
    except (KeyError, TypeError, ValueError) as error:
        raise DeviceError(
            "rack", f"it sent a result that cannot be read ({error!r})", "Is it of this version?"
        ) from None
    raise DeviceError("rack", f"it sent a result of type '{document['type']}'", "Is it of this version?")


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no whole number")
    return value
