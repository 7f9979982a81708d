"""Same input, same flags, same bytes: nothing of the machine, the folder, the time or hash seeds gets in."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import xnncc
from small_network import small_network

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("target", ["host", "android-arm64", "web-wasm", "ios-arm64"])
def test_two_builds_have_the_same_bytes(tmp_path: Path, target: str) -> None:
    folders = []
    for run, seed in (("one", "1"), ("the other", "2")):
        place = tmp_path / run
        place.mkdir()
        model = small_network(place / "small.onnx")
        ended = xnncc("build", model, "--target", target, "-o", "out", "--no-verify", cwd=place, PYTHONHASHSEED=seed)
        assert ended.code == 0, ended.stderr
        folders.append(place / "out")
    first, second = ({str(p.relative_to(f)): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def test_artefact_names_no_place_of_this_machine(tmp_path: Path) -> None:
    place = tmp_path / "a-telling-folder-name"
    place.mkdir()
    model = small_network(place / "small.onnx")
    assert xnncc("build", model, "--target", "host", "-o", "out", "--no-verify", cwd=place).code == 0
    told = [p.name for p in (place / "out").rglob("*") if p.is_file() and b"a-telling-folder-name" in p.read_bytes()]
    assert told == []
