"""``xnncc.compress``: a model file in, a much smaller model file out, with what it cost measured.

load -> exact transform -> recipe (searched, when there is a contract) -> file -> judged once on the test samples
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compress.data import Splits, split
from ..compress.metrics import Metric, Outputs, load_metric
from ..compress.recipe import Recipe, load_recipe
from ..compress.report import network_facts, squeeze_document
from ..compress.result import Progress, Squeezed
from ..compress.search import Contract, Outcome, search
from ..errors import CompressError
from ..inputs import read_npz
from ..pack.xq_file import decode_xq
from ..report.squeeze_page import write_squeeze_report
from .file import recorded, to_bytes
from .journal import Journal
from .trials import Trials, evaluator, report_of, run_samples

if TYPE_CHECKING:
    from ..frontends.imported import Imported

DEFAULT_RECIPES = {"nothing": "safe", "calib": "balanced", "train": "max"}
Npz = str | Path | Mapping[str, np.ndarray]


@dataclass(frozen=True)
class CompressResult:
    """What was made. ``holds``: the contract does (true without one); if not, ``path`` is the best that was reached."""

    path: Path
    report: dict[str, Any]
    holds: bool
    warnings: tuple[str, ...]


def compress(
    model: str | Path,
    output: str | Path,
    *,
    recipe: str | Recipe | None = None,
    calib: Npz | None = None,
    train: Npz | None = None,
    eval: Npz | None = None,
    metric: str | None = None,
    max_loss: float | None = None,
    target_kib: float | None = None,
    seed: int = 0,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    weights: str | Path | None = None,
    fixed: Mapping[str, np.ndarray] | None = None,
    progress: Progress | None = None,
) -> CompressResult:
    """Compress ``model`` into ``output``, with ``<output>.report.json`` and ``.report.html`` beside it.

    ``recipe``: a shipped name, a ``.toml`` file or a ``Recipe``; by default what the data allows: safe, balanced (with
    ``calib``), max (with ``train``). Data are arrays [samples, ...] by input name, or ``.npz`` files of them, and
    ``labels`` where there are some. ``metric`` as in ``compress/metrics.py``. ``max_loss``: in the metric's unit, 0.005
    for half a point. A contract that cannot be met leaves the nearest at ``<stem>.best.xq`` and ``holds`` is false.

    Raises: any class of ``errors.py``.
    """
    from ..frontends import load_model
    from ..transform.simplify import simplify

    output, talk = Path(output), progress or _silent
    contract = _contract(max_loss, target_kib, output)
    given = {
        flag: _arrays(npz) for flag, npz in (("calib", calib), ("train", train), ("judge", eval)) if npz is not None
    }
    chosen = recipe if isinstance(recipe, Recipe) else load_recipe(recipe or _default_recipe(given))
    _check_needs(chosen, given, contract)
    talk("importing and checking the model", 0, 0)
    imported = load_model(Path(model), shapes, weights=weights, fixed=fixed)
    splits = split(
        imported.inputs, given.get("calib"), given.get("train"), given.get("judge"),
        is_searched=contract is not None or chosen.needs == "train", seed=seed,
    )  # fmt: skip
    original = recorded(simplify(imported.mod))
    trials = _trials(imported, original, chosen, splits, metric, seed, contract is not None, output, talk)
    outcome = _outcome(trials, contract)
    return _deliver(imported, trials, outcome, contract, Path(model), output)


def _silent(text: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def _arrays(npz: Npz) -> Mapping[str, np.ndarray]:
    return read_npz(Path(npz)) if isinstance(npz, (str, Path)) else npz


def _contract(max_loss: float | None, target_kib: float | None, output: Path) -> Contract | None:
    if output.suffix != ".xq":
        raise CompressError(f"--output {output}", "the name of a compressed model ends in .xq", "Write -o NAME.xq.")
    if max_loss is not None and target_kib is not None:
        raise CompressError("--max-loss and --target-kib", "both are contracts", "Give one of them.")
    if max_loss is not None:
        return Contract(max_loss=max_loss)
    return Contract(target_bytes=int(target_kib * 1024)) if target_kib is not None else None


def _default_recipe(given: Mapping[str, Any]) -> str:
    return DEFAULT_RECIPES["train" if "train" in given else "calib" if "calib" in given else "nothing"]


def _check_needs(recipe: Recipe, given: Mapping[str, Any], contract: Contract | None) -> None:
    """Say now what would be missing after an hour."""
    if recipe.needs == "train" and "train" not in given:
        raise CompressError(f"--recipe {recipe.name}", "it trains and there are no samples", "Give some with --train.")
    if recipe.needs == "calib" and not {"train", "calib"} & set(given):
        raise CompressError(f"--recipe {recipe.name}", "it needs samples and there are none", "Give some with --calib.")
    if recipe.needs == "train":
        from importlib.util import find_spec

        if find_spec("torch") is None:
            raise CompressError(
                f"--recipe {recipe.name}", "it trains, and PyTorch is not installed", "Run: pip install 'xnncc[train]'"
            )
    if contract is not None and contract.max_loss is not None and not given:
        raise CompressError("--max-loss", "a loss is measured on samples and there are none", "Give some with --eval.")
    if contract is not None and not any(step.is_searched for step in recipe.steps):
        raise CompressError(
            f"--recipe {recipe.name}", "no step of it may be searched", "Leave --max-loss and --target-kib out."
        )


def _trials(
    imported: Imported,
    original: Any,
    recipe: Recipe,
    splits: Splits,
    metric: str | None,
    seed: int,
    is_searched: bool,
    output: Path,
    talk: Progress,
) -> Trials:
    expected, chosen = None, None
    judge = splits.select or (splits.test[:1] if splits.test else None)  # one sample shows which metric fits
    if judge is not None:
        talk("running the original", 0, 0)
        expected = run_samples(imported.reference, judge, imported.inputs, talk)
        chosen = load_metric(metric, expected, judge.labels)
    facts = {"source": imported.source.name, "recipe": recipe.name, "metric": chosen.name if chosen else ""}
    about = {
        "network": sha256(to_bytes(Squeezed(original), [info.name for info in imported.outputs])).hexdigest(),
        "recipe": repr(recipe),
        "samples": {name: _hash(part) for name, part in splits.__dict__.items()},
        "seed": seed,
        "metric": metric or "",
    }
    journal = Journal(output.with_name(output.name + ".journal"), about)
    return Trials(
        original, imported.inputs, imported.outputs, recipe, splits, chosen,
        expected if splits.select is not None else None, seed, journal, talk, is_searched, facts,
    )  # fmt: skip


def _hash(part: Any) -> str:
    if part is None:
        return ""
    digest = sha256()
    for name, array in sorted(part.inputs.items()):
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    if part.labels is not None:
        digest.update(np.ascontiguousarray(part.labels).tobytes())
    return digest.hexdigest()


def _outcome(trials: Trials, contract: Contract | None) -> Outcome:
    if contract is None:
        only = trials.attempt(None, {})
        return Outcome(only, True, (only,))
    return search(trials.attempt, trials.without, contract)


def _deliver(
    imported: Imported, trials: Trials, outcome: Outcome, contract: Contract | None, model: Path, output: Path
) -> CompressResult:
    """Write the file and its report, judged on samples that nothing has seen; keep the journal until then."""
    states = trials.states(None if outcome.best.strength < 0 else outcome.best.strength, outcome.best.gentler)
    test = _judge(imported, trials, states[-1])
    loss = test if test is not None else outcome.best.loss
    facts = {**trials.facts, **({} if loss is None else {"loss": float(np.float32(loss))})}
    data = to_bytes(states[-1], [info.name for info in imported.outputs], facts, is_final=True)
    path = output if outcome.holds else output.with_name(f"{output.stem}.best.xq")
    losses = _losses(trials, states)
    document = squeeze_document(
        source=network_facts(imported.mod, model.name),
        prepared=network_facts(trials.original, ""),
        result=network_facts(states[-1].mod, path.name),
        file_bytes=len(data),
        recipe=trials.recipe,
        seed=trials.seed,
        samples=trials.splits.sizes,
        metric=trials.metric,
        contract=contract,
        outcome=outcome,
        test_loss=test,
        steps=list(zip(report_of(states), losses, strict=True)),
    )
    decode_xq(data, str(path))  # what is written can be read
    path.write_bytes(data)
    write_squeeze_report(path, document)
    if outcome.holds:
        trials.journal.close()
    return CompressResult(path, document, outcome.holds, tuple(_warnings(contract, test, trials.metric)))


def _judge(imported: Imported, trials: Trials, state: Squeezed) -> float | None:
    """Return the loss on the test samples, which are looked at here and nowhere else."""
    test = trials.splits.test
    if test is None or trials.metric is None:
        return None
    expected = run_samples(imported.reference, test, imported.inputs, trials.progress)
    found: Outputs = run_samples(
        evaluator(state.mod, imported.inputs, imported.outputs), test, imported.inputs, trials.progress
    )
    return trials.metric.loss(expected, found, test.labels)


def _losses(trials: Trials, states: list[Squeezed]) -> list[float | None]:
    """Return the loss after each step, on the selection samples."""
    if trials.splits.select is None:
        return [None] * (len(states) - 1)
    return [trials.measure(state.mod) for state in states[1:]]


def _warnings(contract: Contract | None, test: float | None, metric: Metric | None) -> list[str]:
    if contract is None or contract.max_loss is None or test is None or metric is None or test <= contract.max_loss:
        return []
    found = f"on the test samples the loss is {metric.words(test)}, over {metric.words(contract.max_loss)}"
    return [f"the contract holds on the selection samples, but {found}: give more samples with --eval"]
