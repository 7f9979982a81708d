"""Records: read back as written, and never trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kernel_running import AVX2, kernel, placeholders, random

from xnncc.errors import BadRecords
from xnncc.kernels import matmul
from xnncc.schedule import RULES, schedule_kernel, tuning_space
from xnncc.schedule.blocks import main_block, schedule_of
from xnncc.schedule.kernel_key import kernel_key
from xnncc.schedule.records import Record, config_fields, parse_record, read_records
from xnncc.target import load_target

TARGET = load_target("linux-x86-64")


def _record(kernel_name: str = "gemm.1 a b", machine: str = TARGET.fingerprint, **choice: int) -> Record:
    return Record(kernel_name, choice or {"ob": 2}, 10.0, 15.0, "2026-12-01", "a cpu", machine, {"threads": 1})


def _gemm(rows: int = 12) -> object:
    args = placeholders(random(0, rows, 10), random(1, 4, 10, 8), random(2, 4, 8))
    return kernel(*args, matmul.f32_gemm(*args))


def test_a_record_is_its_line() -> None:
    for record in (_record(), Record("conv", "winograd2", 1.5, 2.0, "2026-12-01", "cpu", "m")):
        assert parse_record(record.line().encode()) == record
    assert _record().gain == 1.5


@pytest.mark.parametrize(
    "line",
    [
        b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"kernel": "k"}', b"[" * 100_000,
        _record().line().replace("10.0", "0").encode(), _record().line().replace("10.0", "NaN").encode(),
        _record().line().replace("10.0", '"x"').encode(), _record().line().replace('{"ob": 2}', "[2]").encode(),
        _record().line().replace('"a cpu"', "7").encode(),
    ],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_record_is_none(line: bytes) -> None:
    assert parse_record(line) is None


def test_foreign_and_broken_lines_are_counted_once_each(tmp_path: Path) -> None:
    lines = [_record().line(), _record(machine="x1").line(), _record(machine="x1").line(), "nonsense", "{}"]
    (tmp_path / "gemm.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "net.jsonl").write_text("not looked at\n")
    records = read_records([tmp_path], TARGET)
    assert list(records.kernels) == ["gemm.1 a b"]
    assert records.notes == (
        f"records '{tmp_path / 'gemm.jsonl'}': 2 lines that are no records ignored",
        f"records '{tmp_path}': 2 of another machine (x1) ignored",
    )


def test_the_first_folder_wins(tmp_path: Path) -> None:
    for name, ob in (("mine", 1), ("shipped", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gemm.jsonl").write_text(_record(ob=ob).line() + "\n")
    assert read_records([tmp_path / "mine", tmp_path / "shipped"], TARGET).kernels["gemm.1 a b"].choice == {"ob": 1}


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadRecords, match="there is no such folder"):
        read_records([tmp_path / "none"], TARGET)


def test_the_key_is_the_kernel_and_not_its_names() -> None:
    rule = RULES["gemm"]
    assert kernel_key(_gemm(), rule) == kernel_key(_gemm(), rule)
    assert kernel_key(_gemm(), rule) != kernel_key(_gemm(rows=13), rule)
    named = _gemm().with_attr("global_symbol", "another")  # type: ignore[attr-defined]
    assert kernel_key(named, rule) == kernel_key(_gemm(), rule)
    assert kernel_key(_gemm(), rule).startswith("gemm.1 float32[12,10] float32[4,10,8] float32[4,8] float32[12,32] ")


def test_a_fitting_record_decides_and_the_reason_says_so() -> None:
    func, rule = _gemm(), RULES["gemm"]
    _, _, numbers = main_block(schedule_of(func))
    config = tuning_space(rule, numbers, AVX2)[-1]
    key = kernel_key(func, rule)
    done = schedule_kernel(func, AVX2, {key: _record(key, **config_fields(config))})
    assert done.reason == f"record (2026-12-01, a cpu) {config}"
    assert config != rule.space(numbers, AVX2)[0]


def test_a_record_outside_the_space_is_passed_over() -> None:
    func = _gemm()
    key = kernel_key(func, RULES["gemm"])
    plain, done = schedule_kernel(func, AVX2), schedule_kernel(func, AVX2, {key: _record(key, ob=10**9)})
    assert done.reason == plain.reason + "; record (2026-12-01, a cpu) names no configuration of the rule's space"


def test_the_machine_makes_the_fingerprint_not_the_name() -> None:
    assert TARGET.fingerprint == load_target("linux-x86-64").fingerprint
    assert load_target("android-arm64").fingerprint != TARGET.fingerprint
    assert "lanes=8" in TARGET.fingerprint and "haswell" in TARGET.fingerprint


def test_lines_are_sorted_json() -> None:
    assert list(json.loads(_record().line())) == sorted(json.loads(_record().line()))
