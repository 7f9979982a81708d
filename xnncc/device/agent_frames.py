"""The bytes of the agent's protocol (docs/agent.md): handshake, frames with their codes, and the bodies of frames.

A ``Sealer`` puts frames of one direction together, an ``Opener`` takes them apart; neither knows of sockets. What an
Opener reads is hostile until its code was checked, and every length is bounded before it is believed.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

PROTOCOL = 1
MAGIC = b"XNNAGENT"
NONCE_BYTES = CODE_BYTES = 32
HELLO_BYTES, ANSWER_BYTES, HEADER_BYTES = 48, 40, 8
MOST_BODY = 1 << 18
LEAST_TOKEN, MOST_TOKEN = 16, 256
FROM_CLIENT, FROM_AGENT = 0, 1
MOST_FACTS = 256  # lines of FACTS that are read
_ROLES = frozenset({"library", "package", "jobs", "inputs", "regions", "program"})
_ARGUMENT_COUNT = {1: 3, 2: 2, 3: 4, 4: 2}  # of each kind of job
MOST_ARGUMENT = 16384
MOST_THREADS = 256


class BadFrame(Exception):
    """Bytes that are no frame of this protocol, or whose code is wrong. Never leaves the device room."""


class Type(IntEnum):
    """Types of frames: below 128 from the client, from 128 on from the agent."""

    DESCRIBE = 1
    STATUS = 2
    HAS = 3
    PUT = 4
    DATA = 5
    JOB = 6
    CANCEL = 7
    PING = 8
    OK = 128
    ERROR = 129
    FACTS = 130
    OUTPUT = 131
    FILE = 132
    DONE = 133


class Shake(IntEnum):
    """Status of a handshake."""

    FINE = 0
    OTHER_VERSION = 1
    BUSY = 2
    NO_HELLO = 3
    WRONG_TOKEN = 4


class Kind(IntEnum):
    """What a job does."""

    MEASURE = 1
    RUN = 2
    TIME = 3
    TRACE = 4


class How(IntEnum):
    """How a job ended."""

    ENDED = 0  # code: its exit code
    SIGNALLED = 1  # code: the signal
    STILL = 2  # code 0: it computed for too long without a word; 1: it was silent for too long
    TOO_LONG = 3
    TOO_MUCH = 4  # it said more than it may
    CANCELLED = 5


class Trouble(IntEnum):
    """What an ERROR is about; the first one closes the session."""

    PROTOCOL = 1
    FULL = 2
    TOO_LARGE = 3
    WRONG_SHA = 4
    MISSING = 5
    BAD_JOB = 6
    SYSTEM = 7


def hello(nonce: bytes, version: int) -> bytes:
    """Return HELLO, 48 bytes."""
    return MAGIC + struct.pack("<II", version, 0) + nonce


def read_welcome(data: bytes) -> tuple[int, int, bytes]:
    """Return (the agent's version, status, nonce) of WELCOME. Raises: BadFrame."""
    if len(data) != HELLO_BYTES or data[:8] != MAGIC:
        raise BadFrame("no xnncc agent answers there")
    version, status = struct.unpack_from("<II", data, 8)
    return version, status, data[16:]


def derive(token: bytes, label: str, nonces: bytes) -> bytes:
    """Return HMAC-SHA-256(token, label of 12 characters + the client's nonce + the agent's)."""
    assert len(label) == 12 and len(nonces) == 2 * NONCE_BYTES
    return hmac.digest(token, label.encode() + nonces, "sha256")


def client_proof(token: bytes, nonces: bytes) -> bytes:
    """Return PROOF, 32 bytes."""
    return derive(token, "xnncc client", nonces)


def read_answer(data: bytes, token: bytes, nonces: bytes) -> int:
    """Return the status of ANSWER. Raises: BadFrame when the agent does not prove that it has the token."""
    status = struct.unpack_from("<I", data)[0] if len(data) == ANSWER_BYTES else -1
    if status == Shake.WRONG_TOKEN:
        return int(status)
    labels: dict[int, str] = {Shake.FINE: "xnncc agent ", Shake.BUSY: "xnncc busy  "}
    label = labels.get(status)
    if label is None or not hmac.compare_digest(data[8:], derive(token, label, nonces)):
        raise BadFrame("it does not prove that it has the token")
    return int(status)


def frame_code(key: bytes, direction: int, number: int, frame: bytes) -> bytes:
    """Return the code behind header and body."""
    return hmac.digest(key, struct.pack("<BQ", direction, number) + frame, "sha256")


class Sealer:
    """Puts the frames of one direction together."""

    def __init__(self, key: bytes, direction: int) -> None:
        self._key, self._direction, self._number = key, direction, 0

    def seal(self, type_: int, body: bytes = b"") -> bytes:
        """Return the next frame: header, body and code."""
        assert len(body) <= MOST_BODY
        frame = struct.pack("<IBBH", len(body), type_, 0, 0) + body
        code = frame_code(self._key, self._direction, self._number, frame)
        self._number += 1
        return frame + code


class Opener:
    """Takes the frames of one direction apart, however the bytes come."""

    def __init__(self, key: bytes, direction: int) -> None:
        self._key, self._direction, self._number = key, direction, 0
        self._pending = bytearray()

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        self._pending += data

    def next(self) -> tuple[int, bytes] | None:
        """Return the next frame as (type, body), None when it is not all there yet. Raises: BadFrame."""
        if len(self._pending) < HEADER_BYTES:
            return None
        size, type_, zero, zeros = struct.unpack_from("<IBBH", self._pending)
        if size > MOST_BODY or zero or zeros:
            raise BadFrame("these bytes are no frame")
        end = HEADER_BYTES + size
        if len(self._pending) < end + CODE_BYTES:
            return None
        frame, code = bytes(self._pending[:end]), bytes(self._pending[end : end + CODE_BYTES])
        if not hmac.compare_digest(code, frame_code(self._key, self._direction, self._number, frame)):
            raise BadFrame("a frame was altered, repeated or left out on its way")
        del self._pending[: end + CODE_BYTES]
        self._number += 1
        return type_, frame[HEADER_BYTES:]


@dataclass(frozen=True)
class Limits:
    """What a job may use; 0 means no limit of that sort."""

    memory_bytes: int = 4 << 30  # address space
    file_bytes: int = 1 << 30  # largest file that it may write
    output_bytes: int = 64 << 20  # what it may say on stdout
    cpu_seconds: int = 0
    wall_ms: int = 0  # the whole job
    line_wall_ms: int = 0  # between two words of it
    line_cpu_ms: int = 5000  # processor time between two words of it


@dataclass(frozen=True)
class Done:
    """How a job ended: ``how`` and ``code`` as in ``How``; times of the whole process in ms."""

    how: int
    code: int
    wall_ms: int
    cpu_ms: int


def job_body(
    kind: Kind, files: Mapping[str, str], arguments: Sequence[str], threads: int, core_mask: int, limits: Limits
) -> bytes:
    """Return the body of JOB. ``files``: role -> SHA-256 in hex; ``threads`` 0: one a core.

    Raises: ValueError for a field out of bounds.
    """
    texts = [a.encode() for a in arguments]
    if not 0 <= threads <= MOST_THREADS or not 0 <= core_mask < 1 << 64 or len(texts) != _ARGUMENT_COUNT[kind]:
        raise ValueError(f"threads {threads}, core mask {core_mask:#x} or {len(texts)} arguments are out of bounds")
    if set(files) - _ROLES or any(len(t) > MOST_ARGUMENT or b"\0" in t for t in texts):
        raise ValueError(f"files {sorted(files)} or an argument of more than {MOST_ARGUMENT} bytes")
    try:
        head = struct.pack(
            "<BBHBBHQQQQIIII", kind, 0, threads, len(files), len(texts), 0, core_mask, limits.memory_bytes,
            limits.file_bytes, limits.output_bytes, limits.cpu_seconds, limits.wall_ms, limits.line_wall_ms,
            limits.line_cpu_ms,
        )  # fmt: skip
    except struct.error as error:
        raise ValueError(f"a limit is out of bounds: {error}") from None
    parts = [head]
    parts += [bytes([len(role)]) + role.encode() + bytes.fromhex(sha) for role, sha in sorted(files.items())]
    parts += [struct.pack("<H", len(text)) + text for text in texts]
    return b"".join(parts)


def put_body(data: bytes) -> bytes:
    """Return the body of PUT for these bytes."""
    return sha256(data).digest() + struct.pack("<Q", len(data))


def read_error(body: bytes) -> tuple[int, str]:
    """Return (kind, words) of ERROR, the words on one line. Raises: BadFrame."""
    if len(body) < 2:
        raise BadFrame("an ERROR without a kind")
    text = "".join(c if c.isprintable() else " " for c in body[2:].decode("utf-8", "replace"))
    return int.from_bytes(body[:2], "little"), " ".join(text.split()) or "it does not say why"


def read_facts(body: bytes) -> tuple[int, dict[str, list[str]]]:
    """Return (0 answer, 1 before a job, 2 after it) and the facts: name -> its lines, the name left out.

    Raises: BadFrame.
    """
    if not body:
        raise BadFrame("FACTS without a word")
    facts: dict[str, list[str]] = {}
    for line in body[1:].decode("utf-8", "replace").splitlines()[:MOST_FACTS]:
        name, _, words = line.partition(" ")
        facts.setdefault(name, []).append(words)
    return body[0], facts


def read_done(body: bytes) -> Done:
    """Return how the job ended. Raises: BadFrame."""
    if len(body) != 16:
        raise BadFrame("a DONE of another length")
    return Done(*struct.unpack("<IIII", body))
