"""The transport of adb, device side: packets of 24 bytes and a payload, streams with one write in flight each.

What docs of AOSP's packages/modules/adb say (protocol.txt, SERVICES.TXT, SYNC.TXT); nothing of its code.
"""

from __future__ import annotations

import queue
import socket
import struct
import threading
from collections.abc import Callable

CNXN, AUTH, OPEN, OKAY, WRTE, CLSE = (
    int.from_bytes(word, "little") for word in (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"WRTE", b"CLSE")
)
VERSION = 0x01000001  # from here on nobody checks the payload's sum
BIGGEST_PAYLOAD = 256 << 10
_ACK_SECONDS = 60.0


class Closed(Exception):
    """The other side has gone."""


class Wire:
    """One connection of the host's adb server."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._lock = threading.Lock()

    def receive(self) -> tuple[int, int, int, bytes]:
        """Return command, two arguments and payload. Raises: Closed."""
        command, first, second, size, _, magic = struct.unpack("<6I", self._exactly(24))
        if magic != command ^ 0xFFFFFFFF or size > BIGGEST_PAYLOAD:
            raise Closed
        return command, first, second, self._exactly(size)

    def send(self, command: int, first: int, second: int, payload: bytes = b"") -> None:
        """Raises: Closed."""
        header = struct.pack("<6I", command, first, second, len(payload), 0, command ^ 0xFFFFFFFF)
        try:
            with self._lock:
                self.sock.sendall(header + payload)
        except OSError:
            raise Closed from None

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                more = self.sock.recv(count - len(data))
            except OSError:
                raise Closed from None
            if not more:
                raise Closed
            data += more
        return bytes(data)


class Stream:
    """One service that the host opened: what it wrote comes out of ``read``; ``write`` waits for the host's OKAY."""

    def __init__(self, wire: Wire, own: int, other: int, service: str, serve: Callable[[Stream], None]) -> None:
        self.wire, self.own, self.other, self.service = wire, own, other, service
        self.acknowledged = threading.Event()
        self.closed = threading.Event()
        self.on_close: Callable[[], None] = lambda: None
        self._incoming: queue.Queue[bytes | None] = queue.Queue()
        self._rest = b""
        threading.Thread(target=self._run, args=(serve,), daemon=True).start()

    def _run(self, serve: Callable[[Stream], None]) -> None:
        try:
            self.wire.send(OKAY, self.own, self.other)
            serve(self)
            self.wire.send(CLSE, self.own, self.other)
        except Closed:
            pass
        finally:
            self.close()

    def feed(self, data: bytes | None) -> None:
        """Take what the host wrote; None: it has closed."""
        self._incoming.put(data)
        if data is None:
            self.closed.set()
            self.acknowledged.set()
            self.on_close()

    def read(self) -> bytes:
        """Return what the host wrote next and let it write more. Raises: Closed."""
        data = self._incoming.get()
        if data is None:
            raise Closed
        self.wire.send(OKAY, self.own, self.other)
        return data

    def read_exactly(self, count: int) -> bytes:
        """Return the next ``count`` bytes. Raises: Closed."""
        while len(self._rest) < count:
            self._rest += self.read()
        data, self._rest = self._rest[:count], self._rest[count:]
        return data

    def write(self, data: bytes) -> None:
        """Raises: Closed."""
        for at in range(0, len(data), BIGGEST_PAYLOAD // 2):
            self.acknowledged.clear()
            if self.closed.is_set():
                raise Closed
            self.wire.send(WRTE, self.own, self.other, data[at : at + BIGGEST_PAYLOAD // 2])
            if not self.acknowledged.wait(_ACK_SECONDS) or self.closed.is_set():
                raise Closed

    def close(self) -> None:
        """End the service, too, when the connection is lost."""
        if not self.closed.is_set():
            self.feed(None)
