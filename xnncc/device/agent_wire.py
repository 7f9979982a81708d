"""A connection to an agent: the handshake, then frames both ways. Every failure is a DeviceError of one sentence."""

from __future__ import annotations

import secrets
import select
import socket
import time
from contextlib import suppress

from xnncc.device.agent_frames import (
    ANSWER_BYTES,
    FROM_AGENT,
    FROM_CLIENT,
    HELLO_BYTES,
    LEAST_TOKEN,
    MOST_TOKEN,
    NONCE_BYTES,
    PROTOCOL,
    BadFrame,
    Opener,
    Sealer,
    Shake,
    Trouble,
    Type,
    client_proof,
    derive,
    hello,
    read_answer,
    read_error,
    read_welcome,
)
from xnncc.errors import DeviceError

PING_SECONDS = 2.0  # of silence, after which the agent is asked whether it is there
CLOSE_SECONDS = 2.0
_NEXT = {
    Trouble.FULL: "Free some space on the device.",
    Trouble.TOO_LARGE: "Start the agent with a larger --quota-mib.",
}


class AgentRefusal(DeviceError):
    """The agent is there and says no; ``kind`` is a ``Trouble``."""

    def __init__(self, name: str, kind: int, words: str) -> None:
        super().__init__(f"device '{name}'", words, _NEXT.get(Trouble(kind), "") if kind in list(Trouble) else "")
        self.kind = kind


class AgentWire:
    """An authenticated connection. Raises: DeviceError, also from the constructor."""

    def __init__(self, host: str, port: int, token: bytes, timeout: float) -> None:
        self.name, self.timeout = f"tcp:{host}:{port}", timeout
        if not LEAST_TOKEN <= len(token) <= MOST_TOKEN:
            why = f"its token has {len(token)} bytes, expected {LEAST_TOKEN} to {MOST_TOKEN}"
            raise DeviceError(f"device '{self.name}'", why, "Use the content of the agent's --token-file.")
        try:
            self._socket = socket.create_connection((host, port), timeout)
        except OSError as error:
            why = error.strerror or str(error)
            raise DeviceError(f"device '{self.name}'", why, "Start the agent there; see docs/agent.md.") from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._shake_hands(token)
        except BaseException:
            self._socket.close()
            raise

    def _shake_hands(self, token: bytes) -> None:
        mine = secrets.token_bytes(NONCE_BYTES)
        try:
            self._socket.sendall(hello(mine, PROTOCOL))
            version, status, its = read_welcome(self._read(HELLO_BYTES))
            if status == Shake.OTHER_VERSION or version != PROTOCOL:
                why = f"its agent speaks version {version} of the protocol and this xnncc speaks {PROTOCOL}"
                raise self.error(why, "Start the agent of this xnncc there.")
            if status != Shake.FINE:
                raise self.error(f"its agent does not take the greeting (status {status})")
            nonces = mine + its
            self._socket.sendall(client_proof(token, nonces))
            answer = read_answer(self._read(ANSWER_BYTES), token, nonces)
        except BadFrame as error:
            raise self.error(str(error), "Is it the agent's port, and its token?") from None
        except OSError as error:
            raise self.error(f"the connection broke: {error.strerror or error}") from None
        if answer == Shake.WRONG_TOKEN:
            raise self.error("the token is wrong", "Use the content of the agent's --token-file.")
        if answer == Shake.BUSY:
            raise self.error("it is busy with another client", "Try again later.")
        key = derive(token, "xnncc key   ", nonces)
        self._sealer, self._opener = Sealer(key, FROM_CLIENT), Opener(key, FROM_AGENT)

    def error(self, why: str, next: str = "") -> DeviceError:
        """Return an error about this device."""
        return DeviceError(f"device '{self.name}'", why, next)

    def _read(self, count: int) -> bytes:
        data = b""
        until = time.monotonic() + self.timeout
        while len(data) < count:
            self._socket.settimeout(max(0.001, until - time.monotonic()))
            more = self._socket.recv(count - len(data))
            if not more:
                raise self.error("its agent closed the connection", "Is it the agent's port?")
            data += more
        return data

    def send(self, type_: Type, body: bytes = b"") -> None:
        """Send one frame."""
        try:
            self._socket.settimeout(self.timeout)
            self._socket.sendall(self._sealer.seal(type_, body))
        except OSError as error:
            # It may have said why before it closed.
            with suppress(OSError):
                self._opener.feed(self._socket.recv(1 << 16, socket.MSG_DONTWAIT))
            self._raise_refusal()
            raise self.error(f"the connection broke: {error.strerror or error}") from None

    def _raise_refusal(self) -> None:
        with suppress(BadFrame):
            while (frame := self._opener.next()) is not None:
                if frame[0] == Type.ERROR:
                    raise AgentRefusal(self.name, *read_error(frame[1]))

    def receive(self, asks: bool = False) -> tuple[int, bytes]:
        """Return the next frame. ``asks``: send PINGs while it is silent (their answers come as OK frames).

        Raises: AgentRefusal for an ERROR, DeviceError when the agent says nothing for ``timeout`` or is gone.
        """
        heard = asked = time.monotonic()
        while True:
            try:
                frame = self._opener.next()
                if frame is not None:
                    if frame[0] == Type.ERROR:
                        raise AgentRefusal(self.name, *read_error(frame[1]))
                    return frame
                readable = select.select([self._socket], [], [], 0.5)[0]
                data = self._socket.recv(1 << 18) if readable else None
            except BadFrame as error:
                raise self.error(str(error)) from None
            except (OSError, ValueError) as error:
                raise self.error(f"the connection broke: {getattr(error, 'strerror', None) or error}") from None
            now = time.monotonic()
            if data == b"":
                raise self.error("its agent has closed the connection")
            if data is not None:
                heard = now
                self._opener.feed(data)
            elif now - heard > self.timeout:
                raise self.error(f"it has not answered for {self.timeout:g} s")
            elif asks and now - max(heard, asked) > PING_SECONDS:
                asked = now
                self.send(Type.PING)

    def close(self) -> None:
        """Let go of the device; a job that runs there is ended. Waits a moment until it is free for the next client."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            until = time.monotonic() + CLOSE_SECONDS
            while (left := until - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv(1 << 16):
                    break
        self._socket.close()
