"""The codec of the protocol: what was sealed is opened again, however it is cut; anything else is refused."""

from __future__ import annotations

import hmac
import struct
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xnncc.device.agent_frames import (
    CODE_BYTES,
    FROM_AGENT,
    FROM_CLIENT,
    HEADER_BYTES,
    MOST_BODY,
    BadFrame,
    Done,
    Kind,
    Limits,
    Opener,
    Sealer,
    client_proof,
    derive,
    hello,
    job_body,
    put_body,
    read_answer,
    read_done,
    read_error,
    read_facts,
    read_welcome,
)

KEY = bytes(range(32))
SHA = sha256(b"x").hexdigest()
FRAMES = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=200)), max_size=8)


def opened(opener: Opener, data: bytes) -> list[tuple[int, bytes]]:
    """Return all frames that are whole in ``data``."""
    opener.feed(data)
    frames = []
    while (frame := opener.next()) is not None:
        frames.append(frame)
    return frames


@given(FRAMES, st.lists(st.integers(0, 2000), max_size=6))
@settings(max_examples=200, deadline=None)
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames: list[tuple[int, bytes]], cuts: list[int]) -> None:
    sealer, opener = Sealer(KEY, FROM_CLIENT), Opener(KEY, FROM_CLIENT)
    data = b"".join(sealer.seal(*frame) for frame in frames)
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    found = [frame for a, b in pairwise(ends) for frame in opened(opener, data[a:b])]
    assert found == frames


@given(FRAMES.filter(bool), st.data())
@settings(max_examples=200, deadline=None)
def test_one_changed_bit_is_noticed(frames: list[tuple[int, bytes]], data: st.DataObject) -> None:
    sealer = Sealer(KEY, FROM_AGENT)
    sent = bytearray(b"".join(sealer.seal(*frame) for frame in frames))
    sent[data.draw(st.integers(0, len(sent) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    opener, found = Opener(KEY, FROM_AGENT), []
    try:
        found = opened(opener, bytes(sent))
    except BadFrame:
        return
    # A length that grew waits for bytes that never come; no frame of another content has come out.
    assert len(found) < len(frames) and found == frames[: len(found)]


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_no_bytes_of_a_stranger_are_a_frame(data: bytes) -> None:
    with suppress(BadFrame):
        assert opened(Opener(KEY, FROM_AGENT), data) == []


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_bodies_are_read_or_refused(body: bytes) -> None:
    for reader in (read_error, read_facts, read_done, read_welcome, lambda data: read_answer(data, KEY, bytes(64))):
        with suppress(BadFrame):
            reader(body)


def test_repeated_swapped_and_turned_frames_are_refused() -> None:
    sealer = Sealer(KEY, FROM_CLIENT)
    first, second = sealer.seal(8), sealer.seal(8)
    for sent, direction in ((first + first, FROM_CLIENT), (second + first, FROM_CLIENT), (first, FROM_AGENT)):
        with pytest.raises(BadFrame, match=r"altered, repeated or left out"):
            opened(Opener(KEY, direction), sent)


@pytest.mark.parametrize("header", [struct.pack("<IBBH", MOST_BODY + 1, 1, 0, 0), bytes([0, 0, 0, 0, 1, 1, 0, 0])])
def test_a_header_out_of_bounds_is_refused_before_its_body(header: bytes) -> None:
    opener = Opener(KEY, FROM_AGENT)
    opener.feed(header)
    with pytest.raises(BadFrame, match=r"no frame"):
        opener.next()


def test_the_bytes_are_those_of_the_document() -> None:
    """docs/agent.md, sections 2 and 3, by hand."""
    nonces = bytes(32) + b"\1" * 32
    assert hello(bytes(32), 1) == b"XNNAGENT" + b"\1\0\0\0" + bytes(4) + bytes(32)
    assert client_proof(b"token", nonces) == hmac.digest(b"token", b"xnncc client" + nonces, "sha256")
    frame = Sealer(KEY, FROM_CLIENT).seal(3, b"abc")
    assert frame[:HEADER_BYTES] == bytes([3, 0, 0, 0, 3, 0, 0, 0]) and len(frame) == HEADER_BYTES + 3 + CODE_BYTES
    assert frame[11:] == hmac.digest(KEY, b"\0" + bytes(8) + frame[:11], "sha256")
    assert put_body(b"x") == sha256(b"x").digest() + struct.pack("<Q", 1)
    body = job_body(Kind.RUN, {"library": SHA}, ["g", "s"], 2, 5, Limits(1, 2, 3, 4, 5, 6, 7))
    head = struct.pack("<BBHBBHQQQQIIII", 2, 0, 2, 1, 2, 0, 5, 1, 2, 3, 4, 5, 6, 7)
    assert body == head + b"\7library" + bytes.fromhex(SHA) + b"\1\0g\1\0s"
    assert read_done(struct.pack("<IIII", 1, 11, 20, 3)) == Done(1, 11, 20, 3)
    assert read_facts(b"\2load 3\nzone 1 a b\nzone 2 c\n") == (2, {"load": ["3"], "zone": ["1 a b", "2 c"]})


def test_an_agent_must_prove_the_token() -> None:
    nonces = bytes(64)
    good = struct.pack("<II", 0, 0) + derive(b"token", "xnncc agent ", nonces)
    assert read_answer(good, b"token", nonces) == 0
    for bad in (
        good[:-1] + bytes([good[-1] ^ 1]),
        good[:-1],
        struct.pack("<II", 2, 0) + good[8:],  # "busy" is proved by another label
        struct.pack("<II", 9, 0) + good[8:],
        struct.pack("<II", 0, 0) + client_proof(b"token", nonces),  # our own proof sent back
    ):
        with pytest.raises(BadFrame, match=r"does not prove that it has the token"):
            read_answer(bad, b"token", nonces)
    assert read_answer(struct.pack("<II", 4, 0) + bytes(32), b"token", nonces) == 4


@pytest.mark.parametrize(
    ("threads", "mask", "arguments", "limits"),
    [
        (-1, 0, ["g", "s"], Limits()),
        (257, 0, ["g", "s"], Limits()),
        (1, 1 << 64, ["g", "s"], Limits()),
        (1, 0, ["g"], Limits()),
        (1, 0, ["g", "s\0"], Limits()),
        (1, 0, ["g", "s" * 16385], Limits()),
        (1, 0, ["g", "s"], Limits(wall_ms=1 << 32)),
        (1, 0, ["g", "s"], Limits(memory_bytes=-1)),
    ],
)
def test_a_job_out_of_bounds_is_not_sent(threads: int, mask: int, arguments: list[str], limits: Limits) -> None:
    with pytest.raises(ValueError):
        job_body(Kind.RUN, {"library": SHA}, arguments, threads, mask, limits)
