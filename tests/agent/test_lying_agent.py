"""A client of an agent that has the token and lies: whatever it sends ends in an answer or in one sentence."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xnncc.device.agent_client import AgentClient
from xnncc.device.agent_frames import FROM_AGENT, Sealer, Type, derive
from xnncc.device.bench import Fault, Group, Measurement
from xnncc.errors import DeviceError

TOKEN = b"a token of the tests, 0123456789"
GROUPS = [Group((0, 1), 8, 32, 16), Group((2,), 8, 32, 16)]


class LyingAgent:
    """Takes every client and sends it ``frames`` at once, whatever it asks, then nothing more."""

    def __init__(self) -> None:
        self.frames: Sequence[tuple[int, bytes]] = ()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(20)
                nonces = connection.recv(48, socket.MSG_WAITALL)[16:] + bytes(32)
                connection.sendall(b"XNNAGENT" + struct.pack("<II", 1, 0) + bytes(32))
                connection.recv(32, socket.MSG_WAITALL)
                connection.sendall(struct.pack("<II", 0, 0) + derive(TOKEN, "xnncc agent ", nonces))
                sealer = Sealer(derive(TOKEN, "xnncc key   ", nonces), FROM_AGENT)
                try:
                    connection.sendall(b"".join(sealer.seal(*frame) for frame in self.frames))
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass
                except OSError:
                    continue  # the client had enough

    def close(self) -> None:
        """Take no more clients."""
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join(20)


@pytest.fixture(scope="module")
def liar() -> Iterator[LyingAgent]:
    agent = LyingAgent()
    yield agent
    agent.close()


def lines(*choices: str) -> st.SearchStrategy[bytes]:
    """Return lines out of these, in any order, and any bytes between them."""
    line = st.one_of(st.sampled_from(choices).map(str.encode), st.binary(max_size=12))
    return st.lists(line, max_size=12).map(b"\n".join)


NUMBERS = st.integers(0, 2**32 - 1) | st.integers(0, 40)
FACTS = lines(
    "load 3", "millicelsius 45000", "millicelsius " + "9" * 400, "battery_percent x", "core_khz 1 2", "core_khz ٣ 1_0",
    "throttled 2", "governor", "abi", "soc a b", "millicelsius -", "load -5", "battery_millicelsius 1e5",
)  # fmt: skip
SAID = lines(
    "run 0", "run 1", "run 2", "run 77", "error 0 0", "error 1 5", "ns 0 5", "ns 1 7", "ns x", "end", "run: no"
)
FRAME = st.one_of(
    st.tuples(st.just(Type.FACTS), st.tuples(st.integers(0, 3), FACTS).map(lambda f: bytes([f[0]]) + f[1])),
    st.tuples(st.just(Type.OUTPUT), SAID),
    st.tuples(st.just(Type.FILE), st.binary(max_size=20)),
    st.tuples(st.just(Type.DONE), st.tuples(st.integers(0, 7), NUMBERS).map(lambda d: struct.pack("<IIII", *d, 0, 0))),
    st.tuples(st.just(Type.OK), st.binary(max_size=2)),
    st.tuples(st.just(Type.ERROR), st.binary(max_size=30)),
    st.tuples(st.integers(0, 255), st.binary(max_size=30)),
)


@given(st.lists(FRAME, max_size=12))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_question_ends_in_an_answer_or_a_sentence(liar: LyingAgent, frames: list[tuple[int, bytes]]) -> None:
    for ask in (AgentClient.describe, AgentClient.status, _measure, _time):
        liar.frames = frames if ask in (AgentClient.describe, AgentClient.status) else _after_uploads(ask, frames)
        try:
            with AgentClient("127.0.0.1", liar.port, TOKEN, 5.0) as client:
                ask(client)
        except DeviceError as error:
            assert str(error).count("\n") == 0


def _after_uploads(ask: Any, frames: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return what lets the upload of the list of jobs through first."""
    return [(Type.OK, b"\1"), *frames] if ask is _measure else frames


def _measure(client: AgentClient) -> None:
    files = dict.fromkeys(("library", "package"), "00" * 32)
    for result in client.measure(files, "graph", GROUPS, 2):
        assert result.candidate in (0, 1, 2)
        assert isinstance(result, Measurement | Fault)


def _time(client: AgentClient) -> None:
    client.time({}, "graph", "0@1:1", 3)


def test_an_honest_script_is_believed(liar: LyingAgent) -> None:
    """The way to the lies above is open: with the right frames everything comes out."""
    said = b"run 0\nerror 0 0\nrun 1\nerror 1 500\nns 0 5\nns 1 7\nend\nrun 2\nerror 2 0\nns 2 9\nend\n"
    liar.frames = [
        (Type.OK, b"\1"),
        (Type.FACTS, b"\1load 3\n"),
        (Type.OUTPUT, said[:30]),
        (Type.OUTPUT, said[30:]),
        (Type.FACTS, b"\2millicelsius -1500\n"),
        (Type.DONE, bytes(16)),
    ]
    with AgentClient("127.0.0.1", liar.port, TOKEN, 5.0) as client:
        results = list(client.measure(dict.fromkeys(("library", "package"), "00" * 32), "graph", GROUPS, 2))
        assert (client.before["load"], client.after["celsius"]) == (3.0, -1.5)
    assert results == [Measurement(0, (5,), 0.0), Measurement(1, (7,), 5e-7), Measurement(2, (9,), 0.0)]
