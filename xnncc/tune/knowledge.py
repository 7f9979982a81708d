"""What a tuning run knows so far: a result for each measured candidate, and what follows for the whole network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..schedule.records import config_fields
from .journal import Entry
from .tasks import Choice, Task, Tasks


@dataclass
class Knowledge:
    """Results by kernel and index in its space: estimated microseconds, or None for a fault."""

    tasks: Tasks
    results: dict[str, dict[int, float | None]] = field(default_factory=dict)
    pending: set[tuple[str, int]] = field(default_factory=set)  # candidates that are being measured

    def learn(self, entry: Entry) -> bool:
        """Take over an entry of the journal; return whether it is of a kernel and a configuration that are known."""
        task = self.tasks.tasks.get(entry.kernel)
        if task is None:
            return False
        index = index_of(task, entry.config)
        if index is None:
            return False
        of_task = self.results.setdefault(task.key, {})
        base = of_task.get(0)
        # Times of different runs differ by what else the machine did; the ratio within a run does not.
        of_task[index] = None if entry.fault else entry.us if index == 0 or base is None else base * entry.ratio
        return True

    def learn_all(self, entries: Iterable[Entry]) -> int:
        """Take over entries, the analytic choices first; return how many were of use."""
        ordered = sorted(entries, key=lambda e: e.config != config_fields(self._first(e.kernel)))
        return sum(self.learn(entry) for entry in ordered)

    def _first(self, kernel: str) -> object:
        task = self.tasks.tasks.get(kernel)
        return task.space[0] if task is not None else None

    def measured(self, task: Task) -> dict[int, float]:
        """Return the microseconds of every candidate of ``task`` that worked."""
        return {i: us for i, us in self.results.get(task.key, {}).items() if us is not None}

    def is_tried(self, task: Task, index: int) -> bool:
        """Return whether a candidate was measured or failed, or is about to."""
        return index in self.results.get(task.key, {}) or (task.key, index) in self.pending

    def is_broken(self, task: Task) -> bool:
        """Return whether the analytic choice itself failed: then there is nothing to compare with."""
        return self.results.get(task.key, {}).get(0, 0.0) is None

    def analytic_us(self, task: Task) -> float:
        """Return the analytic choice's time, 0 while it is unknown."""
        return self.results.get(task.key, {}).get(0) or 0.0

    def best(self, task: Task) -> tuple[int, float]:
        """Return the fastest candidate's index and microseconds; (0, 0.0) while nothing is known."""
        return min(self.measured(task).items(), key=lambda item: item[1], default=(0, 0.0))

    def algorithm_us(self, choice: Choice, algorithm: str) -> float | None:
        """Return the microseconds of all calls of a convolution by ``algorithm`` with the best candidates, or None."""
        total = 0.0
        for key, calls in choice.kernels.get(algorithm, {}).items():
            us = self.best(self.tasks.tasks[key])[1]
            if not us:
                return None
            total += calls * us
        return total or None

    def best_algorithm(self, choice: Choice) -> str:
        """Return the fastest algorithm of a convolution as far as is known."""
        known = {a: us for a in choice.kernels if (us := self.algorithm_us(choice, a)) is not None}
        return min(known, key=lambda a: known[a]) if known else choice.algorithms[0]

    def weight(self, task: Task) -> int:
        """Return how often an inference would call ``task`` if its convolution ran by its algorithm."""
        others = [names[task.key] for choice in self.tasks.choices.values() for names in choice.kernels.values()]
        return max(task.calls, *others, 0)

    def network_us(self) -> tuple[float, float]:
        """Return the microseconds of all tunable kernels of an inference: by the analytic choices, and by the best."""
        before = after = 0.0
        in_choice = set()
        for choice in self.tasks.choices.values():
            first, best = choice.algorithms[0], self.best_algorithm(choice)
            in_choice |= set(choice.kernels.get(first, {}))
            before += sum(n * self.analytic_us(self.tasks.tasks[k]) for k, n in choice.kernels.get(first, {}).items())
            after += self.algorithm_us(choice, best) or 0.0
        for task in self.tasks.tasks.values():
            if task.key not in in_choice and task.calls:
                before += task.calls * self.analytic_us(task)
                after += task.calls * self.best(task)[1]
        return before, after


def index_of(task: Task, config: dict) -> int | None:
    """Return the place of a configuration, given as plain data, in the task's space."""
    return next((i for i, c in enumerate(task.space) if config_fields(c) == config), None)
