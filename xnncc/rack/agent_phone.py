"""A device whose agent runs by itself and listens: a Linux board, or an emulator.

    AgentPhone("board.lab", 9100, token).measure(batch, blobs) -> Measurement | Fault, one by one

The connection is made when it is first needed and kept; after a fault of the device, or when the agent was started
anew in between, it is made again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from xnncc.device.agent_client import NETWORK_LIMITS, AgentClient
from xnncc.device.agent_frames import Kind, Limits, Trouble
from xnncc.device.agent_wire import AgentRefusal
from xnncc.device.bench import Dump, Fault, Measurement
from xnncc.errors import DeviceError
from xnncc.rack.names import plain_name
from xnncc.rack.phone import Batch, Description, JobFailed, Phone, Status

OUTPUT_FILE = "out.bin"
_RUN_SECONDS, _MOST_RUN_SECONDS = 5.0, 600.0
_CLOSED_SECONDS = 3.0  # until an agent has noticed that its client has closed the connection
_CUT_SECONDS = 45.0  # and that it has silently gone
_KINDS = {"run": Kind.RUN, "time": Kind.TIME, "trace": Kind.TRACE}


class AgentPhone(Phone):
    """The device whose agent listens at ``host:port`` and has ``token``. ``timeout``: seconds without an answer."""

    def __init__(self, host: str, port: int, token: bytes, timeout: float = 10.0) -> None:
        self.host, self.port, self.token, self.timeout = host, port, token, timeout
        self.name = f"tcp:{host}:{port}"
        self._client: AgentClient | None = None

    def describe(self) -> Description:
        """See Phone."""
        with self._session() as client:
            facts = client.describe()
        return Description(
            serial=plain_name(facts["serial"]) or plain_name(self.name),
            soc=plain_name(facts["soc"]).lower() or "unknown",
            abi=plain_name(facts["abi"]) or "unknown",
            system=str(facts["system"])[:200],
            core_khz=facts["core_khz"],
        )

    def status(self) -> Status:
        """See Phone."""
        with self._session() as client:
            return _status(client.status())

    def measure(self, batch: Batch, blobs: Mapping[str, Path]) -> Iterator[Measurement | Fault]:
        """See Phone."""
        dump = Dump() if batch.arguments.get("dumps") else None
        self.facts, self.outputs = {}, b""
        limits = Limits(line_cpu_ms=round(1000 * _seconds(batch)))
        graph = _graph(batch)
        with self._session() as client:
            self._send(client, batch, blobs)
            with _checked(batch):
                yield from client.measure(
                    batch.files, graph, batch.groups, batch.rounds, batch.threads, batch.core_mask, limits, dump
                )
            self._keep(client)
        self.outputs = dump.data if dump else b""

    def run(self, batch: Batch, blobs: Mapping[str, Path], output: Path) -> dict[str, object]:
        """See Phone."""
        self.facts = {}
        kind, arguments = _KINDS.get(batch.kind), [_graph(batch), *_words(batch)]
        if kind is None:
            raise JobFailed(f"a batch of kind '{batch.kind}'", "no device knows it", f"Known: {', '.join(_KINDS)}.")
        with self._session() as client:
            self._send(client, batch, blobs)
            with _checked(batch), _own_fault(client):
                text, data = client.network(
                    kind, batch.files, arguments, batch.threads, batch.core_mask, NETWORK_LIMITS, batch.target
                )
            self._keep(client)
        output.mkdir(parents=True, exist_ok=True)
        (output / OUTPUT_FILE).write_bytes(data)
        return {"text": text, **self.facts}

    def recover(self, rung: str) -> bool:
        """See Phone: nobody but its own system starts this agent, so the connection is all that can be made anew."""
        if rung != "reconnect":
            return False
        self._restart()
        return True

    def close(self) -> None:
        """See Phone: the agent itself was there before us, and stays."""
        self._drop()

    def _connect(self) -> AgentClient:
        """Raises: DeviceError."""
        return AgentClient(self.host, self.port, self.token, self.timeout)

    def _restart(self) -> None:
        """Connect anew, and have an answer. Raises: DeviceError."""
        self._drop()
        with self._session(_CUT_SECONDS) as client:
            client.status()

    def _connect_within(self, seconds: float) -> AgentClient:
        """Connect; wait while the agent has not noticed yet that its last client has gone. Raises: DeviceError."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._connect()
            except DeviceError as error:
                if "busy" not in error.why or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @contextmanager
    def _session(self, patience: float = _CLOSED_SECONDS) -> Iterator[AgentClient]:
        """Give a connection that answers; one that broke is dropped. Raises: DeviceError that names this device."""
        try:
            if self._client is not None:
                try:
                    self._client.status()
                except DeviceError:
                    self._drop()
            if self._client is None:
                self._client = self._connect_within(patience)
            yield self._client
        except DeviceError as error:
            what = error.what.replace(f"tcp:{self.host}:{self.port}", self.name)
            if isinstance(error, JobFailed):
                raise JobFailed(what, error.why, error.next) from error
            self._drop()
            raise DeviceError(what, error.why, error.next) from error
        except BaseException:
            self._drop()  # it may be in the middle of a job
            raise

    def _send(self, client: AgentClient, batch: Batch, blobs: Mapping[str, Path]) -> None:
        """Put what the batch needs into the agent's store. Raises: DeviceError."""
        for sha in sorted(set(batch.files.values())):
            if not client.has(sha):
                client.put(sha, blobs[sha].read_bytes())

    def _keep(self, client: AgentClient) -> None:
        self.facts = {"before": client.before, "after": client.after}


def _graph(batch: Batch) -> str:
    """Raises: JobFailed."""
    graph = batch.arguments.get("graph_symbol")
    if not isinstance(graph, str):
        raise JobFailed(f"a batch of kind '{batch.kind}'", "it does not name its graph_symbol")
    return graph


def _words(batch: Batch) -> list[str]:
    """Raises: JobFailed."""
    words = batch.arguments.get("words")
    if not isinstance(words, (list, tuple)):
        raise JobFailed(f"a batch of kind '{batch.kind}'", "it has no words for the runner")
    return [str(word) for word in words]


def _seconds(batch: Batch) -> float:
    """Raises: JobFailed."""
    seconds = batch.arguments.get("run_seconds", _RUN_SECONDS)
    if not isinstance(seconds, (int, float)) or not 0 < seconds <= _MOST_RUN_SECONDS:
        raise JobFailed(f"run_seconds {seconds}", f"expected more than 0 and at most {_MOST_RUN_SECONDS:g}")
    return float(seconds)


@contextmanager
def _checked(batch: Batch) -> Iterator[None]:
    """Say of what no frame can hold, or no agent takes, that it is the batch's fault. Raises: JobFailed."""
    try:
        yield
    except AgentRefusal as refusal:
        if refusal.kind == Trouble.BAD_JOB:
            raise JobFailed(refusal.what, refusal.why, refusal.next) from None
        raise
    except ValueError as error:
        raise JobFailed(f"a batch of kind '{batch.kind}'", str(error)) from None


@contextmanager
def _own_fault(client: AgentClient) -> Iterator[None]:
    """Tell a network's own fault from the device's: after it the agent still answers. Raises: DeviceError."""
    try:
        yield
    except AgentRefusal:
        raise
    except DeviceError as error:
        try:
            client.status()
        except DeviceError:
            raise error from None
        raise JobFailed(error.what, error.why, error.next) from None


def _status(facts: Mapping[str, Any]) -> Status:
    return Status(**{f.name: facts[f.name] for f in fields(Status)})
