"""What to measure next: the kernels with the largest share of the run time times the gain still to be expected.

The first batch has the analytic choice and the next best guess of every kernel, by every algorithm; one that is built
while that is measured elsewhere has the two guesses after those. From then on a
kernel's appeal halves with every ``HALVING`` candidates that were tried in vain, for the rules list their best guesses
first; kernels of an algorithm that is far behind are left until last.
"""

from __future__ import annotations

from collections.abc import Callable

from .knowledge import Knowledge
from .tasks import Task

BATCH = 64  # candidates of one library
CHUNK = 6  # candidates of one kernel in a batch after the first
FIRST = 2  # candidates of each kernel in the first batch
HALVING = 8
HOPELESS, PENALTY = 1.4, 0.02  # an algorithm so many times slower than the best gets this share of its appeal

Order = Callable[[Task, list[int]], list[int]]  # untried candidates of a task, the most promising first


def plan_batch(known: Knowledge, order: Order, limit: int) -> list[tuple[Task, list[int]]]:
    """Return at most ``limit`` untried candidates, grouped by kernel; [] when everything was tried."""
    untried = {
        task.key: [i for i in range(len(task.space)) if not known.is_tried(task, i)]
        for task in known.tasks.tasks.values()
        if not known.is_broken(task)
    }
    new = [task for key, task in known.tasks.tasks.items() if not known.is_tried(task, 0)]
    if new:
        return [(task, untried[task.key][:FIRST]) for task in new]
    if not any(known.measured(task) for task in known.tasks.tasks.values()):  # the first batch is still out
        guesses = [(known.tasks.tasks[key], left[:FIRST]) for key, left in untried.items() if left]
        return guesses[: min(limit, BATCH) // FIRST]
    appeals = {key: _appeal(known, known.tasks.tasks[key]) for key, left in untried.items() if left}
    batch: list[tuple[Task, list[int]]] = []
    room = min(limit, BATCH)
    for key in sorted(appeals, key=lambda k: (-appeals[k], k)):
        if room <= 0:
            break
        task = known.tasks.tasks[key]
        picked = order(task, untried[key])[: min(CHUNK, room)]
        batch.append((task, picked))
        room -= len(picked)
    return batch


def _appeal(known: Knowledge, task: Task) -> float:
    """Return microseconds of an inference that more candidates of ``task`` may be hoped to save."""
    tried = len(known.results.get(task.key, {}))
    since_best = tried - 1 if known.best(task)[0] == 0 else max(tried // 2, 1)
    appeal = known.weight(task) * known.best(task)[1] * 0.5 ** (since_best / HALVING)
    for choice in known.tasks.choices.values():
        for algorithm, kernels in choice.kernels.items():
            if task.key in kernels:
                best, own = (
                    known.algorithm_us(choice, known.best_algorithm(choice)),
                    known.algorithm_us(choice, algorithm),
                )
                if best and own and own > HOPELESS * best:
                    appeal *= PENALTY
    return appeal
