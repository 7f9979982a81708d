"""Who really won: winners once more against the analytic choice, head to head, and their numbers against the reference.

The best of many noisy times is too good to be true, so a winner has to win again, by ``MARGIN`` in the fastest run and
in the median of most visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from ..device.bench import Measurement
from ..schedule.records import Record, config_fields
from .check_winner import reference_output, relative_error, tolerance
from .knowledge import Knowledge
from .measure import Measurer
from .tasks import Choice, Task
from .write_records import today

MARGIN = 0.98  # a winner's share of the analytic time, at most: less is noise
Side = tuple[Task, int, int]  # kernel, index of its candidate, calls

ATTEMPTS = 3  # at a kernel whose winner does not win again


@dataclass
class Confirmer:
    """Keeps the records that stood the test, by kernel or convolution."""

    known: Knowledge
    measurer: Measurer
    records: dict[str, Record] = field(default_factory=dict)
    checked: set[tuple[str, int]] = field(default_factory=set)  # candidates that equal the reference
    raced: set[tuple] = field(default_factory=set)  # algorithms with their kernels that need no other race
    wrong: list[str] = field(default_factory=list)

    def confirm(self) -> list[Record]:
        """Return the records that are new: kernels first, then algorithms with those kernels."""
        new: list[Record] = []
        for _ in range(ATTEMPTS):
            waiting = [(task, index) for task in self._relevant() if (index := self._unconfirmed(task))]
            if not waiting:
                break
            new += self._race_kernels(waiting)
        return new + self._race_algorithms()

    def _relevant(self) -> list[Task]:
        """Return the kernels that the network calls if each convolution runs by its best algorithm."""
        wanted: dict[str, None] = {}
        in_choice: set[str] = set()
        for choice in self.known.tasks.choices.values():
            in_choice |= {key for names in choice.kernels.values() for key in names}
            wanted |= dict.fromkeys(choice.kernels.get(self.known.best_algorithm(choice), ()))
        tasks = self.known.tasks.tasks
        return [t for t in tasks.values() if t.key in wanted or (t.calls and t.key not in in_choice)]

    def _unconfirmed(self, task: Task) -> int:
        """Return the index of the winner if it is no record yet, or 0."""
        index, us = self.known.best(task)
        record = self.records.get(task.key)
        if not index or us > MARGIN * self.known.analytic_us(task):
            return 0
        return 0 if record is not None and record.choice == config_fields(task.space[index]) else index

    def _race_kernels(self, waiting: Sequence[tuple[Task, int]]) -> list[Record]:
        visits = self.measurer.race([(task, [0, index]) for task, index in waiting])
        right = self._equal_reference([(task, 0) for task, _ in waiting])
        new = []
        for task, index in waiting:
            ratio = _ratio(visits.get((task.key, index), []), visits.get((task.key, 0), []))
            if ratio is None or (task.key, 0) not in right:
                self.known.results[task.key][index] = None
                continue
            self.known.results[task.key][index] = ratio * self.known.analytic_us(task)
            if ratio <= MARGIN:
                new.append(self._record(task, index, visits[task.key, index], visits[task.key, 0]))
        self.records |= {record.kernel: record for record in new}
        return new

    def _record(self, task: Task, index: int, runs: list[Measurement], analytic: list[Measurement]) -> Record:
        fastest = min(runs, key=lambda m: m.us)
        extra = {
            "mad_us": round(fastest.mad_us, 2), "threads": self.measurer.threads, "layers": task.layers[:3],
            "tried": len(self.known.results[task.key]), "of": len(task.space),
        }  # fmt: skip
        config = config_fields(task.space[index])
        return self._new(task.key, config, fastest.us, min(m.us for m in analytic), extra)

    def _new(self, key: str, choice: dict | str, us: float, analytic_us: float, extra: dict) -> Record:
        bench, target = self.measurer.benches[0], self.measurer.workshop.target
        times = round(us, 2), round(analytic_us, 2)
        return Record(key, choice, *times, today(), bench.description, target.fingerprint, extra)

    def _race_algorithms(self) -> list[Record]:
        """Race the convolutions whose best algorithm is not the analytic one, each by its best kernels."""
        waiting = [c for c in self.known.tasks.choices.values() if self._is_waiting(c)]
        sides = [
            (c, self._best_of(c, c.algorithms[0]), self._best_of(c, self.known.best_algorithm(c))) for c in waiting
        ]
        pairs = {(t.key, i): (t, i) for _, first, best in sides for t, i, _ in (*first, *best)}
        if not pairs:
            return []
        visits = self.measurer.race([(task, [index]) for task, index in pairs.values()])
        right = self._equal_reference(list(pairs.values()))
        new = []
        for choice, first, best in sides:
            self.raced.add(_side_key(choice, best))
            if any(not visits.get((t.key, i)) or (t.key, i) not in right for t, i, _ in (*first, *best)):
                continue
            before, us = (
                sum(calls * min(m.us for m in visits[task.key, index]) for task, index, calls in side)
                for side in (first, best)
            )
            if us <= MARGIN * before:
                algorithm = self.known.best_algorithm(choice)
                new.append(self._new(choice.key, algorithm, us, before, {"threads": self.measurer.threads}))
        self.records |= {record.kernel: record for record in new}
        return new

    def _best_of(self, choice: Choice, algorithm: str) -> list[Side]:
        """Return (kernel, index of its best candidate, calls) of a convolution by ``algorithm``."""
        tasks = self.known.tasks.tasks
        return [(tasks[k], self.known.best(tasks[k])[0], calls) for k, calls in choice.kernels[algorithm].items()]

    def _is_waiting(self, choice: Choice) -> bool:
        """Return whether another algorithm seems better that was not raced with these kernels yet."""
        best, first = self.known.best_algorithm(choice), choice.algorithms[0]
        us, before = self.known.algorithm_us(choice, best), self.known.algorithm_us(choice, first)
        record = self.records.get(choice.key)
        is_new = record is None or record.choice != best
        seems_better = bool(best != first and us and before and us <= MARGIN * before)
        return seems_better and is_new and _side_key(choice, self._best_of(choice, best)) not in self.raced

    def _equal_reference(self, candidates: list[tuple[Task, int]]) -> set[tuple[str, int]]:
        """Return those candidates whose output on the device is what the unscheduled kernel computes here."""
        missing = [(task, index) for task, index in candidates if (task.key, index) not in self.checked]
        data = self.measurer.outputs(missing) if missing else b""
        at = 0
        for task, index in missing:
            size = 4 * task.sizes[-1]
            found = np.frombuffer(data[at : at + size], "float32")
            at += size
            if found.size != task.sizes[-1]:
                continue
            error = relative_error(found, reference_output(task))
            if error <= tolerance(task):
                self.checked.add((task.key, index))
            else:
                self.wrong.append(f"{task.key} {task.space[index]}: {error:.1e} off the reference, not kept")
        return {(task.key, index) for task, index in candidates if (task.key, index) in self.checked}


def _ratio(runs: list[Measurement], analytic: list[Measurement]) -> float | None:
    """Return the winner's time over the analytic one; at least 1 unless it is ahead in the median of the visits too."""
    if not runs or len(runs) != len(analytic):
        return None
    ratio = min(m.us for m in runs) / min(m.us for m in analytic)
    medians = median(a.median_us / b.median_us for a, b in zip(runs, analytic, strict=True))
    return max(ratio, 1.0) if medians >= 1 else ratio


def _side_key(choice: Choice, side: Sequence[Side]) -> tuple:
    return (choice.key, *((task.key, index) for task, index, _ in side))
