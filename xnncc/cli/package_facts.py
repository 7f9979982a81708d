"""What is inside a .xnn package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def package_facts(path: Path) -> dict[str, Any]:
    """Return what the package at ``path`` says, every checksum checked, as plain data.

    Raises: BadPackage.
    """
    from xnncc import pack

    package = pack.read(path)
    return {
        "file": str(path),
        "format": "xnn",
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "name": package.name,
        "target": package.target,
        "build_id": package.build_id,
        "inputs": _tensors(package.inputs),
        "outputs": _tensors(package.outputs),
        "variants": [
            {
                "inputs": _tensors(v.inputs),
                "outputs": _tensors(v.outputs),
                "op_count": v.op_count,
                "arena_bytes": v.arena_bytes,
            }
            for v in package.variants
        ],
        "op_count": package.op_count,
        "arena_bytes": package.arena_bytes,
        "thread_scratch_bytes": package.thread_scratch_bytes,
        "weights_bytes": package.weights_bytes,
        **({} if package.blob_bytes is None else {"coded_bytes": len(package.weights)}),
        "sections": [
            {
                "kind": section.kind,
                "encoding": section.encoding,
                "required": section.required,
                "bytes": len(section.data),
            }
            for section in package.extra
        ],
    }


def _tensors(tensors: Iterable[Any]) -> list[dict[str, Any]]:
    return [{"name": t.name, "shape": list(t.shape), "dtype": t.dtype} for t in tensors]
