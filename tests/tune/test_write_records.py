"""Folders of records: merged, pruned, written whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from xnncc.errors import BadRecords, OutputError
from xnncc.schedule.records import Record, read_folder
from xnncc.tune.write_records import add_records, merge_folders, repair_folder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def _record(kernel: str, us: float, choice: dict | str | None = None, machine: str = "m") -> Record:
    return Record(kernel, choice or {"ob": 1}, us, 100.0, "2026-12-01", 'a "cpu"', machine)


def test_a_newer_record_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    add_records(tmp_path, [_record("gemm.1 a", 50), _record("conv2d.1 a", 60)], {"tvm": "0.27"})
    add_records(tmp_path, [_record("gemm.1 a", 70, {"ob": 2}), _record("conv", 80, "winograd2")], {"tvm": "0.27"})
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "about.toml", "conv2d.jsonl", "conv2d_algorithms.jsonl", "gemm.jsonl",
    ]  # fmt: skip
    found = {r.kernel: r for r in read_folder(tmp_path, [])}
    assert found["gemm.1 a"].choice == {"ob": 2} and len(found) == 3
    about = tomllib.loads((tmp_path / "about.toml").read_text())
    assert about == {"tvm": "0.27", "records": 3, "devices": ['a "cpu"'], "machines": ["m"], "newest": "2026-12-01"}


def test_a_torn_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    add_records(tmp_path, [_record("gemm.1 a", 50), _record("gemm.1 b", 60)], {})
    path = tmp_path / "gemm.jsonl"
    whole = path.read_bytes()
    assert repair_folder(tmp_path) == [] and repair_folder(tmp_path / "none") == []
    path.write_bytes(whole[:-1])  # only the end of the line is missing: nothing is lost
    assert repair_folder(tmp_path) == [] and len(read_folder(tmp_path, [])) == 2
    path.write_bytes(whole[:-30])
    (note,) = repair_folder(tmp_path)
    assert "the last line was cut off" in note
    assert path.read_bytes() == whole[: whole.index(b"\n") + 1]


def test_merging_keeps_the_largest_gain_of_each_machine(tmp_path: Path) -> None:
    one, two, out = tmp_path / "one", tmp_path / "two", tmp_path / "out"
    add_records(one, [_record("gemm.1 a", 50), _record("gemm.1 b", 50)], {})
    add_records(two, [_record("gemm.1 a", 40, {"ob": 2}), _record("gemm.1 a", 90, machine="other")], {})
    (two / "gemm.jsonl").write_text((two / "gemm.jsonl").read_text() + "broken\n")
    read, kept, notes = merge_folders([one, two], out)
    assert (read, kept) == (4, 3)
    assert notes == [f"records '{two / 'gemm.jsonl'}': 1 lines that are no records ignored"]
    found = {(r.kernel, r.machine): r.choice for r in read_folder(out, [])}
    assert found == {("gemm.1 a", "m"): {"ob": 2}, ("gemm.1 a", "other"): {"ob": 1}, ("gemm.1 b", "m"): {"ob": 1}}
    first = (out / "gemm.jsonl").read_bytes()
    merge_folders([two, one], out)
    assert (out / "gemm.jsonl").read_bytes() == first


def test_merging_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadRecords, match="no record in any"):
        merge_folders([tmp_path / "empty"], tmp_path / "out")
    with pytest.raises(BadRecords, match="no such folder"):
        merge_folders([tmp_path / "none"], tmp_path / "out")


def test_a_place_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Choose another folder with -o"):
        add_records(tmp_path / "file" / "x", [_record("gemm.1 a", 50)], {})
