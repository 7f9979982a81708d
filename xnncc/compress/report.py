"""The report of a squeeze as one JSON document: what was there, what each step did to each layer, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .recipe import Recipe
from .result import LayerReport, MethodReport
from .search import Candidate, Contract, Outcome

if TYPE_CHECKING:
    import tvm

    from .metrics import Metric

FORMAT = 1


def network_facts(mod: tvm.IRModule, name: str) -> dict[str, Any]:
    """Return the number of float parameters of ``mod``, their bytes as float32, and its multiply-adds."""
    from tvm import relax
    from tvm.ir import Call, GenericConst

    from ..ir.coded import digest
    from ..ir.cost import macs_by_tensor

    sizes: dict[str, int] = {}

    def visit(part: Any) -> None:
        if isinstance(part, GenericConst) and str(part.ty.dtype).startswith("float"):
            array = part.value.numpy()
            sizes[digest(array)] = array.size
        elif isinstance(part, Call):
            for operand in part.args:
                visit(operand)
        elif isinstance(part, relax.Tuple):
            for operand in part.fields:
                visit(operand)

    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            visit(binding.value)
    parameters = sum(sizes.values())
    macs = sum(macs_by_tensor(mod).values())
    return {"file": name, "parameters": parameters, "float32_bytes": 4 * parameters, "macs": macs}


def squeeze_document(
    *,
    source: Mapping[str, Any],
    prepared: Mapping[str, Any],
    result: Mapping[str, Any],
    file_bytes: int,
    recipe: Recipe,
    seed: int,
    samples: Mapping[str, int],
    metric: Metric | None,
    contract: Contract | None,
    outcome: Outcome,
    test_loss: float | None,
    steps: Sequence[tuple[MethodReport, float | None]],
) -> dict[str, Any]:
    """Return the document. ``ratio``: bytes of all float parameters of the source by bytes of the whole file."""
    return {
        "format": FORMAT,
        "source": dict(source),
        "prepared": {key: prepared[key] for key in ("parameters", "macs")},
        "result": {**result, "bytes": file_bytes},
        "ratio": round(source["float32_bytes"] / file_bytes, 3),
        "bits_per_weight": round(8 * file_bytes / max(source["parameters"], 1), 4),
        "recipe": {"name": recipe.name, "summary": recipe.summary, "seed": seed},
        "samples": dict(samples),
        "metric": None if metric is None else metric.name,
        "is_share": metric is not None and metric.unit == "%",
        "contract": _contract(contract, outcome),
        "loss": {"select": outcome.best.loss, "test": test_loss},
        "steps": [_step(report, loss) for report, loss in steps],
        "trials": [_trial(trial, outcome.best, contract) for trial in outcome.trials],
        "costly": [{"layer": name, "loss": loss} for name, loss in outcome.costly.items()],
    }


def _contract(contract: Contract | None, outcome: Outcome) -> dict[str, Any] | None:
    if contract is None:
        return None
    return {"max_loss": contract.max_loss, "target_bytes": contract.target_bytes, "holds": outcome.holds}


def _step(report: MethodReport, loss: float | None) -> dict[str, Any]:
    return {
        "method": report.method,
        "loss": loss,
        "bytes_before": round(sum(line.bytes_before for line in report.layers)),
        "bytes_after": round(sum(line.bytes_after for line in report.layers)),
        "layers": [_layer(line) for line in report.layers],
        "left_alone": [{"layer": name, "why": why} for name, why in report.left_alone.items()],
        "facts": dict(report.facts),
    }


def _layer(line: LayerReport) -> dict[str, Any]:
    rounded = {key: round(value, 6) if isinstance(value, float) else value for key, value in asdict(line).items()}
    return {**rounded, "bits_per_weight": round(line.bits_per_weight, 4)}


def _trial(trial: Candidate, best: Candidate, contract: Contract | None) -> dict[str, Any]:
    return {
        "strength": None if trial.strength < 0 else trial.strength,
        "gentler": dict(trial.gentler),
        "bytes": trial.file_bytes,
        "loss": trial.loss,
        "holds": contract is None or contract.holds(trial),
        "is_chosen": trial is best,
    }
