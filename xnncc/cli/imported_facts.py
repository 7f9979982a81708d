"""Facts about a model of any format that xnncc reads, taken from its imported graph."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any


def imported_facts(file: Path) -> dict[str, Any]:
    """Return what is in the model after import: inputs, outputs, operators, bytes of constants, multiply-adds.

    Raises: what ``frontends.load_model`` raises; a free dimension is one of these.
    """
    import tvm

    from xnncc.frontends import load_model
    from xnncc.ir.cost import macs_by_tensor

    imported = load_model(file, check=False)
    operators: Counter[str] = Counter()
    constants: dict[int, int] = {}
    for block in imported.mod["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, tvm.ir.Call):
                operators[getattr(call.op, "name", str(call.op)).removeprefix("relax.")] += 1
                for argument in call.args:
                    if isinstance(argument, tvm.ir.GenericConst):
                        array = argument.value.numpy()
                        constants[hash(array.tobytes())] = array.nbytes
    return {
        "file": str(file),
        "runtime": imported.runtime.name,
        "inputs": [_tensor(info) for info in imported.inputs],
        "outputs": [_tensor(info) for info in imported.outputs],
        "operators": dict(operators.most_common()),
        "constant_bytes": sum(constants.values()),
        "macs": sum(macs_by_tensor(imported.mod).values()),
        "warnings": list(imported.warnings),
        **({"compressed": _compressed(file, len(imported.coded))} if file.suffix.lower() == ".xq" else {}),
    }


def _compressed(file: Path, coded: int) -> dict[str, Any]:
    """Return what stands in an ``.xq`` file about how it was made, and its sizes."""
    from xnncc.pack.xq_file import read_xq

    found = read_xq(file)
    facts = {name: found.facts.get(name) for name in ("source", "recipe", "metric", "loss")}
    return {**facts, "bytes": file.stat().st_size, "coded_constants": coded, "constants": len(found.constants)}


def _tensor(info: Any) -> dict[str, Any]:
    return {"name": info.name, "shape": list(info.shape), "dtype": info.dtype}
