"""The faults do what they say: otherwise the tests that use them prove nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from fakes.faults import FaultyPhone, FaultyWire

from xnncc.device.bench import Fault, Measurement
from xnncc.errors import DeviceError
from xnncc.rack.phone import Batch, Description, Phone, Status

BATCH = Batch("measure", "linux-arm64", {})


@pytest.fixture
def wire() -> Iterator[FaultyWire]:
    """Return a wire to a server that gives back what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(sock: socket.socket) -> None:
        with sock:
            while data := sock.recv(65536):
                sock.sendall(data)

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=echo, args=(sock,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    wire = FaultyWire(listener.getsockname()[1])
    yield wire
    wire.close()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def ask(sock: socket.socket, data: bytes) -> bytes:
    sock.sendall(data)
    back = b""
    while len(back) < len(data) and (more := sock.recv(65536)):
        back += more
    return back


def test_a_wire_that_is_whole_carries_everything(wire: FaultyWire) -> None:
    with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as sock:
        assert ask(sock, bytes(100_000)) == bytes(100_000)


def test_a_cut_wire_refuses_until_it_is_mended(wire: FaultyWire) -> None:
    with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as sock:
        assert ask(sock, b"a") == b"a"
        wire.cut()
        assert sock.recv(1) == b""
    with (
        socket.create_connection(("127.0.0.1", wire.port), timeout=10) as sock,
        pytest.raises((OSError, AssertionError)),
    ):
        assert ask(sock, b"b") == b"b"
    wire.mend()
    with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as sock:
        assert ask(sock, b"c") == b"c"


def test_a_wire_breaks_once_after_so_many_bytes(wire: FaultyWire) -> None:
    wire.drop_after = 5
    with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as sock:
        assert ask(sock, b"0123456789") == b"01234"
    with socket.create_connection(("127.0.0.1", wire.port), timeout=10) as sock:
        assert ask(sock, b"0123456789") == b"0123456789"


def test_a_silent_wire_answers_nothing(wire: FaultyWire) -> None:
    wire.silent = True
    with socket.create_connection(("127.0.0.1", wire.port), timeout=0.2) as sock, pytest.raises(TimeoutError):
        ask(sock, b"a")


class TenKernels(Phone):
    """A phone whose kernels take as many microseconds as their number."""

    def describe(self) -> Description:
        return Description("ten", "soc", "arm64-v8a", "")

    def status(self) -> Status:
        return Status(celsius=36.0, load=0.5)

    def measure(self, batch, blobs):
        yield from (Measurement(i, (1000 * i,), 0.0) for i in range(10))

    def run(self, batch, blobs, output):
        return {}

    def recover(self, rung):
        return rung == "reconnect"

    def close(self) -> None:
        pass


def test_kernels_crash_and_the_phone_is_lost_where_they_should() -> None:
    phone = FaultyPhone(TenKernels())
    phone.crash_every = 4
    results = list(phone.measure(BATCH, {}))
    assert [r.candidate for r in results if isinstance(r, Fault)] == [3, 7]
    phone.drop_every = 15
    seen = []
    with pytest.raises(DeviceError, match="lost at measurement 15"):
        for result in phone.measure(BATCH, {}):
            seen.append(result.candidate)
    assert seen == [0, 1, 2, 3]


def test_a_lying_and_a_lost_phone() -> None:
    phone = FaultyPhone(TenKernels())
    phone.celsius = 20.0
    assert phone.status() == Status(celsius=20.0, load=0.5)
    assert phone.recover("reconnect") and not phone.recover("reboot")
    phone.is_gone = True
    for call in (phone.describe, phone.status, lambda: phone.recover("reboot"), lambda: list(phone.measure(BATCH, {}))):
        with pytest.raises(DeviceError, match="it is gone"):
            call()
    assert phone.recovered == ["reconnect", "reboot", "reboot"]


def test_a_hanging_phone_goes_on_when_released() -> None:
    phone = FaultyPhone(TenKernels())
    phone.hang.set()
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.extend(phone.measure(BATCH, {})), daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive() and not results
    phone.hang.clear()
    thread.join(10)
    assert len(results) == 10
