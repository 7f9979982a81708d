"""Benches: a whole library of candidates in a child process, on this machine and under the emulator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kernel_running import kernel, placeholders, random

from xnncc.device.bench import Dump, Measurement, filled, open_bench
from xnncc.errors import DeviceError
from xnncc.kernels import matmul
from xnncc.schedule import RULES, tuning_space
from xnncc.schedule.blocks import main_block, schedule_of
from xnncc.schedule.kernel_key import kernel_key
from xnncc.target import Target, load_target
from xnncc.tune.candidates import Workshop
from xnncc.tune.check_winner import reference_output, relative_error
from xnncc.tune.tasks import Task


def _task(target: Target, rows: int) -> Task:
    v = target.machine.lanes
    args = placeholders(random(0, rows, 16), random(1, 4, 16, v), random(2, 4, v))
    func = kernel(*args, matmul.f32_gemm(*args))
    numbers = main_block(schedule_of(func))[2]
    rule = RULES["gemm"]
    return Task(kernel_key(func, rule), rule, numbers, func, tuning_space(rule, numbers, target.machine))


@pytest.mark.parametrize("name", ["host", "linux-arm64"])
def test_candidates_are_timed_and_compared(name: str, tmp_path: Path) -> None:
    target = load_target(name)
    try:
        bench = open_bench(None, target)
    except DeviceError as error:
        pytest.skip(str(error))
    tasks = [_task(target, 8), _task(target, 12)]
    workshop = Workshop(target, tmp_path, 2)
    workshop.compile([(task, i) for task in tasks for i in (0, 1)])
    library, groups = workshop.link([(task, [0, 1]) for task in tasks])
    dump = Dump()
    results = list(bench.measure(library, groups, 3, dump=dump))
    assert [r.candidate for r in results] == [0, 1, 2, 3]
    for result in results:
        assert isinstance(result, Measurement)
        assert len(result.ns) == 3 and min(result.ns) > 0
        assert result.error <= 1e-6  # 16 products, in the same order
    at = 0
    for task in tasks:
        found = np.frombuffer(dump.data[at : at + 4 * task.sizes[-1]], "float32")
        at += 4 * task.sizes[-1]
        assert relative_error(found, reference_output(task)) <= 1e-6
    assert at == len(dump.data)
    assert bench.description


def test_the_arena_is_filled_with_the_same_numbers_everywhere() -> None:
    """The formula of measure.c in whole numbers, and that it is spread evenly."""
    numbers = filled(3)
    x = [(i * 2654435761) % 2**32 for i in range(3)]
    expected = [np.float32((n ^ n >> 16) >> 8) / np.float32(2**23) - 1 for n in x]
    assert numbers.dtype == np.float32 and numbers.tolist() == [float(e) for e in expected]
    many = filled(100_000)
    assert -1 <= many.min() < -0.99 and 0.99 < many.max() < 1 and abs(many.mean()) < 0.01


@pytest.mark.parametrize(
    ("spec", "target", "words"),
    [
        ("phone", "host", "unknown device 'phone'"),
        ("host", "linux-arm64", "does not run here"),
        (None, "ios-arm64", "nothing here runs it"),
        ("emulator", "web-wasm", "no emulator here times its kernels"),
    ],
)
def test_what_cannot_be_measured_is_said(spec: str | None, target: str, words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        open_bench(spec, load_target(target))
