"""The real adb client against the fake phone: what xnncc's own calls of adb give, and how each failure is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.android_system import AndroidSystem
from fakes.fake_adbd import FakeAdbd

from xnncc.device.adb_client import Adb, attached
from xnncc.errors import DeviceError
from xnncc.rack.discover import Watcher, found_phones

PROPERTIES = {"ro.product.model": "Fake", "ro.product.cpu.abilist": "arm64-v8a,armeabi-v7a"}


@pytest.fixture
def phone(adb_server: None, tmp_path: Path) -> Iterator[FakeAdbd]:
    phone = FakeAdbd(AndroidSystem(tmp_path / "phone", [], PROPERTIES))
    Adb().call("connect", phone.serial)
    yield phone
    Adb().outcome("disconnect", phone.serial)
    phone.power_off()


def test_shell_gives_output_and_exit_code(phone: FakeAdbd) -> None:
    adb = Adb(phone.serial)
    assert adb.abis() == ["arm64-v8a", "armeabi-v7a"]
    assert adb.outcome("shell", "echo out; echo err >&2; exit 7") == (7, "out\n", "err\n")
    assert adb.outcome("shell", "kill -SEGV $$")[0] == 128 + 11
    assert len(adb.shell("head -c 1000000 /dev/zero | tr '\\0' x")) == 1000000
    with pytest.raises(DeviceError, match="no such thing"):
        adb.shell("echo no such thing >&2; false")


def test_files_go_there_and_back(phone: FakeAdbd, tmp_path: Path) -> None:
    adb, path = Adb(phone.serial), "/data/local/tmp/deep/file"
    data = bytes(range(256)) * 3000
    (tmp_path / "in").write_bytes(data)
    adb.push(tmp_path / "in", path)
    adb.pull(path, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data
    assert adb.shell(f"wc -c < {path}").strip() == str(len(data))
    with pytest.raises(DeviceError, match=r"adb:127\.0\.0\.1"):
        adb.pull("/data/local/tmp/nothing", tmp_path / "none")


def test_a_forwarded_port_carries_bytes_both_ways(phone: FakeAdbd) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def echo() -> None:
            sock, _ = listener.accept()
            while data := sock.recv(65536):
                sock.sendall(data)
            sock.close()

        threading.Thread(target=echo, daemon=True).start()
        adb = Adb(phone.serial)
        local = adb.forward(listener.getsockname()[1])
        data = bytes(range(256)) * 4000
        with socket.create_connection(("127.0.0.1", local), timeout=10) as sock:
            threading.Thread(target=sock.sendall, args=(data,), daemon=True).start()
            back = b""
            while len(back) < len(data):
                back += sock.recv(65536)
        assert back == data
        assert phone.serial in adb.call("forward", "--list")
        adb.unforward(local)
        assert phone.serial not in adb.call("forward", "--list")


def test_what_is_left_running_outlives_the_shell_but_not_the_phone(phone: FakeAdbd) -> None:
    Adb(phone.serial).shell("(nohup sleep 100 </dev/null >/dev/null 2>&1 &)")
    assert len(phone.system.processes()) == 1
    phone.power_off()
    assert phone.system.processes() == []


def test_an_unplugged_phone_is_told_and_comes_back(phone: FakeAdbd) -> None:
    phone.unplug()
    spec = f"adb:{phone.serial}"
    wait_for(lambda: next(f for f in found_phones() if f.spec == spec).reason == "it does not answer adb")
    with pytest.raises(DeviceError, match=r"it does not answer adb. Plug it in again"):
        Adb(phone.serial).shell("true")
    phone.plug()
    Adb().call("disconnect", phone.serial)
    with pytest.raises(DeviceError, match=r"it is not attached. Plug it in"):
        Adb(phone.serial).shell("true")
    Adb().call("connect", phone.serial)
    assert next(f for f in found_phones() if f.spec == spec).is_usable
    Adb(phone.serial).shell("true")


def test_the_watcher_sees_it_go_and_come_back(phone: FakeAdbd) -> None:
    spec, watcher = f"adb:{phone.serial}", Watcher()

    def changes() -> list[tuple[str, bool]]:
        return [(change.kind, change.found.is_usable) for change in watcher.poll() if change.found.spec == spec]

    assert changes() == [("appeared", True)] and changes() == []
    phone.unplug()
    seen: list[tuple[str, bool]] = []
    wait_for(lambda: seen.extend(changes()) or seen)
    assert seen == [("changed", False)]
    Adb().call("disconnect", phone.serial)
    assert changes() == [("gone", False)]
    phone.plug()
    Adb().call("connect", phone.serial)
    assert changes() == [("appeared", True)]


def test_a_phone_that_has_not_allowed_this_computer(phone: FakeAdbd) -> None:
    Adb().call("disconnect", phone.serial)
    phone.authorised = False
    Adb().call("connect", phone.serial)
    (state,) = [p.state for p in attached() if p.serial == phone.serial]
    assert state == "unauthorized"
    with pytest.raises(DeviceError, match=r"has not allowed this computer. Unlock the phone"):
        Adb(phone.serial).shell("true")


def test_a_phone_that_hangs_costs_the_deadline(phone: FakeAdbd) -> None:
    adb = Adb(phone.serial)
    phone.frozen.set()
    with pytest.raises(DeviceError, match=r"'adb shell true' did not end within 0.5 s"):
        adb.call("shell", "true", seconds=0.5)
    phone.frozen.clear()
    adb.shell("true")


def wait_for(claim: object) -> None:
    """Wait until ``claim()`` holds; ten seconds are far more than adb needs."""
    for _ in range(200):
        if claim():  # type: ignore[operator]
            return
        threading.Event().wait(0.05)
    raise AssertionError("it never came true")
