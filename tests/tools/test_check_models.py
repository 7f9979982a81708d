"""The table of real networks: one row for each place that runs a target, named for what it is."""

from __future__ import annotations

from pathlib import Path

import check_models
import pytest
from check_models import Row, markdown, places
from judges.verdict import Verdict
from real_models import RealModel

from xnncc.codegen.emulators import Emulator


def browser(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    answer = Emulator(found, "" if found else "chromium", "apt-get install chromium")
    monkeypatch.setattr("xnncc.codegen.emulators.find_browser", lambda: answer)


def names(target: str) -> list[str]:
    return [place.name for place in places(target)]


def test_places_are_named_for_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    browser(monkeypatch, "/usr/bin/chromium")
    assert names("linux-x86-64") == ["this machine"]
    assert names("linux-arm64") == names("android-arm64") == ["qemu-aarch64"]
    assert names("android-arm32") == ["qemu-arm"]
    assert names("web-wasm") == ["Node", "Chromium"]
    assert names("ios-arm64") == []


def test_without_a_browser_only_node_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    browser(monkeypatch, "")
    assert names("web-wasm") == ["Node"]


def fake(monkeypatch: pytest.MonkeyPatch) -> RealModel:
    """Return a network whose build and timing do nothing."""
    browser(monkeypatch, "/usr/bin/chromium")
    monkeypatch.setattr(check_models, "_build", lambda model, target, directory, feeds, row: None)
    monkeypatch.setattr(check_models, "_time", lambda *arguments: None)
    monkeypatch.setattr(check_models, "artefact_engine", lambda directory, device: device)
    return RealModel("net", "", "net.onnx", lambda data: {}, lambda run, data, quick: Verdict(quick, str(run)), ())


def test_each_place_has_a_row_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And a failure in one is no failure in the other."""

    def verify(model: RealModel, directory: Path, feeds: object, place: check_models.Place, *rest: object) -> None:
        if place.device == "browser":
            raise OSError("no window")

    monkeypatch.setattr(check_models, "_verify", verify)
    node, chromium = check_models.check(fake(monkeypatch), "web-wasm", tmp_path, 1)
    assert (node.runs_in, node.right, node.said, node.failed) == ("Node", True, "emulator", "")
    assert (chromium.runs_in, chromium.right, chromium.failed) == ("Chromium", None, "verify: no window")


def test_failed_build_is_one_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = fake(monkeypatch)
    monkeypatch.setattr(check_models, "_build", lambda *arguments: 1 / 0)
    (row,) = check_models.check(model, "web-wasm", tmp_path, 1)
    assert row.failed == "build: ZeroDivisionError: division by zero" and row.runs_in == ""


def test_table_names_the_place() -> None:
    head, _, line = markdown([Row("net", "web-wasm", "Chromium", right=True, worst_relative=5e-7, ms=4.5)]).splitlines()
    assert [cell.strip() for cell in head.split("|")][1:5] == ["network", "target", "runs in", "answer"]
    assert [cell.strip() for cell in line.split("|")][1:6] == ["net", "web-wasm", "Chromium", "right", "5.0e-07"]
