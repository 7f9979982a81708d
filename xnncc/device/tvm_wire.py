"""TVM's RPC protocol 0.8.0 and its tracker (TVM 0.27), with a deadline on every word: TVM's own client has none.

    host, port, match = Tracker("127.0.0.1", 9190).request(key, seconds)
    with TvmSession(host, port, match, limit_s) as session:
        session.upload("k.so", data);  kernel = session.kernel("k.so", "main");  session.call(kernel, 1, ...)

Only what measuring needs: numbers, texts, bytes and tensors of bytes. Everything raises DeviceError when the other side
is silent, gone or not what it should be.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from xnncc.errors import DeviceError

_TRACKER_MAGIC, _SERVER_MAGIC, _WRONG_KEY = 0x2F271, 0xFF271, 0xFF273
_REQUEST, _SUMMARY = 4, 6
_MOST_MESSAGE = 1 << 20  # as the tracker itself has it
_MOST_PACKET = 1 << 28
_INIT, _CALL, _RETURN, _EXCEPTION, _COPY_FROM, _COPY_TO, _COPY_ACK, _FUNCTION, _ALLOCATE = 2, 3, 4, 5, 6, 7, 8, 9, 13
_NONE, _INT, _FLOAT, _POINTER, _DTYPE, _DEVICE, _TENSOR, _TEXT, _BYTES, _MODULE = 0, 1, 3, 4, 5, 6, 7, 8, 9, 73
_CPU = (1, 0)
_UINT8 = struct.pack("<BBH", 1, 8, 1)


class RemoteError(DeviceError):
    """The server answered a call with an exception; the session goes on."""


class Silence(DeviceError):
    """Nothing came before the deadline."""


class _Line:
    """A TCP connection of which every word has a deadline."""

    def __init__(self, what: str, host: str, port: int, seconds: float) -> None:
        self.what = what
        try:
            self.socket = socket.create_connection((host, port), seconds)
        except OSError as error:
            raise self.error(f"it cannot be reached: {error.strerror or error}") from None
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def error(self, why: str, next: str = "") -> DeviceError:
        """Return the error of this connection."""
        return DeviceError(self.what, why, next)

    def send(self, data: bytes) -> None:
        """Raises: DeviceError."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise self.error(f"the connection broke: {error.strerror or error}") from None

    def receive(self, count: int, seconds: float) -> bytes:
        """Return exactly so many bytes. Raises: DeviceError."""
        deadline, pieces = time.monotonic() + seconds, []
        while count:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                piece = self.socket.recv(min(count, 1 << 20))
            except TimeoutError:
                raise Silence(self.what, f"it was silent for {seconds:g} s") from None
            except OSError as error:
                raise self.error(f"the connection broke: {error.strerror or error}") from None
            if not piece:
                raise self.error("it closed the connection")
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def number(self, form: str, seconds: float) -> int:
        """Return the next number of a struct format. Raises: DeviceError."""
        return int(struct.unpack(form, self.receive(struct.calcsize(form), seconds))[0])


class Tracker:
    """TVM's tracker at ``host:port``. Raises: DeviceError."""

    def __init__(self, host: str, port: int, seconds: float = 10.0) -> None:
        self.line = _Line(f"tracker '{host}:{port}'", host, port, seconds)
        self.seconds = seconds
        self.line.send(struct.pack("<i", _TRACKER_MAGIC))
        if self.line.number("<i", seconds) != _TRACKER_MAGIC:
            raise self.line.error("what listens there is no tracker of TVM")

    def _ask(self, message: list[Any], seconds: float) -> Any:
        data = json.dumps(message).encode()
        self.line.send(struct.pack("<i", len(data)) + data)
        length = self.line.number("<i", seconds)
        if not 0 < length <= _MOST_MESSAGE:
            raise self.line.error(f"it announced {length} bytes; a tracker sends at most {_MOST_MESSAGE}")
        try:
            code, answer = json.loads(self.line.receive(length, self.seconds))
        except (ValueError, TypeError):
            raise self.line.error("its answer cannot be read") from None
        if code != 0:
            raise self.line.error(f"it refuses (code {code!r})")
        return answer

    def servers(self) -> dict[str, int]:
        """Return how many servers each key has. Raises: DeviceError."""
        answer = self._ask([_SUMMARY], self.seconds)
        try:
            keys = [str(server["key"]).removeprefix("server:") for server in answer["server_info"]]
        except (KeyError, TypeError):
            raise self.line.error("its summary cannot be read") from None
        return {key: keys.count(key) for key in keys}

    def request(self, key: str, seconds: float) -> tuple[str, int, str]:
        """Return (host, port, what to say there) of the next free server. Raises: DeviceError."""
        try:
            host, port, match = self._ask([_REQUEST, key, "", 1], seconds)
            return str(host), int(port), str(match)
        except (ValueError, TypeError):
            raise self.line.error("it offers a device without an address") from None

    def close(self) -> None:
        """Hang up: a request that waits is taken back."""
        self.line.socket.close()


class TvmSession:
    """A session with a server at ``host:port``, which ends it after ``limit_s``. ``seconds``: for each word of it."""

    def __init__(self, host: str, port: int, match: str, limit_s: int, seconds: float = 60.0) -> None:
        self.line = _Line(f"TVM's server '{host}:{port}'", host, port, seconds)
        self.seconds = seconds
        self._functions: dict[str, int] = {}
        words = f"client:{match} -timeout={limit_s}".encode()
        self.line.send(struct.pack("<ii", _SERVER_MAGIC, len(words)) + words)
        answer = self.line.number("<i", seconds)
        if answer != _SERVER_MAGIC:
            why = "it does not know this key" if answer == _WRONG_KEY else "what listens there is no server of TVM"
            raise self.line.error(why)
        length = self.line.number("<i", seconds)
        if not 0 <= length <= 4096:
            raise self.line.error("its greeting cannot be read")
        self.line.receive(length, seconds)
        self._exchange(struct.pack("<iQ", _INIT, 5) + b"0.8.0" + struct.pack("<i", 0), seconds)

    def __enter__(self) -> TvmSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Say that the session is over."""
        with suppress(DeviceError):
            self.line.send(struct.pack("<Qi", 4, 1))
        self.line.socket.close()

    def _exchange(self, body: bytes, seconds: float) -> tuple[int, bytes]:
        """Send a packet; return the code and body of its answer. Raises: DeviceError, RemoteError."""
        self.line.send(struct.pack("<Q", len(body)) + body)
        length = self.line.number("<Q", seconds)
        if not 4 <= length <= _MOST_PACKET:
            raise self.line.error(f"it announced a packet of {length} bytes")
        data = self.line.receive(length, seconds)
        code = struct.unpack_from("<i", data)[0]
        if code == _EXCEPTION:
            words = _values(data[4:])[0] if len(data) > 8 else b""
            text = words.decode("utf-8", "replace") if isinstance(words, bytes) else "an exception"
            raise RemoteError(self.line.what, text.strip()[-500:])
        if code not in (_RETURN, _COPY_ACK):
            raise self.line.error(f"it answered with a packet of code {code}")
        return code, data[4:]

    def _value(self, body: bytes, seconds: float, place: int) -> Any:
        """Return the value at a place of an answer."""
        try:
            return _values(self._exchange(body, seconds)[1])[place]
        except (IndexError, struct.error, ValueError):
            raise self.line.error("its answer cannot be read") from None

    def function(self, name: str) -> int:
        """Return the handle of a function of the server; 0 when it has none. Raises: DeviceError."""
        if name not in self._functions:
            body = struct.pack("<ii", _FUNCTION, 1) + _argument(name)
            self._functions[name] = self._value(body, self.seconds, 0) or 0
        return self._functions[name]

    def call(self, function: int, *arguments: Any, seconds: float | None = None) -> Any:
        """Return what a function returns. Raises: DeviceError, RemoteError."""
        packed = b"".join(_argument(a) for a in arguments)
        body = struct.pack("<iQi", _CALL, function, len(arguments)) + packed
        return self._value(body, self.seconds if seconds is None else seconds, 1)

    def call_named(self, name: str, *arguments: Any) -> Any:
        """Return what the server's function of that name returns. Raises: DeviceError."""
        function = self.function(name)
        if not function:
            raise self.line.error(f"it has no function '{name}'", "Is it a server of TVM 0.27, or our agent?")
        return self.call(function, *arguments)

    def upload(self, name: str, data: bytes) -> str:
        """Put a file there; return its path as the server's processes see it. Raises: DeviceError."""
        self.call_named("tvm.rpc.server.upload", name, data)
        if not self.function("tvm.rpc.server.workpath"):
            return f"./{name}"  # our agent: the session's folder is where its processes work
        path = self.call_named("tvm.rpc.server.workpath", name)
        return path.decode() if isinstance(path, bytes) else str(path)

    def kernel(self, library: str, name: str) -> int:
        """Return the function ``name`` of an uploaded library. Raises: DeviceError."""
        module = self.call_named("tvm.rpc.server.load_module", library)
        function = self.call_named("tvm.rpc.server.ModuleGetFunction", Module(module), name, 0)
        if not function:
            raise self.line.error(f"'{library}' has no function '{name}'")
        return int(function)

    def tensor(self, size: int, data: bytes = b"") -> Tensor:
        """Return a new tensor of so many bytes, the first ones ``data``. Raises: DeviceError."""
        body = struct.pack("<ii", _ALLOCATE, 4)
        body += struct.pack("<iii", _DEVICE, *_CPU) + struct.pack("<iqiq", _INT, size, _INT, 64)
        body += struct.pack("<i", _DTYPE) + _UINT8 + bytes(4)
        tensor = Tensor(int(self._value(body, self.seconds, 0)), size)
        if data:
            part = Tensor(tensor.handle, len(data))
            self._exchange(
                struct.pack("<i", _COPY_TO) + part.packed() + struct.pack("<Q", len(data)) + data, self.seconds
            )
        return tensor

    def read(self, tensor: Tensor, size: int) -> bytes:
        """Return the first bytes of a tensor. Raises: DeviceError."""
        part = Tensor(tensor.handle, size)
        _, data = self._exchange(struct.pack("<i", _COPY_FROM) + part.packed() + struct.pack("<Q", size), self.seconds)
        if len(data) != size:
            raise self.line.error(f"it sent {len(data)} bytes of {size}")
        return data


class Module:
    """A library on the server, as an argument."""

    def __init__(self, handle: int) -> None:
        self.handle = handle


class Tensor:
    """A row of bytes on the server, as an argument."""

    def __init__(self, handle: int, size: int) -> None:
        self.handle, self.size = handle, size

    def packed(self) -> bytes:
        """Return it as the protocol has a DLTensor: uint8, one dimension."""
        return struct.pack("<Qiii", self.handle, *_CPU, 1) + _UINT8 + struct.pack("<qQ", self.size, 0)


def _argument(value: Any) -> bytes:
    if value is None:
        return struct.pack("<i", _NONE)
    if isinstance(value, int):
        return struct.pack("<iq", _INT, value)
    if isinstance(value, Module):
        return struct.pack("<iQ", _MODULE, value.handle)
    if isinstance(value, Tensor):
        return struct.pack("<i", _TENSOR) + value.packed()
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<iQ", _TEXT if isinstance(value, str) else _BYTES, len(data)) + data


def _values(data: bytes) -> list[Any]:
    """Return the values of an answer's list: numbers, handles, bytes, None. Raises: ValueError, struct.error."""
    (count,), at = struct.unpack_from("<i", data), 4
    found: list[Any] = []
    if not 0 <= count <= 16:
        raise ValueError(count)
    for _ in range(count):
        (kind,) = struct.unpack_from("<i", data, at)
        at += 4
        if kind == _NONE:
            found.append(None)
            continue
        if kind in (_TEXT, _BYTES):
            (length,) = struct.unpack_from("<Q", data, at)
            if length > len(data) - at - 8:
                raise ValueError(length)
            found.append(data[at + 8 : at + 8 + length])
            at += 8 + length
        elif kind in (_INT, _FLOAT, _POINTER, 2, _DTYPE, _DEVICE):
            found.append(
                struct.unpack_from("<d" if kind == _FLOAT else "<Q" if kind == _POINTER else "<q", data, at)[0]
            )
            at += 8
        else:
            raise ValueError(kind)
    return found
