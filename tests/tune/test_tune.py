"""Whole runs of the tuner on a small network: what is kept, what a bad candidate costs, how a run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xnncc.build import build
from xnncc.device.bench_local import HostBench
from xnncc.errors import DeviceError, TuneFailed
from xnncc.schedule.records import read_folder, read_records
from xnncc.target import load_target
from xnncc.tune import tune
from xnncc.tune.measure import Measurer

TRIALS = 24  # after the first batch: the analytic choice and one more of each kernel


def _entries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal" / "net.jsonl").read_text().splitlines()]


def _reasons(report: dict[str, Any]) -> str:
    return " | ".join(op["reason"] for op in report["ops"])


def test_a_winner_is_kept_and_the_build_takes_it(model: Path, tmp_path: Path, steady: Callable) -> None:
    steady(lambda position: 2000 if position == 0 else 1000 + position)
    outcome = tune(model, "host", trials=TRIALS, output=tmp_path / "records")
    assert outcome.records and not outcome.is_interrupted
    assert all(record.gain > 1.5 for record in outcome.records if not isinstance(record.choice, str))
    assert outcome.trials >= TRIALS
    kept = read_folder(tmp_path / "records", notes := [])
    assert notes == [] and {r.kernel for r in kept} == {r.kernel for r in outcome.records}
    about = (tmp_path / "records" / "about.toml").read_text()
    assert 'devices = ["a steady clock"]' in about and "tvm = " in about

    plain = build(model, "host", tmp_path / "plain", records=_empty(tmp_path))
    tuned = build(model, "host", tmp_path / "tuned", records=tmp_path / "records")  # verifies
    again = build(model, "host", tmp_path / "again", records=tmp_path / "records")
    assert "record (" in _reasons(tuned.report) and "a steady clock" in _reasons(tuned.report)
    assert "record" not in _reasons(plain.report)
    files = ["libnet.so", "net.xnn", "report.json"]
    read = {name: [(r.directory / name).read_bytes() for r in (plain, tuned, again)] for name in files}
    assert read["libnet.so"][0] != read["libnet.so"][1], "the record changed no code"
    assert all(tuned_bytes == again_bytes for _, tuned_bytes, again_bytes in read.values())


def _empty(tmp_path: Path) -> Path:
    (tmp_path / "none").mkdir()
    return tmp_path / "none"


def test_no_winner_without_a_gain(model: Path, tmp_path: Path, steady: Callable) -> None:
    """One percent is noise."""
    steady(lambda position: 1000 if position == 0 else 990)
    outcome = tune(model, "host", trials=TRIALS, output=tmp_path)
    assert [r for r in outcome.records if not isinstance(r.choice, str)] == []


def test_the_same_command_goes_on(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measurer.prepare
    calls: list[int] = []

    def interrupted(self: Measurer, batch: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measured(self, batch)

    monkeypatch.setattr(Measurer, "prepare", interrupted)
    first = tune(model, "host", trials=200, output=tmp_path)
    assert first.is_interrupted
    assert first.trials == len(_entries(tmp_path)) > 0
    monkeypatch.setattr(Measurer, "prepare", measured)
    second = tune(model, "host", trials=10, output=tmp_path)
    assert second.resumed == first.trials
    entries = [(e["kernel"], json.dumps(e["config"])) for e in _entries(tmp_path)]
    again = [e for e in entries[first.trials :] if e in entries[: first.trials]]
    analytic = {(kernel, config) for kernel, config in entries if entries.count((kernel, config)) > 1}
    assert len({kernel for kernel, _ in analytic}) == len(analytic), "only the analytic choice is measured again"
    assert len(again) < len(entries) - first.trials


def test_a_torn_journal_is_repaired(model: Path, tmp_path: Path) -> None:
    tune(model, "host", trials=4, output=tmp_path)
    journal = tmp_path / "journal" / "net.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    outcome = tune(model, "host", trials=4, output=tmp_path)
    assert outcome.resumed == whole.count(b"\n") - 1
    assert any("the last line was cut off" in warning for warning in outcome.warnings)
    assert all(isinstance(entry, dict) for entry in _entries(tmp_path))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("crash", "*(volatile int *)8 = 1; return 0;"),
        ("crash", "return -1;"),
        ("hang", "for (;;) __asm__ volatile(\"\"); return 0;"),
        ("wrong", "return 0;"),
    ],
    ids=["segfault", "failure", "hang", "nothing written"],
)  # fmt: skip
def test_a_bad_candidate_costs_one_candidate(
    kind: str, body: str, model: Path, tmp_path: Path, sabotage: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostBench, "run_seconds", 1.0)
    sabotage(1, body)
    outcome = tune(model, "host", trials=4, output=tmp_path)
    assert set(outcome.faults) - {""} == {kind}
    entries = _entries(tmp_path)
    bad = [e for e in entries if e["fault"]]
    assert len(bad) == outcome.faults[kind] == len({e["kernel"] for e in bad}) > 0
    assert all(e["us"] > 0 for e in entries if not e["fault"])
    assert all(e["kernel"] in {g["kernel"] for g in entries if not g["fault"]} for e in bad), "its group went on"


def test_all_failed_stops_and_says_why(model: Path, tmp_path: Path, sabotage: Callable) -> None:
    sabotage(0, "*(volatile int *)8 = 1; return 0;")
    with pytest.raises(TuneFailed, match="the first one: crash, ended by SIGSEGV"):
        tune(model, "host", trials=50, output=tmp_path)


def test_a_lost_device_is_no_kernels_fault(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostBench, "command", lambda self: ["sh", "-c", "kill -9 $$"])
    with pytest.raises(DeviceError, match=r"was lost.*SIGKILL"):
        tune(model, "host", trials=4, output=tmp_path)
    assert _entries(tmp_path) == []


def test_records_of_another_machine_are_ignored_with_one_line(model: Path, tmp_path: Path, steady: Callable) -> None:
    steady(lambda position: 2000 if position == 0 else 1000)
    tune(model, "host", trials=4, output=tmp_path / "records")
    for path in (tmp_path / "records").glob("*.jsonl"):
        path.write_text(path.read_text().replace("lanes=", "lanes=9"))
    records = read_records([tmp_path / "records"], load_target("host"))
    assert not records.kernels and not records.convolutions
    assert len(records.notes) == 1 and "of another machine" in records.notes[0]
    result = build(model, "host", tmp_path / "out", records=tmp_path / "records", verify=False)
    assert result.warnings == records.notes
    assert "record" not in _reasons(result.report)


def test_a_hostile_record_is_not_followed(model: Path, tmp_path: Path, steady: Callable) -> None:
    steady(lambda position: 2000 if position == 0 else 1000)
    outcome = tune(model, "host", trials=4, output=tmp_path / "records")
    names = {name for r in outcome.records if not isinstance(r.choice, str) for name in r.choice}
    assert names, "no kernel has a record"
    for path in (tmp_path / "records").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            line["config"] = dict.fromkeys(line.get("config", {}), 10**9)
            line["algorithm"] = "rm -rf"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = build(model, "host", tmp_path / "out", records=tmp_path / "records")
    assert "names no configuration of the rule's space" in _reasons(result.report)
    assert "1000000000" not in _reasons(result.report)


def test_a_winner_that_is_off_the_reference_is_not_kept(
    model: Path, tmp_path: Path, steady: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from xnncc.tune import confirm

    honest = confirm.reference_output
    monkeypatch.setattr(confirm, "reference_output", lambda task: honest(task) * 1.01)
    steady(lambda position: 2000 if position == 0 else 1000)
    outcome = tune(model, "host", trials=4, output=tmp_path / "records")
    assert outcome.records == []
    assert any("off the reference, not kept" in warning for warning in outcome.warnings)
    assert not list((tmp_path / "records").glob("*.jsonl"))


def test_equal_devices_share_the_work_and_one_may_die(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, used = HostBench.measure, []

    def dies_second(self: HostBench, library: Any, groups: Any, *rest: Any, **more: Any) -> Any:
        used.append(self)
        if self is not used[0] and len(used) > 3:
            raise DeviceError("device 'host'", "unplugged")
        return honest(self, library, groups, *rest, **more)

    monkeypatch.setattr(HostBench, "measure", dies_second)
    outcome = tune(model, "host", devices=("host", "host"), trials=20, output=tmp_path)
    assert len(set(map(id, used))) == 2
    assert any("was lost: device 'host': unplugged" in warning for warning in outcome.warnings)
    assert set(outcome.faults) <= {""}
    kernels = {e["kernel"] for e in _entries(tmp_path)}
    assert len(_entries(tmp_path)) == outcome.trials and len(kernels) >= 2
