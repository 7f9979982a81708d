"""peers: engines take turns, ratios are within a round, and an engine that fails says why."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from bench_models import write
from peers import Burst, Contender, PeerError, busy, race, ratio, save_feeds


class _Scripted:
    """A contender whose times are known."""

    def __init__(self, name: str, log: list[str], times: list[float]) -> None:
        self.name, self.log, self.times = name, log, iter(times)

    def burst(self) -> Burst:
        self.log.append(self.name)
        return _burst(next(self.times))


def _burst(ms: float) -> Burst:
    return Burst(ms, ms / 2, 2 * ms)


def test_order_turns_each_round() -> None:
    log: list[str] = []
    contenders = {name: _Scripted(name, log, [1.0, 2.0]) for name in "abc"}
    want = [_burst(1.0), _burst(2.0)]
    assert race(contenders, 2) == {"a": want, "b": want, "c": want}  # type: ignore[arg-type]
    assert log == ["a", "b", "c", "b", "c", "a"]


def test_ratio_is_taken_within_a_round() -> None:
    # A slow second round: medians of the columns would say 4/2 = 2, the rounds say 3/2, 10/10, 4/2.
    times = {"xnncc": [2.0, 10.0, 2.0], "peer": [3.0, 10.0, 4.0]}
    bursts = {name: [_burst(ms) for ms in column] for name, column in times.items()}
    assert ratio(bursts, "peer") == ratio(bursts, "peer", of="cpu") == 1.5


def test_onnxruntime_answers(tmp_path: Path) -> None:
    model, feeds = write("lstm_kws", tmp_path), tmp_path / "feeds.npz"
    save_feeds({"input": np.ones((98, 1, 40), np.float32)}, feeds)
    with Contender("onnxruntime", model, feeds, 1) as contender:
        burst = contender.burst()
        assert 0 < burst.least <= burst.median and burst.cpu > 0
        assert 20 < contender.peak_mib() < 2000
        assert 1 / 12 <= contender.rms <= 1  # of a softmax over 12 words


def test_engine_that_cannot_load_says_why(tmp_path: Path) -> None:
    save_feeds({"input": np.ones(1, np.float32)}, tmp_path / "feeds.npz")
    with pytest.raises(PeerError, match=r"onnxruntime: .*nothing\.onnx"):
        Contender("onnxruntime", tmp_path / "nothing.onnx", tmp_path / "feeds.npz", 1, sys.executable)


def test_busy_loops_run_beside_and_end() -> None:
    def of_children() -> float:
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    before = of_children()
    with busy(1):
        time.sleep(0.5)
    assert of_children() - before > 0.02  # waited for, so ended
