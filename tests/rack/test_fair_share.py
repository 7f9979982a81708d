"""Shares of device time: exact over an hour, bounded at any moment, and never more than a limit allows."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from xnncc.rack.fair_share import FairShare


def simulate(weights: dict[str, float], servers: int, hours: float, seed: int = 1) -> dict[str, float]:
    """Return the device seconds that each claimant, always with work of 5 to 60 s, gets on equal devices."""
    random, share = Random(seed), FairShare()
    for name, weight in weights.items():
        share.add(name, weight)
        share.wake(name)
    end, used = hours * 3600, dict.fromkeys(weights, 0.0)
    ends: list[tuple[float, int, str, float]] = []
    now, count = 0.0, 0
    while now < end:
        while len(ends) < servers:
            name = share.pick(weights)
            assert name is not None
            count += 1
            seconds = random.uniform(5, 60)
            share.start(name, str(count))
            ends.append((now + seconds, count, name, seconds))
        ends.sort()
        now, number, name, seconds = ends.pop(0)
        share.finish(name, str(number), seconds)
        used[name] += seconds
    return used


def test_weights_are_shares() -> None:
    for seed in range(5):
        used = simulate({"a": 1, "b": 1, "c": 2}, servers=4, hours=1, seed=seed)
        total = sum(used.values())
        for name, share in {"a": 0.25, "b": 0.25, "c": 0.5}.items():
            assert abs(used[name] / total - share) < 0.05 * share, (seed, used)


def test_priority_goes_first_whatever_the_weights() -> None:
    share = FairShare()
    share.add("low", weight=100)
    share.add("high", weight=0.01, priority=1)
    for work in range(20):
        assert share.pick(["low", "high"]) == "high"
        share.start("high", str(work), 10)
    assert share.pick(["low"]) == "low"


def test_waiting_earns_nothing() -> None:
    share = FairShare()
    share.add("old")
    share.add("idle")
    for work in range(100):
        share.start("old", str(work), 10)
        share.finish("old", str(work), 10)
    share.wake("idle")
    picks = []
    for work in range(20):
        name = share.pick(["old", "idle"])
        assert name is not None
        picks.append(name)
        share.start(name, f"new {work}", 10)
        share.finish(name, f"new {work}", 10)
    assert abs(picks.count("old") - picks.count("idle")) <= 1


def test_pools_do_not_count_against_each_other() -> None:
    share = FairShare()
    share.add("busy", pool="a")
    share.add("other", pool="b")
    for work in range(50):
        share.start("busy", str(work), 100)
        share.finish("busy", str(work), 100)
    share.start("other", "x", 10)
    share.finish("other", "x", 10)
    share.add("new", pool="b")
    share.wake("new")
    assert share.claimants["new"].virtual <= share.claimants["other"].virtual


@settings(max_examples=200, deadline=None)
@given(
    weights=st.lists(st.floats(0.1, 10), min_size=1, max_size=5),
    priorities=st.lists(st.integers(0, 1), min_size=5, max_size=5),
    limits=st.lists(st.one_of(st.none(), st.integers(1, 3)), min_size=5, max_size=5),
    servers=st.integers(1, 6),
    seconds=st.lists(st.floats(0.5, 50), min_size=10, max_size=80),
)
def test_holds_its_promises(
    weights: list[float],
    priorities: list[int],
    limits: list[int | None],
    servers: int,
    seconds: list[float],
) -> None:
    share = FairShare()
    names = [f"job {n}" for n in range(len(weights))]
    for name, weight, priority, limit in zip(names, weights, priorities, limits, strict=False):
        share.add(name, weight, priority, limit)
        share.wake(name)
    running: list[tuple[str, str, float]] = []
    used = dict.fromkeys(names, 0.0)
    for number, length in enumerate(seconds):
        if len(running) == servers:
            name, work, took = running.pop(0)
            share.finish(name, work, took)
            used[name] += took
        picked = share.pick(names)
        open_names = [
            n for n in names if (m := share.claimants[n].most_running) is None or len(share.claimants[n].running) < m
        ]
        assert (picked is None) == (not open_names), "a device stays idle only when limits forbid all"
        if picked is None:
            continue
        one = share.claimants[picked]
        assert one.priority == max(share.claimants[n].priority for n in open_names)
        share.start(picked, str(number))
        running.append((picked, str(number), length))
        assert one.most_running is None or len(one.running) <= one.most_running
    for name, work, took in running:
        share.finish(name, work, took)
        used[name] += took
    for name in names:  # all charges are corrected: virtual time is time used over weight
        one = share.claimants[name]
        assert abs(one.virtual - used[name] / one.weight) < 1e-6 * (1 + one.virtual)
    free = [
        n
        for n in names
        if share.claimants[n].most_running is None and share.claimants[n].priority == max(priorities[: len(names)])
    ]
    most = max(seconds) * (servers + 1) + servers
    for a in free:  # nobody is ahead by more than what can run at once
        for b in free:
            one, other = share.claimants[a], share.claimants[b]
            assert one.virtual - other.virtual <= most * (1 / one.weight + 1 / other.weight) + 1e-6
