"""The parts of the search: what is known, what is measured next, how candidates are ranked. No device."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from xnncc.tune import cost_model
from xnncc.tune.cost_model import CostModel
from xnncc.tune.journal import Entry
from xnncc.tune.knowledge import Knowledge
from xnncc.tune.plan_batch import BATCH, FIRST, plan_batch
from xnncc.tune.tasks import Choice, Task, Tasks


@dataclass(frozen=True)
class Config:
    """A point of a made-up space."""

    a: int
    b: int


RULE: Any = SimpleNamespace(NAME="made_up")


def _task(key: str, points: int = 20, calls: int = 1, size: int = 64) -> Task:
    side = max(round(points**0.5), 1)
    space = [Config(i % side, i // side) for i in range(points)]
    return Task(key, RULE, {"n": size}, None, space, calls=calls)


def _entry(task: Task, index: int, us: float, ratio: float = 1.0, fault: str = "") -> Entry:
    config = {"a": task.space[index].a, "b": task.space[index].b}
    return Entry(task.key, config, "m", "d", 1, us=us, ratio=ratio, fault=fault)


def _known(*tasks: Task, choices: tuple[Choice, ...] = ()) -> Knowledge:
    return Knowledge(Tasks({t.key: t for t in tasks}, {c.key: c for c in choices}))


def _in_order(task: Task, untried: list[int]) -> list[int]:
    return untried


def test_times_of_different_runs_are_compared_through_the_analytic_choice() -> None:
    task = _task("k")
    known = _known(task)
    known.learn(_entry(task, 0, 100.0))
    known.learn(_entry(task, 3, 180.0, ratio=0.9))  # in that run the machine was half as fast
    assert known.best(task) == (3, 90.0)
    assert known.network_us() == (100.0, 90.0)


def test_entries_of_unknown_kernels_and_configurations_are_of_no_use() -> None:
    task = _task("k")
    known = _known(task)
    assert not known.learn(_entry(_task("another"), 0, 1.0))
    assert not known.learn(Entry("k", {"a": 99, "b": 0}, "m", "d", 1, us=1.0))
    assert known.results == {}


def test_the_first_batch_has_every_kernel() -> None:
    tasks = [_task(f"k{i}") for i in range(50)]
    batch = plan_batch(_known(*tasks), _in_order, 10**9)
    assert [(task.key, picked) for task, picked in batch] == [(t.key, list(range(FIRST))) for t in tasks]


def test_large_shares_of_the_time_come_first_and_everything_is_tried_once() -> None:
    small, large = _task("small"), _task("large", calls=3)
    known = _known(small, large)
    for task, us in ((small, 10.0), (large, 100.0)):
        known.learn(_entry(task, 0, us))
    assert next(iter(plan_batch(known, _in_order, 4)))[0] is large
    tried = 2
    while batch := plan_batch(known, _in_order, 10**9):
        assert sum(len(picked) for _, picked in batch) <= BATCH
        for task, picked in batch:
            for index in picked:
                assert not known.is_tried(task, index)
                known.learn(_entry(task, index, 0.0, ratio=1.1))
                tried += 1
    assert tried == 40


def test_a_kernel_whose_analytic_choice_fails_is_left_alone() -> None:
    task = _task("k")
    known = _known(task)
    known.learn(_entry(task, 0, 0.0, fault="crash"))
    assert plan_batch(known, _in_order, 10) == []


def test_an_algorithm_far_behind_waits() -> None:
    direct, winograd = _task("direct", calls=1), _task("winograd", calls=0)
    choice = Choice("conv", ("direct", "winograd4"), {"direct": Counter(direct=1), "winograd4": Counter(winograd=1)})
    known = _known(direct, winograd, choices=(choice,))
    known.learn(_entry(direct, 0, 100.0))
    known.learn(_entry(winograd, 0, 300.0))
    assert [task.key for task, _ in plan_batch(known, _in_order, 10**9)] == ["direct", "winograd"]
    assert known.best_algorithm(choice) == "direct"
    known.learn(_entry(winograd, 1, 0.0, ratio=0.2))
    assert known.best_algorithm(choice) == "winograd4"
    assert known.network_us() == (100.0, pytest.approx(60.0))


def test_the_cost_model_finds_the_valley() -> None:
    """Time = 1 + |a - 11| + |b - 4|: with a quarter of the space measured, the next twelve lie around the best."""
    pytest.importorskip("xgboost")
    task = _task("k", points=400)
    known = _known(task)
    time = {i: 1.0 + abs(c.a - 11) + abs(c.b - 4) for i, c in enumerate(task.space)}
    measured = [0, *(i for i in random.Random(1).sample(range(1, 400), 99))]
    known.learn(_entry(task, 0, time[0]))
    for i in measured[1:]:
        known.learn(_entry(task, i, 0.0, ratio=time[i] / time[0]))
    untried = [i for i in range(400) if i not in measured]
    order = CostModel(known).order(task, untried)
    assert sorted(order) == untried
    guided = [time[i] for i in order[:12]]
    assert min(guided) <= min(time[i] for i in untried) + 1
    assert sum(guided) / 12 < 0.6 * sum(time[i] for i in untried) / len(untried)
    assert CostModel(known).order(task, untried) == order, "same results, same order"


def test_small_spaces_and_missing_models_keep_the_rules_order(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = _task("small"), _task("large", points=400)
    model = CostModel(_known(small, large))
    assert model.order(small, [3, 1, 2]) == [3, 1, 2]
    assert model.order(large, [3, 1, 2]) == [3, 1, 2], "nothing is known yet"
    monkeypatch.setattr(cost_model, "missing_model", lambda: "no xgboost")
    assert model.order(large, [3, 1, 2]) == [3, 1, 2]
