"""Which untried candidates are promising, in spaces too large to try: boosted trees over what was measured so far.

Features: the numbers of the kernel and the fields of the configuration, logarithms, by name. One model a rule, for what
is fast in one layer is so in the next of its kind. The target is log2(time / best time of that kernel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any

from ..schedule.records import config_fields
from .knowledge import Knowledge
from .tasks import Task

LARGE_SPACE = 64  # up to so many points the rule's own order is followed
FEWEST_RESULTS = 48  # of one rule, before a model is worth anything
EXPLORE = 4  # of every so many picks one is the rule's next guess, whatever the model says of it
TREES = 60
PARAMETERS = {"max_depth": 5, "eta": 0.2, "nthread": 1, "seed": 1, "verbosity": 0}


def missing_model() -> str:
    """Return why there is no cost model, or an empty string."""
    try:
        import xgboost  # noqa: F401
    except ImportError:
        return "large spaces are tried in the rules' own order: no xgboost (pip install 'xnncc[tune]')"
    return ""


@dataclass
class CostModel:
    """Ranks candidates by what is ``known``; trained again for a rule when that has grown by a fifth."""

    known: Knowledge
    trained: dict[str, tuple[int, Any]] = field(default_factory=dict)  # rule -> results it was trained on, booster

    def order(self, task: Task, untried: Sequence[int]) -> list[int]:
        """Return ``untried`` with the most promising first."""
        if len(task.space) <= LARGE_SPACE or missing_model():
            return list(untried)
        booster = self._booster(task)
        if booster is None:
            return list(untried)
        import xgboost

        predicted = booster.predict(xgboost.DMatrix([_features(task, i) for i in untried]))
        ranked = sorted(untried, key=dict(zip(untried, predicted, strict=True)).__getitem__)
        guesses, mixed = iter(untried), []
        for place, index in enumerate(ranked):
            if place % EXPLORE == EXPLORE - 1:
                mixed.append(next(g for g in guesses))
            mixed.append(index)
        return list(dict.fromkeys(mixed))

    def _booster(self, task: Task) -> Any:
        """Return the model of the task's rule, or None while too little is known."""
        import xgboost

        rows, targets = self._examples(task)
        count, booster = self.trained.get(task.rule.NAME, (0, None))
        if len(rows) < FEWEST_RESULTS:
            return None
        if len(rows) > 1.2 * count:
            booster = xgboost.train(PARAMETERS, xgboost.DMatrix(rows, label=targets), num_boost_round=TREES)
            self.trained[task.rule.NAME] = len(rows), booster
        return booster

    def _examples(self, task: Task) -> tuple[list[list[float]], list[float]]:
        rows, targets = [], []
        for other in self.known.tasks.tasks.values():
            measured = self.known.measured(other)
            if other.rule is task.rule and measured:
                best = min(measured.values())
                rows += [_features(other, index) for index in measured]
                targets += [log2(us / best) for us in measured.values()]
        return rows, targets


def _features(task: Task, index: int) -> list[float]:
    fields = config_fields(task.space[index])
    return [log2(1 + task.numbers[k]) for k in sorted(task.numbers)] + [log2(1 + fields[k]) for k in sorted(fields)]
