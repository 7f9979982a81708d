"""A phone through the real adb client: the rack's batches, each rung of the ladder, and what is left behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fakes.batches import kernels, network, stuck
from fakes.emulated_phone import SOC, EmulatedAndroid
from tiny import EXPECTED

from xnncc.device.adb_agent import FOLDER
from xnncc.device.adb_client import Adb
from xnncc.device.bench import Fault, Measurement
from xnncc.errors import DeviceError
from xnncc.rack.adb_phone import AdbPhone
from xnncc.rack.open_phone import open_phone
from xnncc.rack.phone import JobFailed

TARGET = "android-arm64"


@pytest.fixture
def phone(android: EmulatedAndroid) -> Iterator[AdbPhone]:
    phone = open_phone(android.spec, may_reboot=True)
    assert isinstance(phone, AdbPhone)
    yield phone
    phone.close()


def forwarded(android: EmulatedAndroid) -> list[str]:
    """Return the forwards of this phone that adb knows."""
    return [line for line in Adb().call("forward", "--list").splitlines() if android.daemon.serial in line]


def test_it_says_who_it_is(phone: AdbPhone, android: EmulatedAndroid) -> None:
    who = phone.describe()
    assert (who.serial, who.key) == ("phone-1", f"{SOC}-arm64-v8a")
    assert who.core_khz == android.sysfs.core_khz and who.system.startswith("Android 14 xnncc/emulated")
    assert android.agents() == []  # nothing is started only to ask for its name


def test_it_says_how_it_is_from_the_agent_and_from_android(phone: AdbPhone, android: EmulatedAndroid) -> None:
    how = phone.status()
    assert (how.celsius, how.governor, how.load, how.screen_on, how.throttled) == (38.0, "schedutil", 1, True, False)
    android.system.screen(on=False)
    assert phone.status().screen_on is True  # a screen that has gone dark is woken
    android.system.screen(on=False, wakes=False)
    android.system.thermal(status=3, celsius=66.0)
    android.sysfs.celsius(50.0)
    how = phone.status()
    assert (how.celsius, how.screen_on, how.throttled) == (66.0, False, True)


def test_candidates_are_measured_and_faults_told(phone: AdbPhone, android: EmulatedAndroid, tmp_path: Path) -> None:
    batch, blobs = kernels(tmp_path, TARGET, crash=[1], wrong=[2])
    results = {r.candidate: r for r in phone.measure(batch, blobs)}
    assert isinstance(results[1], Fault) and results[1].words == "ended by SIGSEGV"
    good, wrong = results[0], results[2]
    assert isinstance(good, Measurement) and isinstance(wrong, Measurement)
    assert good.error == 0 and wrong.error > 0.01
    assert len(phone.outputs) > 0 and phone.facts["before"]


def test_a_network_runs(phone: AdbPhone, tmp_path: Path) -> None:
    batch, blobs = network(tmp_path, TARGET)
    phone.run(batch, blobs, tmp_path)
    found = np.frombuffer((tmp_path / "out.bin").read_bytes(), "float32")
    np.testing.assert_allclose(found, EXPECTED.ravel(), rtol=1e-6)
    batch, blobs = network(tmp_path / "broken", TARGET, defines=("CRASH",))
    with pytest.raises(JobFailed, match=rf"the network on {phone.name}: it was ended by"):
        phone.run(batch, blobs, tmp_path)


def test_closed_it_leaves_nothing_but_the_cache(phone: AdbPhone, android: EmulatedAndroid, tmp_path: Path) -> None:
    batch, blobs = kernels(tmp_path, TARGET)
    list(phone.measure(batch, blobs))
    assert len(forwarded(android)) == 1
    phone.close()
    assert android.agents() == [] and forwarded(android) == []
    assert [p.name for p in android.system.host_path(FOLDER).iterdir()] == ["cache"]
    assert android.system.setting("stay_on_while_plugged_in") is None
    assert len(list(phone.measure(batch, blobs))) == 4  # and can be opened again


def test_an_agent_that_is_killed_is_started_again(phone: AdbPhone, android: EmulatedAndroid, tmp_path: Path) -> None:
    batch, blobs = stuck(tmp_path / "stuck", TARGET)
    results = phone.measure(batch, blobs)
    next(results)
    android.kill()
    with pytest.raises(DeviceError, match=rf"device '{android.spec}'"):
        list(results)
    assert phone.recover("restart-agent") is True
    batch, blobs = kernels(tmp_path, TARGET)
    assert len(list(phone.measure(batch, blobs))) == 4


def test_a_phone_that_is_unplugged_comes_back_with_reconnect(
    phone: AdbPhone, android: EmulatedAndroid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xnncc.rack.adb_phone._BACK_SECONDS", 0.5)
    batch, blobs = kernels(tmp_path, TARGET)
    list(phone.measure(batch, blobs))
    android.daemon.unplug()
    with pytest.raises(DeviceError):
        list(phone.measure(batch, blobs))
    with pytest.raises(DeviceError, match=r"it did not come back within 0.5 s. Look at the phone"):
        phone.recover("reconnect")
    android.daemon.plug()
    assert phone.recover("reconnect") is True
    assert len(list(phone.measure(batch, blobs))) == 4
    assert len(forwarded(android)) == 1


def test_a_hanging_phone_is_rebooted_when_that_is_allowed(
    phone: AdbPhone, android: EmulatedAndroid, tmp_path: Path
) -> None:
    batch, blobs = kernels(tmp_path, TARGET)
    assert phone.status().celsius == 38.0
    assert phone.recover("reboot") is True
    assert android.daemon.reboots == 1
    assert len(list(phone.measure(batch, blobs))) == 4
    other = open_phone(android.spec)
    assert other.recover("reboot") is False and android.daemon.reboots == 1
    assert other.recover("pray") is False


def test_a_broker_that_comes_back_ends_what_the_last_one_left_running(
    phone: AdbPhone, android: EmulatedAndroid, tmp_path: Path
) -> None:
    results = phone.measure(*stuck(tmp_path / "stuck", TARGET))
    next(results)
    left = set(android.agents())
    assert len(left) >= 2  # the agent, and its children in the middle of a job
    again = open_phone(android.spec)
    batch, blobs = kernels(tmp_path, TARGET)
    assert len(list(again.measure(batch, blobs))) == 4
    assert not left & set(android.agents())
    with pytest.raises(DeviceError):
        list(results)
    again.close()


def test_a_hanging_agent_is_replaced(phone: AdbPhone, android: EmulatedAndroid) -> None:
    phone.timeout = 0.5
    phone.status()
    (old,) = [pid for pid in android.agents() if _is_first(pid)]
    android.kill(signal.SIGSTOP)
    assert phone.status().celsius == 38.0
    assert old not in android.agents()


def _is_first(pid: int) -> bool:
    """Whether the process is the agent itself and no child of one."""
    words = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").split()
    parent = words[words.index("PPid:") + 1]
    return b"xnncc-rack" not in Path(f"/proc/{parent}/cmdline").read_bytes()


def test_an_adb_server_that_was_ended_is_started_again(
    phone: AdbPhone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, blobs = kernels(tmp_path, TARGET)
    list(phone.measure(batch, blobs))
    monkeypatch.setenv("HOME", str(tmp_path))  # the new server's key
    Adb().call("kill-server")
    assert len(list(phone.measure(batch, blobs))) == 4
