"""The browser device where it differs from the others; test_devices.py has what is the same."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from chromium import need_chromium
from tiny import INPUT, tiny_artefact

from xnncc.device import Device, browser, open_device
from xnncc.errors import BadPackage, DeviceError
from xnncc.pack import read_manifest
from xnncc.target import load_target


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artefact(load_target("web-wasm"), tmp_path_factory.mktemp("web"))


@pytest.fixture
def device(folder: Path) -> Device:
    need_chromium()
    return open_device("browser", read_manifest(folder))


def impostor(device: Device, tmp_path: Path, script: str) -> None:
    """Let ``device`` start a shell script in the browser's place."""
    program = tmp_path / "chromium"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    device.program = str(program)  # type: ignore[attr-defined]


def browsers() -> list[psutil.Process]:
    """Return the living processes of the browser that this process started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "chrom" in process.name() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_same_bytes_as_in_node(device: Device, folder: Path) -> None:
    try:
        node = open_device("emulator", read_manifest(folder))
    except DeviceError as error:
        pytest.skip(str(error))
    np.testing.assert_array_equal(device.run(folder, [INPUT])[0], node.run(folder, [INPUT])[0])
    ops = device.manifest["ops"]
    for ours, theirs in zip(device.trace(folder, [INPUT], ops), node.trace(folder, [INPUT], ops), strict=True):
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_clock_is_fine_enough(device: Device, folder: Path) -> None:
    """An isolated page has a clock of 5 us; without isolation the ramp of 100 us would show here."""
    steps = {round(ms * 1000) % 100 for ms in device.time(folder, [INPUT], 1, repeat=50).ms}
    assert steps - {0}


def test_leaves_no_process(device: Device, folder: Path) -> None:
    device.run(folder, [INPUT])
    deadline = time.monotonic() + 10
    while browsers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert browsers() == []


def test_module_is_a_part_of_the_artefact(device: Device, folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        if file.suffix != ".mjs":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(BadPackage, match=r"it has no binding \(\*\.mjs\)"):
        device.run(tmp_path, [INPUT])


def test_trap_is_told(tmp_path: Path) -> None:
    need_chromium()
    folder = tiny_artefact(load_target("web-wasm"), tmp_path, defines=("CRASH",))
    with pytest.raises(DeviceError, match="unreachable"):
        open_device("browser", read_manifest(folder)).run(folder, [INPUT])


def test_crashed_page_is_told(device: Device, folder: Path) -> None:
    """As the system kills the page's process when memory runs out."""

    told = threading.Event()

    def kill() -> None:
        while not told.wait(1):
            for process in browsers():
                with suppress(psutil.NoSuchProcess):
                    if "--type=renderer" in process.cmdline():
                        process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        # Killed before its script runs, it cannot be told from a page that was never opened.
        with pytest.raises(DeviceError, match=r"the page crashed|the page did not begin"):
            device.time(folder, [INPUT], 1, repeat=10**9)
    finally:
        told.set()
        killer.join()


def test_browser_that_ends_is_told(device: Device, folder: Path, tmp_path: Path) -> None:
    impostor(device, tmp_path, "echo '[1:1:FATAL:zygote.cc] no room here' >&2; echo bye; exit 7")
    with pytest.raises(DeviceError, match=r"ended with exit code 7: \[1:1:FATAL:zygote.cc\] no room here.*apt-get"):
        device.run(folder, [INPUT])


def test_browser_that_does_nothing_is_told(
    device: Device, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "_START_S", 0.5)
    impostor(device, tmp_path, "sleep 100")
    with pytest.raises(DeviceError, match=r"the page did not begin within 1 s"):
        device.run(folder, [INPUT])


def test_page_that_never_answers_is_told(device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_RUN_S", 3.0)
    with pytest.raises(DeviceError, match=r"did not (answer|open the page) within 3 s"):
        device.time(folder, [INPUT], 1, repeat=10**9)


def test_program_that_cannot_start_is_told(device: Device, folder: Path, tmp_path: Path) -> None:
    impostor(device, tmp_path, "")
    (tmp_path / "chromium").chmod(0o644)
    with pytest.raises(DeviceError, match=r"it cannot be started: Permission denied.*apt-get install chromium"):
        device.run(folder, [INPUT])


def test_missing_browser_names_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xnncc.codegen.emulators.shutil.which", lambda name: None)
    with pytest.raises(DeviceError, match=r"chromium is missing\. Install it: apt-get install chromium"):
        open_device("browser", {"target": "web-wasm"})


def test_runs_web_artefacts_only() -> None:
    with pytest.raises(DeviceError, match="target 'linux-arm64' in a browser: it is not WebAssembly"):
        open_device("browser", {"target": "linux-arm64"})
