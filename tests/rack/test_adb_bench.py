"""``xnncc tune --device adb:SERIAL``: candidates on a phone behind the real adb client."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.emulated_phone import SOC, EmulatedAndroid
from fakes.known_kernels import known_kernels

from xnncc.device.adb_agent import FOLDER
from xnncc.device.adb_client import Adb
from xnncc.device.bench import Dump, Fault, open_bench
from xnncc.errors import DeviceError
from xnncc.target import load_target

TARGET = load_target("android-arm64")


def test_candidates_are_measured_and_nothing_is_left(android: EmulatedAndroid, tmp_path: Path) -> None:
    library, groups = known_kernels(TARGET, tmp_path, crash=[2])
    bench = open_bench(android.spec, TARGET)
    assert bench.description == SOC.upper() and bench.times_count
    dump = Dump()
    results = {r.candidate: r for r in bench.measure(library, groups, 3, dump=dump)}
    assert sorted(results) == [0, 1, 2, 3] and [k for k, r in results.items() if isinstance(r, Fault)] == [2]
    assert len(dump.data) >= 4 * 64
    bench.close()
    assert android.agents() == [] and android.daemon.serial not in Adb().call("forward", "--list")
    assert [p.name for p in android.system.host_path(FOLDER).iterdir()] == ["cache"]


def test_what_it_cannot_run_is_told_before_anything_is_sent(android: EmulatedAndroid) -> None:
    with pytest.raises(DeviceError, match=r"is not for Android. Use --target android-arm64"):
        open_bench(android.spec, load_target("linux-arm64"))
    with pytest.raises(DeviceError, match="it runs arm64-v8a and not armeabi-v7a"):
        open_bench(android.spec, load_target("android-arm32"))
    assert not android.system.host_path(FOLDER).exists()


def test_a_phone_that_does_not_start_the_agent_is_left_clean(android: EmulatedAndroid) -> None:
    android.system.is_full = True
    with pytest.raises(DeviceError, match="No space left on device"):
        open_bench(android.spec, TARGET)
    assert android.agents() == []
