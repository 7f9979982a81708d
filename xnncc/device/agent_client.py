"""A client of the agent (docs/agent.md): what a device is, and jobs on it.

with AgentClient("127.0.0.1", 5060, token) as agent:
    agent.put(sha, data)
    for result in agent.measure({"library": sha, "package": other}, "xnn_graph_x", groups, rounds=10): ...
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from types import TracebackType
from typing import Any

from xnncc.device.agent_frames import (
    MOST_BODY,
    BadFrame,
    Done,
    How,
    Kind,
    Limits,
    Type,
    job_body,
    put_body,
    read_done,
    read_facts,
)
from xnncc.device.agent_wire import AgentWire
from xnncc.device.artefact import crash_error
from xnncc.device.bench import FLUSH_BYTES, Dump, Fault, Group, Measurement
from xnncc.device.bench_lines import Progress, groups_left, job_lines
from xnncc.errors import DeviceError

NETWORK_LIMITS = Limits(line_cpu_ms=0, wall_ms=600_000)  # of a whole network: it says nothing until it is done


class AgentClient:
    """A session with an agent, which serves one at a time. Every method raises DeviceError when the device, the
    connection or the agent fails; what a candidate does wrong is a ``Fault``; a job that no frame can hold is a
    ValueError.

    ``before`` and ``after`` are what the device said of itself (see ``status``) around the last job.
    """

    def __init__(self, host: str, port: int, token: bytes, timeout: float = 10.0) -> None:
        self.wire = AgentWire(host, port, token, timeout)
        self.before: dict[str, Any] = {}
        self.after: dict[str, Any] = {}
        self._is_working = False

    def describe(self) -> dict[str, Any]:
        """Return what the device is: "serial", "soc", "abi", "system" (str), "core_khz" (top speeds, a tuple), and
        "loads_libraries" (bool): otherwise every job must bring a "program".
        """
        facts = self._ask(Type.DESCRIBE)
        words = {name: facts.get(name, ["unknown"])[0] for name in ("serial", "soc", "abi", "system")}
        return {**words, "core_khz": _core_khz(facts), "loads_libraries": _claim(facts, "loads_libraries") is not False}

    def status(self) -> dict[str, Any]:
        """Return what it says of itself now, with None for what it cannot tell: "celsius", "battery_percent",
        "battery_celsius", "load" (float), "governor" (str), "core_khz" (tuple), "screen_on", "throttled" (bool).
        """
        return _status(self._ask(Type.STATUS))

    def has(self, sha: str) -> bool:
        """Whether its store has the bytes of that SHA-256 (in hex)."""
        self.wire.send(Type.HAS, bytes.fromhex(sha))
        return self._answer() == b"\1"

    def put(self, sha: str, data: bytes) -> None:
        """Send bytes to its store, unless they are there. ``sha`` is their SHA-256 in hex."""
        assert sha256(data).hexdigest() == sha, "the caller names other bytes than it sends"
        if self.has(sha):
            return
        self.wire.send(Type.PUT, put_body(data))
        view = memoryview(data)
        for at in range(0, len(data), MOST_BODY):
            self.wire.send(Type.DATA, bytes(view[at : at + MOST_BODY]))
        self._answer()

    def put_all(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Send files to its store; return the SHA-256 of each name, as jobs want them."""
        names = {name: sha256(data).hexdigest() for name, data in files.items()}
        for name, data in files.items():
            self.put(names[name], data)
        return names

    def measure(
        self,
        files: Mapping[str, str],
        graph_symbol: str,
        groups: Sequence[Group],
        rounds: int,
        threads: int = 1,
        core_mask: int = 0,
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        dump: Dump | None = None,
    ) -> Iterator[Measurement | Fault]:
        """Yield what each candidate did, as soon as its group is done; after a fault go on without the culprit.

        ``files``: "library" and "package" -> SHA-256 of what was put; "program" too for a device that loads no
        libraries: an executable that is called as measure.c is. ``core_mask`` 0: any core.
        """
        left = [group for group in groups if group.candidates]
        while left:
            jobs = self.put_all({"jobs": job_lines(left, dump is not None).encode()})
            arguments = [graph_symbol, str(rounds), str(FLUSH_BYTES)]
            progress = Progress(left)
            body = job_body(Kind.MEASURE, {**files, **jobs}, arguments, threads, core_mask, limits)
            job = _Job(self, body)
            try:
                for line in job.lines():
                    yield from progress.take(line)
            finally:
                job.stop()
            if dump is not None:
                dump.data += job.outputs
            fault = self._fault(progress, job.done, limits)
            if fault is not None:
                yield fault
            left = groups_left(left, progress.done, fault)

    def _fault(self, progress: Progress, done: Done, limits: Limits) -> Fault | None:
        """Return the fault that ended a job. Raises: DeviceError when it was no candidate's doing."""
        if done.how == How.ENDED and done.code == 0 and progress.is_complete:
            return None
        words = _how_words(done, limits)
        fault = None
        if done.how in (How.STILL, How.TOO_LONG, How.TOO_MUCH):
            kind = "crash" if done.how == How.TOO_MUCH else "hang"
            fault = Fault(progress.running, kind, words) if progress.running >= 0 else None
        elif done.how in (How.ENDED, How.SIGNALLED):
            fault = progress.fault_of_exit(_signal_name(done.code) if done.how == How.SIGNALLED else "")
            words = progress.last_words or words if done.how == How.ENDED else words
        if fault is None:
            raise self.wire.error(f"the measuring program stopped: {words}")
        return fault

    def run(
        self,
        files: Mapping[str, str],
        graph_symbol: str,
        sizes: str,
        threads: int = 1,
        core_mask: int = 0,
        limits: Limits = NETWORK_LIMITS,
    ) -> bytes:
        """Return a network's outputs. ``files``: "library", "package", "inputs"; ``sizes`` as runner.c has them."""
        return self.network(Kind.RUN, files, [graph_symbol, sizes], threads, core_mask, limits)[1]

    def time(
        self,
        files: Mapping[str, str],
        graph_symbol: str,
        sizes: str,
        repeat: int,
        per_op: bool = False,
        threads: int = 1,
        core_mask: int = 0,
        limits: Limits = NETWORK_LIMITS,
    ) -> str:
        """Return the lines "run NS" or "op INDEX NS" of runner.c."""
        arguments = [graph_symbol, sizes, str(repeat), str(int(per_op))]
        return self.network(Kind.TIME, files, arguments, threads, core_mask, limits)[0]

    def trace(self, files: Mapping[str, str], graph_symbol: str, sizes: str, limits: Limits = NETWORK_LIMITS) -> bytes:
        """Return the bytes of the regions that file "regions" lists, after the operator of each."""
        return self.network(Kind.TRACE, files, [graph_symbol, sizes], 1, 0, limits)[1]

    def network(
        self,
        kind: Kind,
        files: Mapping[str, str],
        arguments: Sequence[str],
        threads: int,
        core_mask: int,
        limits: Limits,
        target: str = "",
    ) -> tuple[str, bytes]:
        """Return what runner.c said and wrote in one job; ``target`` is named when it crashes.

        Raises: DeviceError, also for what the network itself did wrong.
        """
        job = _Job(self, job_body(kind, files, arguments, threads, core_mask, limits))
        try:
            text = "".join(f"{line}\n" for line in job.lines())
        finally:
            job.stop()
        if job.done.how == How.SIGNALLED:
            raise crash_error(f"the network on {self.wire.name}", -job.done.code, target)
        if job.done.how != How.ENDED or job.done.code != 0:
            last = text.strip().splitlines()[-1:] if job.done.how == How.ENDED else []
            raise DeviceError(f"the network on {self.wire.name}", *(last or [_how_words(job.done, limits)]))
        return text, job.outputs

    def close(self) -> None:
        """Let go of the device; a job that runs there is ended."""
        self.wire.close()

    def __enter__(self) -> AgentClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, type_: Type) -> dict[str, list[str]]:
        self.wire.send(type_)
        frame, body = self.wire.receive()
        if frame != Type.FACTS:
            raise self.wire.error(f"it answers with frame {frame} where facts were asked for")
        return self._read(read_facts, body)[1]

    def _answer(self) -> bytes:
        frame, body = self.wire.receive()
        if frame != Type.OK:
            raise self.wire.error(f"it answers with frame {frame} where yes or no was asked for")
        return body

    def _read(self, reader: Any, body: bytes) -> Any:
        try:
            return reader(body)
        except BadFrame as error:
            raise self.wire.error(str(error)) from None


class _Job:
    """One job under way: its lines, then ``outputs`` and ``done``."""

    def __init__(self, client: AgentClient, body: bytes) -> None:
        self.client, self.outputs, self.done = client, b"", Done(How.CANCELLED, 0, 0, 0)
        self._is_open = True
        client.wire.send(Type.JOB, body)

    def lines(self) -> Iterator[str]:
        """Yield what the job says, line by line, until it is done."""
        pending, outputs = b"", bytearray()
        while self._is_open:
            frame, body = self._frame()
            if frame == Type.OUTPUT:
                *lines, pending = (pending + body).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in lines)
            elif frame == Type.FILE:
                outputs += body
        if pending:
            yield pending.decode("utf-8", "replace")
        self.outputs = bytes(outputs)

    def _frame(self) -> tuple[int, bytes]:
        client = self.client
        try:
            frame, body = client.wire.receive(asks=True)
        except DeviceError:
            self._is_open = False
            raise
        if frame == Type.FACTS:
            when, facts = client._read(read_facts, body)
            if when == 1:
                client.before, client.after = _status(facts), {}
            else:
                client.after = _status(facts)
        elif frame == Type.DONE:
            self.done, self._is_open = client._read(read_done, body), False
        elif frame not in (Type.OUTPUT, Type.FILE, Type.OK):
            raise client.wire.error(f"it sends frame {frame} in the middle of a job")
        return frame, body

    def stop(self) -> None:
        """End the job if it is still under way, so that the session can go on."""
        if not self._is_open:
            return
        with suppress(DeviceError):
            self.client.wire.send(Type.CANCEL)
            while self._is_open:
                self._frame()


def _how_words(done: Done, limits: Limits) -> str:
    """Return how a job ended, in words."""
    if done.how == How.SIGNALLED:
        return f"ended by {_signal_name(done.code) or f'signal {done.code}'}"
    words = {
        How.ENDED: f"exit code {done.code}",
        How.STILL: f"silent for {limits.line_wall_ms / 1e3:g} s"
        if done.code
        else f"no end after {limits.line_cpu_ms / 1e3:g} s of processor time",
        How.TOO_LONG: f"no end after {limits.wall_ms / 1e3:g} s",
        How.TOO_MUCH: f"it said more than {limits.output_bytes} bytes",
        How.CANCELLED: "it was cancelled",
    }
    return words[How(done.how)] if done.how in list(How) else f"it ended in a way ({done.how}) that is not known here"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def _number(facts: Mapping[str, list[str]], name: str, divisor: float = 1.0) -> float | None:
    words = facts.get(name, [""])[0]
    digits = words.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) < 12
    return int(words) / divisor if is_number else None


def _claim(facts: Mapping[str, list[str]], name: str) -> bool | None:
    return {"0": False, "1": True}.get(facts.get(name, [""])[0])


def _core_khz(facts: Mapping[str, list[str]]) -> tuple[int, ...]:
    words = facts.get("core_khz", [""])[0].split()
    return tuple(int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 12)


def _status(facts: Mapping[str, list[str]]) -> dict[str, Any]:
    return {
        "celsius": _number(facts, "millicelsius", 1e3),
        "battery_percent": _number(facts, "battery_percent"),
        "battery_celsius": _number(facts, "battery_millicelsius", 1e3),
        "governor": facts.get("governor", [None])[0],
        "core_khz": _core_khz(facts),
        "load": _number(facts, "load"),
        "screen_on": _claim(facts, "screen_on"),
        "throttled": _claim(facts, "throttled"),
    }
