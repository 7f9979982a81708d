"""``--device adb:SERIAL``: whole networks on a phone behind the real adb client."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.emulated_phone import EmulatedAndroid
from tiny import EXPECTED, INPUT, tiny_artefact

from xnncc.device import open_device
from xnncc.errors import DeviceError
from xnncc.pack import read_manifest
from xnncc.target import load_target


def test_runs_times_and_traces(android: EmulatedAndroid, tmp_path: Path) -> None:
    folder = tiny_artefact(load_target("android-arm64"), tmp_path / "artefact")
    device = open_device(android.spec, read_manifest(folder))
    np.testing.assert_allclose(device.run(folder, [INPUT])[0], EXPECTED, rtol=1e-6)
    assert len(device.time(folder, [INPUT], 1, 3).ms) == 3
    assert [index for index, _ in device.trace(folder, [INPUT], device.manifest["ops"])] == [0, 1]
    assert not list(android.system.host_path("/data/local/tmp/xnncc").iterdir())


def test_a_crash_names_the_signal(android: EmulatedAndroid, tmp_path: Path) -> None:
    folder = tiny_artefact(load_target("android-arm64"), tmp_path / "artefact", defines=("CRASH",))
    with pytest.raises(DeviceError, match=r"SIGTRAP|SIGILL"):
        open_device(android.spec, read_manifest(folder)).run(folder, [INPUT])


def test_another_abi_and_a_phone_that_is_gone_are_told(android: EmulatedAndroid, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="it runs arm64-v8a and not armeabi-v7a"):
        open_device(android.spec, {"target": "android-arm32"})
    android.close()
    with pytest.raises(DeviceError, match="it is not attached"):
        open_device(android.spec, {"target": "android-arm64"})
