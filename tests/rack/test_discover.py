"""Which phones are there, why one cannot be used, and what changed."""

from __future__ import annotations

import socket

import pytest

from xnncc.device.adb_client import is_network, parse_devices
from xnncc.errors import BadInput, DeviceError
from xnncc.rack.discover import Found, Watcher, found_agents, split_spec

LISTED = """* daemon not running; starting now at tcp:5037
* daemon started successfully
List of devices attached
R5CT10                 device usb:1-4 product:a52 model:SM_A525F device:a52 transport_id:1
0123456789             unauthorized usb:1-2 transport_id:3
XYZ                    no permissions (user in plugdev group; are your udev rules wrong?); see [http://x.y/z] usb:1-5
127.0.0.1:5555         offline transport_id:2

"""


def test_every_state_that_adb_tells_is_read() -> None:
    phones = parse_devices(LISTED)
    assert [(p.serial, p.state) for p in phones] == [
        ("R5CT10", "device"), ("0123456789", "unauthorized"), ("XYZ", "no permissions"), ("127.0.0.1:5555", "offline")
    ]  # fmt: skip
    assert phones[0].facts["model"] == "SM_A525F" and phones[2].facts == {"usb": "1-5"}
    assert [is_network(p.serial) for p in phones] == [False, False, False, True]


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("adb:R5CT10", ("adb", "R5CT10", 0)),
        ("adb:127.0.0.1:5555", ("adb", "127.0.0.1:5555", 0)),
        ("tcp:board.lab:9100", ("tcp", "board.lab", 9100)),
        ("tcp:[::1]:9100", ("tcp", "::1", 9100)),
    ],
)
def test_specs(spec: str, parts: tuple[str, str, int]) -> None:
    assert split_spec(spec) == parts


@pytest.mark.parametrize(
    "spec", ["", "adb:", "adb:a b", "tcp:host", "tcp:host:0", "tcp:host:65536", "tcp::9100", "usb:1"]
)
def test_wrong_specs_are_told(spec: str) -> None:
    with pytest.raises(BadInput, match="Write adb:SERIAL or tcp:HOST:PORT"):
        split_spec(spec)


def test_an_agent_that_is_not_there_says_so() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        spec = f"tcp:127.0.0.1:{sock.getsockname()[1]}"
        assert found_agents([spec]) == [Found(spec)]
    (gone,) = found_agents([spec])
    assert not gone.is_usable and "nothing answers at 127.0.0.1" in gone.reason and "xnncc-agent" in gone.next


class Cable:
    """What adb would find: a list, or an error."""

    def __init__(self) -> None:
        self.now: list[Found] = []
        self.error: DeviceError | None = None

    def __call__(self) -> list[Found]:
        if self.error:
            raise self.error
        return self.now


def test_changes_over_time() -> None:
    cable = Cable()
    watcher = Watcher(phones=cable)
    assert watcher.poll() == []
    cable.now = [Found("adb:A"), Found("adb:B", "it does not answer adb")]
    assert [(c.kind, c.found.spec) for c in watcher.poll()] == [("appeared", "adb:A"), ("appeared", "adb:B")]
    assert watcher.poll() == []
    cable.now = [Found("adb:B", facts={"usb": "1-4"})]
    assert [(c.kind, c.found.spec, c.found.is_usable) for c in watcher.poll()] == [
        ("changed", "adb:B", True), ("gone", "adb:A", True)
    ]  # fmt: skip
    cable.now = [Found("adb:A"), Found("adb:B")]
    assert [(c.kind, c.found.spec) for c in watcher.poll()] == [("appeared", "adb:A")]


def test_while_adb_itself_fails_nobody_is_gone() -> None:
    cable = Cable()
    cable.now = [Found("adb:A")]
    watcher = Watcher(phones=cable)
    watcher.poll()
    cable.error = DeviceError("device 'adb'", "no 'adb' on PATH")
    assert watcher.poll() == [] and "no 'adb' on PATH" in watcher.problem
    cable.error = None
    assert watcher.poll() == [] and watcher.problem == ""


def test_an_agent_that_is_held_is_left_in_peace() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        sock.settimeout(0.1)
        spec = f"tcp:127.0.0.1:{sock.getsockname()[1]}"
        watcher = Watcher([spec], phones=Cable())
        assert [c.kind for c in watcher.poll(held=[spec])] == ["appeared"]
        with pytest.raises(TimeoutError):
            sock.accept()
        assert watcher.poll() == []
        sock.accept()[0].close()


def test_a_device_that_could_not_be_taken_in_appears_anew() -> None:
    cable = Cable()
    cable.now = [Found("adb:A"), Found("adb:B")]
    watcher = Watcher(phones=cable)
    watcher.poll()
    watcher.look_again("adb:A", 60.0)
    assert watcher.poll() == []
    watcher.look_again("adb:A", 0.0)
    assert [(c.kind, c.found.spec) for c in watcher.poll()] == [("appeared", "adb:A")]
    cable.now = [Found("adb:B")]
    watcher.look_again("adb:A", 0.0)
    assert watcher.poll() == []
