"""A client of bare bytes, for what no honest client sends."""

from __future__ import annotations

import socket

from xnncc.device.agent_frames import (
    ANSWER_BYTES,
    FROM_AGENT,
    FROM_CLIENT,
    HELLO_BYTES,
    Opener,
    Sealer,
    client_proof,
    derive,
    hello,
    read_answer,
    read_welcome,
)

NONCE = bytes(range(32))


class Raw:
    """A connection; ``shake`` does the handshake, after which ``seal`` and ``opener`` work."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.nonces = b""

    def greet(self, version: int = 1) -> tuple[int, int]:
        """Send HELLO; return the agent's version and status."""
        self.socket.sendall(hello(NONCE, version))
        found, status, nonce = read_welcome(self.read(HELLO_BYTES))
        self.nonces = NONCE + nonce
        return found, status

    def prove(self, token: bytes) -> int:
        """Send PROOF; return the status of ANSWER."""
        self.socket.sendall(client_proof(token, self.nonces))
        status = read_answer(self.read(ANSWER_BYTES), token, self.nonces)
        key = derive(token, "xnncc key   ", self.nonces)
        self.sealer, self.opener = Sealer(key, FROM_CLIENT), Opener(key, FROM_AGENT)
        return status

    def shake(self, token: bytes) -> Raw:
        """Do the whole handshake."""
        assert self.greet() == (1, 0)
        assert self.prove(token) == 0
        return self

    def read(self, count: int) -> bytes:
        """Return exactly so many bytes, fewer at the end of the connection."""
        data = b""
        while len(data) < count and (more := self.receive(count - len(data))):
            data += more
        return data

    def receive(self, count: int = 1 << 16) -> bytes:
        """Return what comes, b"" at the end of the connection."""
        try:
            return self.socket.recv(count)
        except ConnectionResetError:  # it closed with bytes of ours unread
            return b""

    def frame(self) -> tuple[int, bytes] | None:
        """Return the next frame; None when the connection ends."""
        while (found := self.opener.next()) is None:
            data = self.receive()
            if not data:
                return None
            self.opener.feed(data)
        return found

    def is_closed(self) -> bool:
        """The agent has closed it, and says nothing more."""
        return self.receive() == b""

    def close(self) -> None:
        """Go."""
        self.socket.close()
