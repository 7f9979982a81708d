"""An Android phone's adb daemon for tests, behind the real ``adb`` client: shell, sync, forwarded ports, reboot.

    phone = FakeAdbd(AndroidSystem(...)); adb connect 127.0.0.1:<phone.port>

Faults: ``unplug`` and ``plug``, ``power_off``, ``authorised = False``, ``frozen`` (answers nothing), ``slow_seconds``.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from fakes.adb_wire import AUTH, BIGGEST_PAYLOAD, CLSE, CNXN, OKAY, OPEN, VERSION, WRTE, Closed, Stream, Wire
from fakes.android_system import AndroidSystem

_CHUNK = 64 << 10
_STDOUT, _STDERR, _EXIT = 1, 2, 3


class FakeAdbd:
    """The daemon of one phone, listening on a port of loopback."""

    def __init__(self, system: AndroidSystem) -> None:
        self.system = system
        self.authorised = True
        self.frozen = threading.Event()
        self.slow_seconds = 0.0
        self.reboots = 0
        self.port = 0
        self._listener: socket.socket | None = None
        self._wires: list[Wire] = []
        self._lock = threading.Lock()
        self.plug()

    @property
    def serial(self) -> str:
        """What ``adb devices`` calls it."""
        return f"127.0.0.1:{self.port}"

    def plug(self) -> None:
        """Listen, on the same port as before."""
        with self._lock:
            if self._listener is not None:
                return
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _bind(listener, self.port)
            listener.listen(4)
            self.port, self._listener = listener.getsockname()[1], listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def unplug(self) -> None:
        """Lose every connection and take none; what runs on the phone goes on."""
        with self._lock:
            listener, self._listener = self._listener, None
            wires, self._wires = self._wires, []
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes accept
            listener.close()
        for wire in wires:
            with suppress(OSError):
                wire.sock.shutdown(socket.SHUT_RDWR)

    def power_off(self) -> None:
        """Unplug, and end everything that runs on the phone."""
        self.unplug()
        self.system.kill_all()

    def reboot(self, seconds: float = 0.5) -> None:
        """Go away and come back with nothing running."""
        self.reboots += 1
        self.power_off()
        time.sleep(seconds)
        self.system.uptime(5)
        self.plug()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire = Wire(sock)
            with self._lock:
                if self._listener is not listener:
                    sock.close()
                    return
                self._wires.append(wire)
            threading.Thread(target=self._talk, args=(wire,), daemon=True).start()

    def _talk(self, wire: Wire) -> None:
        streams: dict[int, Stream] = {}
        last = 0
        try:
            while True:
                command, first, second, payload = wire.receive()
                while self.frozen.is_set():
                    time.sleep(0.05)
                if self.slow_seconds:
                    time.sleep(self.slow_seconds)
                if command == CNXN or (command == AUTH and first == 2):  # 2: a signature, of a key not known here
                    self._greet(wire)
                elif command == OPEN:
                    last += 1
                    service = payload.rstrip(b"\0").decode("utf-8", "replace")
                    streams[last] = Stream(wire, last, first, service, self._serve)
                elif command == WRTE and second in streams:
                    streams[second].feed(payload)
                elif command == OKAY and second in streams:
                    streams[second].acknowledged.set()
                elif command == CLSE and second in streams:
                    streams.pop(second).close()
        except Closed:
            pass
        finally:
            for stream in streams.values():
                stream.close()
            wire.sock.close()

    def _greet(self, wire: Wire) -> None:
        if not self.authorised:
            wire.send(AUTH, 1, 0, b"t" * 20)
            return
        properties = self.system.state / "prop"
        model = (properties / "ro.product.model").read_text(encoding="utf-8").strip()
        banner = f"device::ro.product.name=fake;ro.product.model={model};ro.product.device=fake;features=shell_v2,cmd"
        wire.send(CNXN, VERSION, BIGGEST_PAYLOAD, banner.encode())

    def _serve(self, stream: Stream) -> None:
        kind, _, rest = stream.service.partition(":")
        words = kind.split(",")
        if words[0] == "shell":
            self._shell(stream, rest, "v2" in words)
        elif kind == "sync":
            _Sync(self.system, stream).serve()
        elif kind == "tcp":
            _forward(stream, int(rest.split(":")[0]))
        elif kind == "reboot":
            threading.Thread(target=self.reboot, daemon=True).start()

    def _shell(self, stream: Stream, command: str, is_v2: bool) -> None:
        """Run ``command``; what it leaves in the background with its output elsewhere goes on."""
        process = subprocess.Popen(
            self.system.command(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.system.environment(), cwd=self.system.root, start_new_session=True,
        )  # fmt: skip
        stream.on_close = lambda: _end(process)
        lock = threading.Lock()

        def pass_on(kind: int, pipe: int) -> None:
            with suppress(Closed, OSError):
                while data := os.read(pipe, _CHUNK):
                    with lock:
                        stream.write(struct.pack("<BI", kind, len(data)) + data if is_v2 else data)

        assert process.stdout is not None and process.stderr is not None
        threads = [
            threading.Thread(target=pass_on, args=(kind, pipe.fileno()), daemon=True)
            for kind, pipe in ((_STDOUT, process.stdout), (_STDERR, process.stderr))
        ]
        for thread in threads:
            thread.start()
        code = process.wait()
        for thread in threads:
            thread.join()
        process.stdout.close(), process.stderr.close()
        if is_v2:
            stream.write(struct.pack("<BIB", _EXIT, 1, code & 255 if code >= 0 else 128 - code))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command whose stream the host has closed, as adbd hangs up."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGHUP)


def _forward(stream: Stream, port: int) -> None:
    """Pass bytes between the stream and a port of the phone, which is this machine's."""
    try:
        sock = socket.create_connection(("127.0.0.1", port), timeout=5)
    except OSError:
        return
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def back() -> None:
        with suppress(Closed, OSError):
            while data := sock.recv(_CHUNK):
                stream.write(data)
        stream.feed(None)

    def hang_up() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    stream.on_close = hang_up
    threading.Thread(target=back, daemon=True).start()
    try:
        while True:
            sock.sendall(stream.read())
    except (Closed, OSError):
        hang_up()
    finally:
        sock.close()


class _Sync:
    """push, pull and stat."""

    def __init__(self, system: AndroidSystem, stream: Stream) -> None:
        self.system, self.stream = system, stream

    def serve(self) -> None:
        while True:
            word, size = struct.unpack("<4sI", self.stream.read_exactly(8))
            if word == b"QUIT":
                return
            text = self.stream.read_exactly(size).decode("utf-8", "replace")
            if word == b"STAT":
                self._stat(text)
            elif word == b"SEND":
                path, _, mode = text.rpartition(",")
                mode_bits = int(mode) & 0o777  # as adbd does: the owner's bits become everyone's
                self._take(path, mode_bits | (mode_bits >> 3 & 0o070) | (mode_bits >> 6 & 0o007))
            elif word == b"RECV":
                self._give(text)
            else:
                self._fail(f"unknown request {word!r}")

    def _stat(self, path: str) -> None:
        try:
            found = self.system.host_path(path).stat()
        except OSError:
            self.stream.write(b"STAT" + bytes(12))
            return
        self.stream.write(b"STAT" + struct.pack("<3I", found.st_mode, found.st_size, int(found.st_mtime)))

    def _take(self, path: str, mode: int) -> None:
        data = bytearray()
        while True:
            word, size = struct.unpack("<4sI", self.stream.read_exactly(8))
            if word == b"DONE":
                break
            data += self.stream.read_exactly(size)
        try:
            self.system.store(path, bytes(data), mode)
        except OSError as error:
            self._fail(f"couldn't create file: {error.strerror}")
        else:
            self.stream.write(b"OKAY" + bytes(4))

    def _give(self, path: str) -> None:
        try:
            data = Path(self.system.host_path(path)).read_bytes()
        except OSError as error:
            self._fail(f"open failed: {error.strerror}")
            return
        chunks = (data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK))
        self.stream.write(b"".join(b"DATA" + struct.pack("<I", len(c)) + c for c in chunks) + b"DONE" + bytes(4))

    def _fail(self, words: str) -> None:
        self.stream.write(b"FAIL" + struct.pack("<I", len(words)) + words.encode())


def _bind(listener: socket.socket, port: int) -> None:
    """Bind, in a while: an adb server that looks for a phone that is gone may have got the port for its own end."""
    end = time.monotonic() + 10
    while True:
        try:
            return listener.bind(("127.0.0.1", port))
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
