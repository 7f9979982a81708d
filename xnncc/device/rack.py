"""Whole networks on a device of the rack: ``rack:KEY``, whichever of that key is free first."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from xnncc.device.artefact import library_file, package_file
from xnncc.device.rack_client import BatchFailed, RackClient
from xnncc.device.rack_devices import GONE_S, PATIENCE_S, Presence, find_devices, read_wish
from xnncc.device.rack_wire import batch_document
from xnncc.device.runner import RunnerDevice
from xnncc.errors import BadTarget, DeviceError
from xnncc.target import load_target

OUTPUT = "out.bin"
_WAIT_S = 10.0


class RackDevice(RunnerDevice):
    """The devices of a wish (rack_devices.py); each call is a batch of its own and may come to another one of them."""

    name = "rack"

    def __init__(self, manifest: dict[str, Any], wish: str, gone_s: float = GONE_S) -> None:
        """Raises: DeviceError, BadInput."""
        super().__init__(manifest)
        self.wish, self.gone_s = read_wish(wish), gone_s
        target = None
        with suppress(BadTarget):  # a target of the user's own: whether it fits shows when it runs
            target = load_target(str(manifest["target"]))
        with RackClient(patience_s=PATIENCE_S) as client:
            find_devices(client, self.wish.key, target)

    def call(self, folder: Path, arguments: list[str], inputs: bytes, regions: str | None) -> tuple[str, bytes]:
        """See RunnerDevice."""
        mode, threads, *words = arguments
        contents: dict[str, Path | bytes] = {
            "library": library_file(folder, self.manifest), "package": package_file(folder, self.manifest),
            "inputs": inputs,
        }  # fmt: skip
        if regions is not None:
            contents["regions"] = regions.encode()
        more = {"graph_symbol": str(self.manifest["graph_symbol"]), "words": words}
        with RackClient(patience_s=PATIENCE_S) as client:
            files = {name: client.put_blob(content) for name, content in contents.items()}
            document = batch_document(mode, str(self.manifest["target"]), files, threads=int(threads), arguments=more)
            name = f"{mode} {self.manifest.get('name', folder.name)}"
            job = client.create_job(name, self.wish.key, self.wish.priority, self.wish.weight)
            try:
                ended = self._wait(client, client.submit(job, secrets.token_hex(16), document))
            except BaseException:
                with suppress(DeviceError):
                    client.cancel_job(job)
                raise
            data = client.get_blob(str(ended["files"][OUTPUT])) if OUTPUT in ended["files"] else b""
            return str(ended["facts"].get("text", "")), data

    def _wait(self, client: RackClient, batch: str) -> dict[str, Any]:
        """Return the last document of a batch. Raises: DeviceError."""
        presence = Presence(client, self.wish.key, self.gone_s)
        while True:
            document = client.results(batch, wait=_WAIT_S)
            if document["state"] == "done":
                return document
            if document["state"] == "failed":
                error = document["error"] or {}
                words = [str(error.get(name, "")) for name in ("what", "why", "next")]
                raise BatchFailed(*words, kind=str(error.get("kind", "")))
            presence.check()
