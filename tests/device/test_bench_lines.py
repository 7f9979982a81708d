"""What measure.c says, made into measurements: also of a device that says it wrongly."""

from __future__ import annotations

import pytest

from xnncc.device.bench import Fault, Group, Measurement
from xnncc.device.bench_lines import Progress, groups_left, job_lines

FIRST, SECOND = Group((0, 1), 8, 32, 16), Group((2, 3, 4), 8, 32, 16)


def told(*lines: str) -> tuple[Progress, list[Measurement]]:
    """Return the state after these lines, and what they gave."""
    progress = Progress([FIRST, SECOND])
    return progress, [result for line in lines for result in progress.take(line)]


def test_a_group_is_told_when_it_ends() -> None:
    progress, results = told("run 0", "error 0 0", "run 1", "error 1 250", "ns 0 900", "ns 1 800", "ns 0 700", "end")
    assert results == [Measurement(0, (900, 700), 0.0), Measurement(1, (800,), 2.5e-7)]
    assert (progress.done, progress.running, progress.is_complete) == (1, -1, False)


def test_a_candidate_that_was_never_compared_is_no_good() -> None:
    _, results = told("ns 0 900", "end")
    assert [(r.ns, r.error) for r in results] == [((900,), float("inf")), ((0,), float("inf"))]


@pytest.mark.parametrize(
    "line",
    ["", "run", "run x", "run -1", "run 2", "run 0 1", "ns 0", "ns 7 100", "ns 0 1e9", "ns 0 ٣", "error 1", "end 1",
     "run 99999999999999999999999", "\x00\xff", "something else"],
)  # fmt: skip
def test_lines_of_another_form_change_nothing(line: str) -> None:
    progress, results = told(line)
    assert results == [] and (progress.done, progress.running) == (0, -1)
    assert progress.last_words == line


def test_more_ends_than_groups_change_nothing() -> None:
    progress, results = told("end", "end", "end", "run 0")
    assert [r.candidate for r in results] == [0, 1, 2, 3, 4]
    assert progress.is_complete and progress.running == -1


@pytest.mark.parametrize(
    ("lines", "signal", "fault"),
    [
        (("run 1",), "SIGSEGV", Fault(1, "crash", "ended by SIGSEGV")),
        (("ns 1 5",), "SIGFPE", Fault(1, "crash", "ended by SIGFPE")),
        (("run 1", "run: the kernel failed"), "", Fault(1, "crash", "run: the kernel failed")),
        (("run 1",), "SIGKILL", None),  # from outside: memory was short, or someone ended it
        (("run 1",), "", None),
        ((), "SIGSEGV", None),  # before any candidate ran
    ],
)
def test_whose_doing_an_end_was(lines: tuple[str, ...], signal: str, fault: Fault | None) -> None:
    assert told(*lines)[0].fault_of_exit(signal) == fault


def test_what_is_left_after_a_fault() -> None:
    groups = [FIRST, SECOND]
    assert groups_left(groups, 2, None) == []
    assert groups_left(groups, 1, None) == [SECOND]
    assert groups_left(groups, 1, Fault(3, "hang", "")) == [Group((2, 4), 8, 32, 16)]
    assert groups_left(groups, 0, Fault(0, "crash", "")) == [SECOND]  # nothing to compare the others with
    assert groups_left(groups, 0, Fault(1, "crash", "")) == [Group((0,), 8, 32, 16), SECOND]


def test_the_list_of_jobs_is_the_programs() -> None:
    assert job_lines([FIRST, SECOND], True) == "g 8 32 16 1\nc 0\nc 1\ng 8 32 16 1\nc 2\nc 3\nc 4\n"
