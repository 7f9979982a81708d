"""What of a model can be built, and on which targets: the pre-flight of ``xnncc inspect``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xnncc.frontends.survey import Survey
    from xnncc.target import Target

_NARROW = ("armv7a", "wasm32")  # architectures with addresses of 32 bit
_NARROW_BYTES = 2**31  # of weights that fit there beside everything else
_PROOF = {1: "run by the tests", 2: "built by the tests", 3: "unproven"}


def support_facts(survey: Survey, targets: Sequence[str]) -> dict[str, Any]:
    """Return the operators with their counts, the nodes that cannot be built, and each target's verdict.

    ``targets``: those that are asked for, whose tools are then looked for; none: all, without that.
    """
    from contextlib import suppress

    from xnncc.errors import BadTarget
    from xnncc.target import list_targets, load_target

    weights = sum(node.weight_bytes for node in survey.nodes)
    verdicts = [_target(load_target(name), len(survey.unsupported), weights) | _tools(name) for name in targets]
    for name in list_targets() if not targets else ():
        with suppress(BadTarget):  # "host" on a machine that is none
            verdicts.append(_target(load_target(name), len(survey.unsupported), weights))
    return {
        "operators": _operators(survey),
        "unsupported": [vars(node) for node in survey.unsupported],
        "note": survey.note,
        "targets": verdicts,
    }


def model_facts(file: Path, survey: Survey) -> dict[str, Any]:
    """Return the facts about a model of a format that has no facts of its own."""
    kinds = [row["kind"] for row in _operators(survey)]
    return {
        "file": str(file),
        "format": survey.format,
        "inputs": list(survey.inputs),
        "outputs": list(survey.outputs),
        "nodes": len(survey.nodes),
        "operators": {kind: sum(node.kind == kind for node in survey.nodes) for kind in kinds},
        "weights": {"bytes": sum(node.weight_bytes for node in survey.nodes)},
        "macs": None if survey.macs is None else sum(survey.macs.values()),
    }


def _operators(survey: Survey) -> list[dict[str, Any]]:
    """Return a row for each kind of operator, the most frequent first."""
    from xnncc.frontends.custom_ops import custom_named

    refused = {(node.kind, node.name) for node in survey.unsupported}
    rows: dict[str, dict[str, Any]] = {}
    for node in survey.nodes:
        row = rows.setdefault(
            node.kind, {"kind": node.kind, "nodes": 0, "macs": None, "weight_bytes": 0, "unsupported": 0}
        )
        row["nodes"] += 1
        row["weight_bytes"] += node.weight_bytes
        row["unsupported"] += (node.kind, node.name) in refused
        if survey.macs is not None:
            row["macs"] = (row["macs"] or 0) + survey.macs.get(node.label, 0)
        row["plugin"] = op.source if (op := custom_named(node.kind)) else None
    return sorted(rows.values(), key=lambda row: (-row["nodes"], row["kind"]))


def _target(target: Target, unsupported: int, weight_bytes: int) -> dict[str, Any]:
    """Return what stands between the model and a target: all of them run the same kernels."""
    nodes = "1 node cannot be built" if unsupported == 1 else f"{unsupported} nodes cannot be built"
    problem = nodes if unsupported else _too_large(target, weight_bytes)
    return {"name": target.name, "supported": not problem, "problem": problem, "proof": _PROOF[target.tier]}


def _tools(name: str) -> dict[str, str]:
    """Return what builds for the target on this machine, or what is missing and the command that installs it."""
    from xnncc.codegen.doctor import describe_target

    build = describe_target(name)[0]
    return {"tools": build.found, "missing": "" if build.found else build.purpose, "install": build.install}


def _too_large(target: Target, weight_bytes: int) -> str:
    narrow = target.arch in _NARROW and weight_bytes > _NARROW_BYTES
    return f"{weight_bytes / 2**30:.1f} GiB of weights do not fit 32-bit addresses" if narrow else ""
