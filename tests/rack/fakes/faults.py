"""Faults on demand: a wire between broker and agent that breaks, and a phone whose every n-th answer goes wrong."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from xnncc.device.bench import Fault, Measurement
from xnncc.errors import DeviceError
from xnncc.rack.phone import Batch, Description, Phone, Status


class FaultyWire:
    """A port of loopback that leads to ``target`` (a port, too), until told otherwise.

    ``cut`` breaks every connection and refuses new ones until ``mend``; ``silent`` lets bytes vanish both ways;
    ``delay_seconds`` holds each piece back; ``drop_after``: breaks one connection after so many bytes of the agent's.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.silent = False
        self.delay_seconds = 0.0
        self.drop_after: int | None = None
        self._is_cut = False
        self._socks: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break what is there, refuse what comes."""
        with self._lock:
            self._is_cut = True
            socks, self._socks = self._socks, []
        for sock in socks:
            _end(sock)

    def mend(self) -> None:
        """Let new connections through again."""
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        """Cut for good."""
        self.cut()
        _end(self._listener)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                if self._listener.fileno() < 0:
                    return
                with suppress(OSError, UnboundLocalError):
                    near.close()
                continue
            with self._lock:
                if self._is_cut:
                    near.close(), far.close()
                    continue
                self._socks += [near, far]
            for sock in (near, far):
                sock.settimeout(None)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_agents: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                time.sleep(self.delay_seconds)
                if self.silent:
                    continue
                if is_agents and self.drop_after is not None:
                    if len(data) >= self.drop_after:
                        sink.sendall(data[: self.drop_after])
                        self.drop_after = None
                        break
                    self.drop_after -= len(data)
                sink.sendall(data)
        _end(source), _end(sink)


def _end(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


class FaultyPhone(Phone):
    """``phone`` with faults. Counting starts at 1; 0 means never.

    ``crash_every``: that measurement becomes a kernel's crash. ``drop_every``: the phone is lost there (DeviceError).
    ``slow_seconds``: each one takes longer. ``hang``: while set, a measurement does not come. ``celsius``: what it says
    of its temperature, whatever is true. ``is_gone``: every call raises DeviceError.
    """

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.crash_every = self.drop_every = 0
        self.slow_seconds = 0.0
        self.hang = threading.Event()
        self.celsius: float | None = None
        self.is_gone = False
        self.recovered: list[str] = []
        self._count = 0

    def describe(self) -> Description:
        """See Phone."""
        self._be_there()
        return self.phone.describe()

    def status(self) -> Status:
        """See Phone."""
        self._be_there()
        status = self.phone.status()
        return status if self.celsius is None else replace(status, celsius=self.celsius)

    def measure(self, batch: Batch, blobs: Mapping[str, Path]) -> Iterator[Measurement | Fault]:
        """See Phone."""
        for result in self.phone.measure(batch, blobs):
            while self.hang.is_set():
                time.sleep(0.02)
            time.sleep(self.slow_seconds)
            self._be_there()
            self._count += 1
            if self.drop_every and self._count % self.drop_every == 0:
                raise DeviceError("device 'faulty'", f"it is lost at measurement {self._count}")
            if self.crash_every and self._count % self.crash_every == 0:
                yield Fault(result.candidate, "crash", "ended by SIGSEGV")
            else:
                yield result

    def run(self, batch: Batch, blobs: Mapping[str, Path], output: Path) -> dict[str, object]:
        """See Phone."""
        self._be_there()
        return self.phone.run(batch, blobs, output)

    def recover(self, rung: str) -> bool:
        """See Phone; kept in ``recovered``."""
        self.recovered.append(rung)
        self._be_there()
        return self.phone.recover(rung)

    def close(self) -> None:
        """See Phone."""
        self.phone.close()

    def _be_there(self) -> None:
        if self.is_gone:
            raise DeviceError("device 'faulty'", "it is gone")
