"""A device where an agent runs, reached over TCP: ``tcp:HOST:PORT``, for whole networks."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from xnncc.device.agent_client import NETWORK_LIMITS, AgentClient
from xnncc.device.agent_frames import Kind
from xnncc.device.agent_token import agent_token
from xnncc.device.artefact import library_file, package_file
from xnncc.device.runner import RunnerDevice
from xnncc.errors import BadTarget, DeviceError
from xnncc.target import Target, load_target

_KINDS = {"run": Kind.RUN, "time": Kind.TIME, "trace": Kind.TRACE}


def connect_agent(spec: str) -> AgentClient:
    """Return a session with the agent of a spec ``tcp:HOST:PORT``. Raises: DeviceError."""
    host, _, port = spec.removeprefix("tcp:").rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise DeviceError(f"device '{spec}'", "it is not of the form tcp:HOST:PORT", "Example: tcp:192.168.1.7:5060")
    return AgentClient(host, int(port), agent_token(spec))


def check_abi(client: AgentClient, target: Target) -> dict[str, Any]:
    """Return the agent's description. Raises: DeviceError when code for ``target`` does not run there."""
    facts = client.describe()
    abi = str(facts["abi"])
    if target.abi != abi and not (abi == "x86-64" and target.abi.startswith("x86-64")):
        raise client.wire.error(f"it runs {abi} and not {target.abi}", "Build for its ABI, or choose another device.")
    return facts


class TcpDevice(RunnerDevice):
    """The device whose agent listens there; each call is a session of its own."""

    name = "tcp"

    def __init__(self, manifest: dict[str, Any], spec: str) -> None:
        super().__init__(manifest)
        self.spec = spec
        # A target of the user's own is not known here: whether it fits shows when it runs.
        with connect_agent(spec) as client, suppress(BadTarget):
            check_abi(client, load_target(str(manifest["target"])))

    def call(self, folder: Path, arguments: list[str], inputs: bytes, regions: str | None) -> tuple[str, bytes]:
        """See RunnerDevice."""
        mode, threads, sizes, *more = arguments
        files = {
            "library": library_file(folder, self.manifest).read_bytes(),
            "package": package_file(folder, self.manifest).read_bytes(),
            "inputs": inputs,
        }
        if regions is not None:
            files["regions"] = regions.encode()
        words = [str(self.manifest["graph_symbol"]), sizes, *more]
        with connect_agent(self.spec) as client:
            names = client.put_all(files)
            target = str(self.manifest["target"])
            try:
                return client.network(_KINDS[mode], names, words, int(threads), 0, NETWORK_LIMITS, target)
            except ValueError as error:
                raise client.wire.error(f"no agent takes such a job: {error}") from None
