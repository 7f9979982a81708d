"""One run of a recipe at a strength: its methods one after another, its file, its loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compress.data import Splits
from ..compress.metrics import Metric, Outputs
from ..compress.recipe import Recipe, Step, method_named
from ..compress.replace_layer import restored
from ..compress.result import Data, MethodReport, Progress, Samples, Squeezed, StepConfig
from ..compress.search import Candidate
from ..frontends.evaluate import evaluate
from .file import to_bytes
from .journal import Journal, key_of

if TYPE_CHECKING:
    import tvm

    from ..ir.plan import TensorInfo


@dataclass
class Trials:
    """Runs a recipe as often as it is asked to.

    ``original``: the network after the exact transform. ``expected``: the source's own outputs on ``splits.select``.
    """

    original: tvm.IRModule
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]
    recipe: Recipe
    splits: Splits
    metric: Metric | None
    expected: Outputs | None
    seed: int
    journal: Journal
    progress: Progress
    is_searched: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def attempt(self, strength: float | None, gentler: Mapping[str, float]) -> Candidate:
        """Return what the recipe gives at ``strength``; None: at its own strengths."""
        states = self.states(strength, gentler)
        state = states[-1]
        reports = [one.report for one in states[1:]]
        loss = self.loss(state.mod, "loss", strength, gentler)
        size = len(
            to_bytes(state, [info.name for info in self.outputs], {**self.facts, "loss": float(np.float32(loss or 0))})
        )
        errors = {line.name: max(line.error, 0.0) for report in reports for line in report.layers}
        return Candidate(-1.0 if strength is None else strength, dict(gentler), size, loss, errors)

    def without(self, candidate: Candidate, name: str) -> float:
        """Return the loss of ``candidate`` with the weight of layer ``name`` as it was."""
        state = self.states(_strength(candidate), candidate.gentler)[-1]
        mod = restored(state.mod, self.original, name)
        return self.loss(mod, f"without {name}", _strength(candidate), candidate.gentler) or 0.0

    def states(self, strength: float | None, gentler: Mapping[str, float]) -> list[Squeezed]:
        """Return the network before the first step and after each, from the journal where it was there before."""
        states = [Squeezed(self.original)]
        done: list[Any] = []
        for number, step in enumerate(self.recipe.steps):
            config = self._config(step, strength, gentler)
            done.append([step.method, config])
            key = key_of("state", done)
            state = self.journal.state(key)
            if state is None:
                work = StepConfig(**{**config.__dict__, "journal": str(self.journal.scratch(key))})
                state = self._run(
                    step, states[-1], work, f"step {number + 1} of {len(self.recipe.steps)}, {step.method}"
                )
                state = self.journal.keep(key, state)
            states.append(state)
        return states

    def _config(self, step: Step, strength: float | None, gentler: Mapping[str, float]) -> StepConfig:
        own = step.strength if strength is None or not step.is_searched else strength
        return StepConfig(
            step.params, own, step.layers, step.skip, dict(sorted(gentler.items())) if step.is_searched else {}
        )

    def _run(self, step: Step, state: Squeezed, config: StepConfig, title: str) -> Squeezed:
        data = Data(
            calib=self.splits.calib,
            train=self.splits.train,
            select=self.splits.select,
            original=self.original,
            measure=self.measure if self.splits.select is not None else None,
        )

        def talk(text: str, done: int = 0, total: int = 0) -> None:
            self.progress(f"{title}: {text}", done, total)

        return method_named(step.method)(state, config, data, self.seed, talk)

    def loss(self, mod: tvm.IRModule, what: str, strength: float | None, gentler: Mapping[str, float]) -> float | None:
        """Return the loss of ``mod`` on the selection samples, from the journal where it was measured before."""
        if self.splits.select is None:
            return None
        steps = [[step.method, self._config(step, strength, gentler)] for step in self.recipe.steps]
        key = key_of(what, steps, self.metric.name if self.metric else "")
        known = self.journal.number(key)
        return known if known is not None else self.journal.keep_number(key, self.measure(mod))

    def measure(self, mod: tvm.IRModule) -> float:
        """Return the loss of ``mod`` on the selection samples."""
        assert self.splits.select is not None and self.expected is not None and self.metric is not None
        found = run_samples(evaluator(mod, self.inputs, self.outputs), self.splits.select, self.inputs, self.progress)
        return self.metric.loss(self.expected, found, self.splits.select.labels)


def report_of(states: Sequence[Squeezed]) -> list[MethodReport]:
    """Return the report of each step."""
    return [state.report for state in states[1:]]


Run = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]  # one sample's inputs -> outputs, by name


def evaluator(mod: tvm.IRModule, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> Run:
    """Return a function that runs ``mod`` with numpy."""

    def run(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        results, _ = evaluate(mod, [feeds[info.name] for info in inputs])
        return {info.name: array for info, array in zip(outputs, results, strict=True)}

    return run


def run_samples(run: Run, samples: Samples, inputs: Sequence[TensorInfo], progress: Progress) -> Outputs:
    """Return the outputs of all samples, [M, ...] each; a first dimension of 1 is left out."""
    rows: dict[str, list[np.ndarray]] = {}
    for row in range(len(samples)):
        progress("measuring the loss", row, len(samples))
        feeds = {info.name: samples.inputs[info.name][row].reshape(info.shape) for info in inputs}
        for name, array in run(feeds).items():
            rows.setdefault(name, []).append(array[0] if array.shape[:1] == (1,) else array)
    return {name: np.stack(parts) for name, parts in rows.items()}


def _strength(candidate: Candidate) -> float | None:
    return None if candidate.strength < 0 else candidate.strength
