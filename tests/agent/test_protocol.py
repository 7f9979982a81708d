"""The agent against clients that lie, repeat, stammer or go away: one clear word, and the next client is served."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest
from agents import TOKEN, Agent
from fakes.known_kernels import known_kernels
from raw import NONCE, Raw

from xnncc.device.agent_client import AgentClient
from xnncc.device.agent_frames import (
    FROM_CLIENT,
    MOST_BODY,
    Kind,
    Limits,
    Sealer,
    Trouble,
    Type,
    derive,
    job_body,
    put_body,
    read_error,
)
from xnncc.errors import DeviceError

OTHER_TOKEN = b"another token, 0123456789 abcdef"


@pytest.fixture(scope="module", params=["host", "linux-arm64"])
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    agent = Agent(tmp_path_factory.mktemp(request.param), request.param)
    yield agent
    agent.stop()


@pytest.fixture(autouse=True)
def _serves_on(agent: Agent) -> Iterator[None]:
    """After each test the same agent takes an honest client."""
    yield
    assert agent.is_alive()
    _connect_soon(agent).close()
    assert agent.jobs() == [] and "signal" not in agent.log


def _connect_soon(agent: Agent) -> AgentClient:
    """Return a session: the one before may need a moment to notice that its client has gone."""
    for _ in range(200):
        try:
            return agent.connect()
        except DeviceError as error:
            assert "busy" in str(error)
            time.sleep(0.05)
    raise AssertionError("it stays busy")


def test_listens_on_loopback_alone(agent: Agent) -> None:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = [row[1] for row in rows if row[1].endswith(f":{agent.port:04X}") and row[3] == "0A"]
    assert mine == [f"0100007F:{agent.port:04X}"]
    six = Path("/proc/net/tcp6")
    assert not six.exists() or f":{agent.port:04X} " not in six.read_text()


def test_a_wrong_token_is_told(agent: Agent) -> None:
    with pytest.raises(DeviceError, match=r"the token is wrong. Use the content of the agent's --token-file"):
        agent.connect(OTHER_TOKEN)
    with pytest.raises(DeviceError, match=r"its token has 5 bytes, expected 16 to 256"):
        agent.connect(b"short")


def test_another_version_is_told_in_one_sentence(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = Raw(agent.port)
    assert raw.greet(version=7) == (1, 1)
    assert raw.is_closed()
    with monkeypatch.context() as newer:
        newer.setattr("xnncc.device.agent_wire.PROTOCOL", 7)
        with pytest.raises(DeviceError, match=r"its agent speaks version 1 of the protocol and this xnncc speaks 7"):
            agent.connect()


def test_who_is_no_agent_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(DeviceError, match=r"timed out|has not answered"):
            AgentClient("127.0.0.1", port, TOKEN, 0.2)
    with pytest.raises(DeviceError, match=r"refused. Start the agent there"):
        AgentClient("127.0.0.1", port, TOKEN, 0.2)


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\nHost: phone\r\n\r\n".ljust(48, b"x"),
        bytes(48),
        b"XNNAGENT" + struct.pack("<II", 1, 1) + NONCE,
    ],
)
def test_other_greetings_are_not_taken(agent: Agent, first: bytes) -> None:
    raw = Raw(agent.port)
    raw.socket.sendall(first)
    assert struct.unpack_from("<I", raw.read(48), 12)[0] == 3
    assert raw.is_closed()


@pytest.mark.parametrize("name", ["host", "linux-arm64"])
def test_nothing_is_loaded_before_the_proof(name: str, tmp_path: Path) -> None:
    """A whole upload and a job, sealed with a guessed key, in every state before the proof: nothing is written."""
    fresh = Agent(tmp_path / "agent", name)
    library, _ = known_kernels(fresh.target, tmp_path, 2)
    data = library.library.read_bytes()
    names = dict.fromkeys(("library", "package", "jobs"), sha256(data).hexdigest())
    try:
        for greets, proves in ((False, False), (True, False), (True, True)):
            raw = Raw(fresh.port)
            if greets:
                raw.greet()
            else:
                raw.nonces = bytes(64)
            if proves:
                assert raw.prove(OTHER_TOKEN) == 4
            sealer = Sealer(derive(OTHER_TOKEN, "xnncc key   ", raw.nonces), FROM_CLIENT)
            frames = sealer.seal(Type.PUT, put_body(data))
            for at in range(0, len(data), MOST_BODY):
                frames += sealer.seal(Type.DATA, data[at : at + MOST_BODY])
            frames += sealer.seal(Type.JOB, job_body(Kind.MEASURE, names, ["g", "1", "1"], 1, 0, Limits()))
            with suppress(OSError):  # it may have closed by now, as it should
                raw.socket.sendall(frames)
            while raw.receive():
                pass
            assert [p.name for p in fresh.data.iterdir()] == ["lock"]
        with fresh.connect() as client:
            assert client.status()
        assert {p.name for p in fresh.data.iterdir()} == {"blobs", "lock"}  # an honest session has a store
    finally:
        fresh.stop()


def test_a_repeated_frame_ends_the_session(agent: Agent) -> None:
    raw = Raw(agent.port).shake(TOKEN)
    ping = raw.sealer.seal(Type.PING)
    raw.socket.sendall(ping)
    assert raw.frame() == (Type.OK, b"\1")
    raw.socket.sendall(ping)
    _refused(raw, "altered, repeated or left out")


def test_a_frame_of_another_session_is_not_taken(agent: Agent) -> None:
    raw = Raw(agent.port).shake(TOKEN)
    ping = raw.sealer.seal(Type.PING)
    raw.close()
    _connect_soon(agent).close()
    again = _shake_soon(agent)
    again.socket.sendall(ping)
    _refused(again, "altered, repeated or left out")


def test_its_own_frames_cannot_be_sent_back_to_it(agent: Agent) -> None:
    raw = _shake_soon(agent)
    raw.socket.sendall(raw.sealer.seal(Type.PING))
    answer = raw.read(8 + 1 + 32)
    raw.socket.sendall(answer)
    raw.opener.feed(answer)
    assert raw.frame() == (Type.OK, b"\1")
    _refused(raw, "altered, repeated or left out")


@pytest.mark.parametrize("at", [0, 4, 8, 20, 47, 48, 79])
def test_an_altered_byte_is_noticed(agent: Agent, at: int) -> None:
    raw = _shake_soon(agent)
    frame = bytearray(raw.sealer.seal(Type.HAS, bytes(32)) + raw.sealer.seal(Type.PING))
    frame[at] ^= 4
    raw.socket.sendall(frame)
    words = "altered, repeated or left out" if at < 72 else None
    if words is None:  # the first frame is whole; the second is not
        assert raw.frame() == (Type.OK, b"\0")
    _refused(raw, "")


@pytest.mark.parametrize(
    ("type_", "body", "words"),
    [
        (0, b"", "no such frame"),
        (128, b"\1", "has no body"),
        (255, b"", "no such frame"),
        (Type.PING, b"x", "has no body"),
        (Type.HAS, bytes(31), "HAS has another form"),
        (Type.HAS, bytes(33), "HAS has another form"),
        (Type.PUT, bytes(39), "PUT has another form"),
        (Type.DATA, b"x", "DATA without a PUT"),
        (Type.DATA, b"", "DATA without a PUT"),
    ],
)
def test_frames_of_another_form_end_the_session(agent: Agent, type_: int, body: bytes, words: str) -> None:
    raw = _shake_soon(agent)
    raw.socket.sendall(raw.sealer.seal(type_, body))
    _refused(raw, words)


@pytest.mark.parametrize(
    "header", [struct.pack("<IBBH", MOST_BODY + 1, 8, 0, 0), b"\xff" * 8, struct.pack("<IBBH", 0, 8, 1, 0)]
)
def test_a_header_out_of_bounds_ends_the_session(agent: Agent, header: bytes) -> None:
    raw = _shake_soon(agent)
    raw.socket.sendall(header)
    _refused(raw, "this is no frame, or it is too long")


def test_an_upload_must_be_what_it_says(agent: Agent) -> None:
    raw = _shake_soon(agent)
    data = b"some bytes"
    raw.socket.sendall(raw.sealer.seal(Type.PUT, put_body(data)) + raw.sealer.seal(Type.DATA, data[::-1]))
    frame = raw.frame()
    assert frame is not None and frame[0] == Type.ERROR and read_error(frame[1])[0] == Trouble.WRONG_SHA
    raw.socket.sendall(raw.sealer.seal(Type.HAS, sha256(data).digest()))  # the session goes on
    assert raw.frame() == (Type.OK, b"\0")
    raw.socket.sendall(raw.sealer.seal(Type.PUT, put_body(data)) + raw.sealer.seal(Type.DATA, data + b"x"))
    _refused(raw, "more than it announced")
    raw = _shake_soon(agent)
    raw.socket.sendall(raw.sealer.seal(Type.PUT, put_body(data)) + raw.sealer.seal(Type.PING))
    _refused(raw, "a PUT lacks some of its DATA")


def test_a_second_client_is_told_that_it_is_busy(agent: Agent) -> None:
    first = _connect_soon(agent)
    with pytest.raises(DeviceError, match=r"it is busy with another client. Try again later"):
        agent.connect()
    assert first.status()
    first.close()


def test_a_client_that_says_nothing_keeps_nobody_out(agent: Agent) -> None:
    silent = Raw(agent.port)
    half = Raw(agent.port)
    half.socket.sendall(b"XNNA")
    greeted = Raw(agent.port)
    greeted.greet()
    _connect_soon(agent).close()
    for raw in (silent, half, greeted):
        raw.close()


def test_a_client_that_vanishes_takes_its_job_along(agent: Agent, tmp_path: Path) -> None:
    library, _ = known_kernels(agent.target, tmp_path, 2, hang=[1])
    client = _connect_soon(agent)
    files = client.put_all({"library": library.library.read_bytes(), "package": library.package.read_bytes()})
    files |= client.put_all({"jobs": b"g 64 256 256 0\nc 0\nc 1\n"})
    body = job_body(Kind.MEASURE, files, [library.graph_symbol, "2", "0"], 1, 0, Limits(line_cpu_ms=0))
    client.wire.send(Type.JOB, body)
    while client.wire.receive()[0] != Type.OUTPUT:
        pass
    assert agent.jobs() != []
    client.close()
    _connect_soon(agent).close()  # the session ended, and with it the job
    assert agent.jobs() == []


def test_an_agent_that_says_nothing_is_given_up(agent: Agent) -> None:
    client = agent.connect(timeout=1.0)
    os.killpg(agent.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(DeviceError, match=r"it has not answered for 1 s"):
            for _ in range(1000):  # the signal takes a moment
                client.status()
    finally:
        os.killpg(agent.process.pid, signal.SIGCONT)
    client.close()


def test_a_killed_agent_takes_everything_along(tmp_path: Path) -> None:
    doomed = Agent(tmp_path)
    client = doomed.connect()
    files = client.put_all({name: name.encode() for name in ("library", "package", "inputs")})
    files |= client.put_all({"program": b"#!/bin/sh\necho $$; exec sleep 1000\n"})
    client.wire.send(Type.JOB, job_body(Kind.RUN, files, ["g", "0@1:1"], 1, 0, Limits()))
    while (frame := client.wire.receive())[0] != Type.OUTPUT:
        pass
    doomed.stop()
    with pytest.raises(DeviceError, match=r"the connection broke|its agent has closed the connection"):
        client.wire.receive(asks=True)
    process = Path(f"/proc/{int(frame[1])}/stat")
    for _ in range(500):
        if not process.exists() or process.read_text().rpartition(")")[2].split()[0] in "ZX":
            return
        time.sleep(0.02)
    raise AssertionError("the job goes on")


def _shake_soon(agent: Agent) -> Raw:
    for _ in range(200):
        raw = Raw(agent.port)
        raw.greet()
        if raw.prove(TOKEN) == 0:
            return raw
        raw.close()
        time.sleep(0.05)
    raise AssertionError("it stays busy")


def _refused(raw: Raw, words: str) -> None:
    """The agent says once why, closes, and says nothing more."""
    frame = raw.frame()
    assert frame is not None and frame[0] == Type.ERROR
    kind, found = read_error(frame[1])
    assert kind == Trouble.PROTOCOL and words in found
    assert raw.is_closed()
    raw.close()
