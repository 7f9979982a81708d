"""The tiny model on every device that this machine has: run, time, trace, and how a failure is told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import need_chromium
from tiny import COUNT, EXPECTED, INPUT, WEIGHTS, tiny_artefact

from xnncc.codegen.emulators import find_emulator
from xnncc.device import Device, open_device
from xnncc.errors import BadInput, BadPackage, DeviceError
from xnncc.pack import read_manifest
from xnncc.target import load_target

NAMES = ["host", "linux-arm64", "android-arm64", "android-arm32", "web-wasm"]


def need(name: str) -> None:
    """Skip when what runs the target is not installed."""
    emulator = find_emulator(load_target(name)) if name != "host" else None
    if emulator is not None and emulator.missing:
        pytest.skip(f"{emulator.missing} is missing: {emulator.install}")


@pytest.fixture(scope="module", params=[*NAMES, "browser"])
def placed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Device]:
    """Return the tiny artefact of a target and the device that proves it; or of web-wasm and a browser."""
    target, spec = (request.param, None) if request.param != "browser" else ("web-wasm", "browser")
    if spec:
        need_chromium()
    else:
        need(target)
    folder = tiny_artefact(load_target(target), tmp_path_factory.mktemp(request.param))
    return folder, open_device(spec, read_manifest(folder))


@pytest.mark.parametrize("threads", [1, 2])
def test_runs(placed: tuple[Path, Device], threads: int) -> None:
    folder, device = placed
    (result,) = device.run(folder, [INPUT], threads)
    assert result.shape == (1, COUNT) and result.dtype == np.float32
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-6)  # libms differ by a unit in the last place or two


def test_runs_several_inferences_on_one_open_network(placed: tuple[Path, Device]) -> None:
    folder, device = placed
    steps = [[INPUT], [INPUT[:, ::-1].copy()], [INPUT * 0]]
    results = device.run_stream(folder, steps)
    for (x,), (y,) in zip(steps, results, strict=True):
        np.testing.assert_allclose(y, np.exp(x * WEIGHTS), rtol=1e-6)


def test_times(placed: tuple[Path, Device]) -> None:
    folder, device = placed
    timings = device.time(folder, [INPUT], 1, repeat=5)
    assert len(timings.ms) == 5 and timings.per_op_ms is None
    assert 0 <= timings.min_ms <= timings.median_ms <= timings.p90_ms <= max(timings.ms)


def test_times_each_operator(placed: tuple[Path, Device]) -> None:
    folder, device = placed
    timings = device.time(folder, [INPUT], 1, repeat=3, per_op=True)
    assert timings.per_op_ms is not None and len(timings.per_op_ms) == 2
    assert len(timings.ms) == 3


def test_traces_each_operator(placed: tuple[Path, Device]) -> None:
    folder, device = placed
    traced = list(device.trace(folder, [INPUT], device.manifest["ops"]))
    assert [index for index, _ in traced] == [0, 1]
    np.testing.assert_array_equal(traced[0][1][0].view("float32"), (INPUT * WEIGHTS).ravel())
    np.testing.assert_allclose(traced[1][1][0].view("float32"), EXPECTED.ravel(), rtol=1e-6)


def test_refuses_wrong_inputs(placed: tuple[Path, Device]) -> None:
    folder, device = placed
    with pytest.raises(BadInput, match=r"input 'x:0': its shape is \[64\], expected \[1, 64\]"):
        device.run(folder, [INPUT[0]])
    with pytest.raises(BadInput, match="its type is float64, expected float32"):
        device.run(folder, [INPUT.astype("float64")])
    with pytest.raises(BadInput, match="2 inputs given: the network has 1"):
        device.run(folder, [INPUT, INPUT])


def test_missing_package_is_named(placed: tuple[Path, Device], tmp_path: Path) -> None:
    folder, device = placed
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        if file.suffix != ".xnn":
            (copy / file.name).write_bytes(file.read_bytes())
    with pytest.raises(BadPackage, match="it has no package"):
        device.run(copy, [INPUT])


def test_damaged_package_is_told(placed: tuple[Path, Device], tmp_path: Path) -> None:
    folder, device = placed
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    data = bytearray((tmp_path / "tiny.xnn").read_bytes())
    data[-1] ^= 1
    (tmp_path / "tiny.xnn").write_bytes(data)
    with pytest.raises((DeviceError, BadPackage)) as caught:
        device.run(tmp_path, [INPUT])
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize("name", ["host", "linux-arm64", "android-arm64", "web-wasm"])
def test_crash_names_the_signal(name: str, tmp_path: Path) -> None:
    need(name)
    folder = tiny_artefact(load_target(name), tmp_path, defines=("CRASH",))
    device = open_device(None, read_manifest(folder))
    expected = {"web-wasm": "unreachable", "host": "SIGILL", "linux-arm64": "SIGTRAP|SIGILL"}
    with pytest.raises(DeviceError, match=expected.get(name, "SIGTRAP|SIGILL")):
        device.run(folder, [INPUT])


def test_emulated_cpu_is_the_floor(tmp_path: Path) -> None:
    """An instruction of ARMv8.1 in a kernel ends in SIGILL under the emulated Cortex-A53."""
    need("linux-arm64")
    folder = tiny_artefact(load_target("linux-arm64"), tmp_path, defines=("NEWER_INSTRUCTION",))
    device = open_device(None, read_manifest(folder))
    with pytest.raises(DeviceError, match=r"SIGILL.*lacks an instruction of target 'linux-arm64'"):
        device.run(folder, [INPUT])


def manifest_for(target: str, **more: Any) -> dict[str, Any]:
    return {"target": target, **more}


def test_unknown_device_suggests_the_near_name() -> None:
    with pytest.raises(DeviceError, match="unknown device 'emulater'; did you mean 'emulator'"):
        open_device("emulater", manifest_for("linux-arm64"))


def test_other_architecture_is_no_host() -> None:
    with pytest.raises(
        DeviceError, match=r"built for 'android-arm64' and this machine is Linux on .*--device emulator"
    ):
        open_device("host", manifest_for("android-arm64"))


def test_newer_instructions_are_told_before_they_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xnncc.device.network.host_architecture", lambda: "x86_64")
    monkeypatch.setattr("xnncc.device.network.host_abi", lambda: "x86-64-v3")
    with pytest.raises(DeviceError, match="needs x86-64-v4 instructions and this CPU has x86-64-v3"):
        open_device("host", manifest_for("host", abi="x86-64-v4"))
    open_device("host", manifest_for("host", abi="x86-64-v3"))


def test_target_that_nothing_runs_says_so() -> None:
    with pytest.raises(DeviceError, match="target 'ios-arm64': nothing here runs it"):
        open_device(None, manifest_for("ios-arm64"))
    with pytest.raises(DeviceError, match="no emulator here runs it"):
        open_device("emulator", manifest_for("macos-arm64"))


def test_adb_without_adb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xnncc.device.adb_client.shutil.which", lambda name: None)
    with pytest.raises(DeviceError, match=r"no 'adb' on PATH. Install it: apt-get install adb"):
        open_device("adb:123", manifest_for("android-arm64"))
    with pytest.raises(DeviceError, match="is not for Android"):
        open_device("adb:123", manifest_for("linux-arm64"))


FAKE_ADB = """#!{python}
import os, shutil, subprocess, sys
root = {root!r}
words = sys.argv[1:]
if words[:1] == ["-s"]:
    assert words[1] == "123"
    words = words[2:]
here = lambda path: root + path
if words[0] == "push":
    shutil.copy(words[1], here(words[2]))
elif words[0] == "pull":
    shutil.copy(here(words[1]), words[2])
elif "getprop" in words[1]:
    print("arm64-v8a,armeabi-v7a")
elif words[1].startswith("mkdir"):
    os.makedirs(here(words[1].split()[-1]), exist_ok=True)
elif words[1].startswith("rm -rf "):
    shutil.rmtree(here(words[1].split()[-1]))
else:
    line = words[1].replace("cd /", "cd " + root + "/").replace("./runner", {emulate!r} + " ./runner")
    sys.exit(subprocess.run(line, shell=True).returncode)
"""


def test_adb_drives_the_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in for adb that runs the phone's program under the emulator. No phone was here."""
    import sys

    from xnncc.codegen.emulators import QEMU
    from xnncc.device.shim import bionic_shim

    need("android-arm64")
    target, qemu = load_target("android-arm64"), QEMU["aarch64", "bionic"]
    loader = f"{qemu.root / qemu.loader} --library-path {bionic_shim(target)}"
    emulate = f"{qemu.program} -cpu {qemu.cpu} -L {qemu.root} {loader}"
    root = tmp_path / "phone"
    root.mkdir()
    (tmp_path / "bin").mkdir()
    adb = tmp_path / "bin" / "adb"
    adb.write_text(FAKE_ADB.format(python=sys.executable, root=str(root), emulate=emulate))
    adb.chmod(0o755)
    monkeypatch.setenv("PATH", f"{adb.parent}:{os.environ['PATH']}")
    folder = tiny_artefact(target, tmp_path / "artefact")
    device = open_device("adb:123", read_manifest(folder))
    np.testing.assert_allclose(device.run(folder, [INPUT])[0], EXPECTED, rtol=1e-6)
    assert len(device.time(folder, [INPUT], 1, 3).ms) == 3
    assert len(list(device.trace(folder, [INPUT], device.manifest["ops"]))) == 2
    assert not list((root / "data/local/tmp/xnncc").iterdir())


def test_doctor_tells_about_every_target() -> None:
    from xnncc.codegen.toolchain import describe_toolchains

    facts = describe_toolchains()
    assert {fact.subject for fact in facts} >= set(NAMES)
    assert all(fact.found or fact.install for fact in facts)
    json.dumps([vars(fact) for fact in facts])
