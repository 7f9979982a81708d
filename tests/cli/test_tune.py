"""xnncc tune: what it hands down and what it says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xnncc.schedule.records import Record, read_folder
from xnncc.tune.search import Outcome
from xnncc.tune.write_records import add_records


@pytest.fixture
def fake_tune(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stand in for the tuner; returns what it was called with, its result under "outcome"."""
    record = Record("gemm.1 a b 01", {"ob": 2, "mt": 4}, 10.0, 15.0, "2026-12-01", "cpu", "m")
    algorithm = Record("64->64 56x56 k 3x3", "winograd2", 80.0, 100.0, "2026-12-01", "cpu", "m")
    outcome = Outcome(
        Path("out"), 3000.0, 2500.0, trials=12, candidates=40, resumed=3, records=[record, algorithm],
        faults=Counter({"": 10, "crash": 2}), warnings=["a line"], curve=[(1.5, 1.1)],
    )  # fmt: skip
    calls: dict[str, Any] = {"outcome": outcome}

    def tune(model: Path, target: str, **options: Any) -> Outcome:
        calls.update(model=model, target=target, options=options)
        return outcome

    monkeypatch.setattr("xnncc.tune.tune", tune)
    return calls


def test_every_flag_is_handed_down(xnncc: Callable, fake_tune: dict[str, Any]) -> None:
    ended = xnncc(
        "tune", "m.onnx", "-t", "host", "--device", "host", "--device", "emulator", "--trials", 7, "--time", "2h",
        "-o", "out", "--shape", "x=1,4", "--weights", "w", "--threads", 2, "--exact",
    )  # fmt: skip
    assert ended.code == 0, ended.stderr
    assert callable(fake_tune["options"].pop("progress"))
    assert (fake_tune["model"], fake_tune["target"]) == (Path("m.onnx"), "host")
    assert fake_tune["options"] == {
        "devices": ("host", "emulator"), "trials": 7, "seconds": 7200.0, "output": Path("out"),
        "shapes": {"x": (1, 4)}, "weights": Path("w"), "threads": 2, "exact": True,
        "fixed": {}, "nms_rows": None,
    }  # fmt: skip


def test_it_says_what_was_found_and_what_comes_next(
    xnncc: Callable, fake_tune: dict[str, Any], golden: Callable
) -> None:
    ended = xnncc("tune", "my model.onnx", "-t", "host")
    assert ended.code == 0
    golden("cli/tune.txt", ended.stdout)
    assert ended.stderr.splitlines() == [
        "warning: a line",
        "candidates that cost nothing but their time: 2 crash",
        "next: xnncc build 'my model.onnx' --target host --records out",
    ]


def test_json_is_one_document(xnncc: Callable, fake_tune: dict[str, Any]) -> None:
    document = json.loads(xnncc("tune", "m.onnx", "-t", "host", "--json").stdout)
    assert document == {
        "directory": "out", "gain": 1.2, "analytic_us": 3000.0, "best_us": 2500.0, "trials": 12, "resumed": 3,
        "candidates": 40, "records": 2, "faults": {"crash": 2}, "curve": [[1.5, 1.1]], "interrupted": False,
        "warnings": ["a line"],
    }  # fmt: skip


def test_an_interrupted_run_says_so_and_is_no_failure(xnncc: Callable, fake_tune: dict[str, Any]) -> None:
    fake_tune["outcome"].is_interrupted = True
    ended = xnncc("tune", "m.onnx", "-t", "host")
    assert ended.code == 0
    assert "interrupted: 1.200x" in ended.stdout
    assert "the same command goes on" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("m.onnx",), "give one MODEL and --target"),
        (("a.onnx", "b.onnx", "-t", "host"), "give one MODEL and --target"),
        (("--merge", "a"), "--merge wants -o DIR"),
        (("m.onnx", "-t", "host", "--time", "soon"), "'soon' is no time"),
        (("m.onnx", "-t", "host", "--time", "0s"), "'0s' is no time"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], words: str, xnncc: Callable, fake_tune: dict[str, Any]) -> None:
    ended = xnncc("tune", *arguments)
    assert ended.code == 2
    assert words in " ".join(ended.stderr.split())


def test_merge(xnncc: Callable, tmp_path: Path) -> None:
    for name, us in (("a", 50.0), ("b", 40.0)):
        add_records(tmp_path / name, [Record("gemm.1 k", {"ob": int(us)}, us, 100.0, "2026-12-01", "cpu", "m")], {})
    ended = xnncc("tune", "--merge", "a", "b", "-o", "c")
    assert (ended.code, ended.stdout) == (0, "c/: 1 records out of 2\n")
    assert [r.choice for r in read_folder(tmp_path / "c", [])] == [{"ob": 40}]
