"""Where artefacts run: on this machine, under an emulator, on a phone. A device knows folders, not models.

    open_device(spec, manifest) -> Device with run, time, trace

``spec`` is what ``--device`` says: "host", "emulator", "browser", "adb:SERIAL", "tcp:HOST:PORT", "rack:KEY" or
nothing: the target's own.
"""

from __future__ import annotations

from typing import Any

from xnncc.device.artefact import Device, Timings
from xnncc.errors import BadTarget, DeviceError, nearest

__all__ = ["Device", "Timings", "open_device"]

_KINDS = ["host", "emulator", "browser", "adb:SERIAL", "tcp:HOST:PORT", "rack:KEY"]


def open_device(spec: str | None, manifest: dict[str, Any]) -> Device:
    """Return the device that ``spec`` names, checked to run artefacts like the one of ``manifest``.

    Raises: DeviceError, also when the target's instructions or system are not the device's.
    """
    kind = spec or _own_device(manifest)
    if kind == "host":
        from xnncc.device.host import HostDevice

        return HostDevice(manifest)
    if kind == "emulator":
        from xnncc.device.emulator import open_emulator

        return open_emulator(manifest)
    if kind == "browser":
        from xnncc.device.browser import BrowserDevice

        return BrowserDevice(manifest)
    if kind.startswith("adb"):
        from xnncc.device.adb import AdbDevice

        return AdbDevice(manifest, kind.partition(":")[2])
    if kind.startswith("tcp:"):
        from xnncc.device.tcp import TcpDevice

        return TcpDevice(manifest, kind)
    if kind.startswith("rack:"):
        from xnncc.device.rack import RackDevice

        return RackDevice(manifest, kind.partition(":")[2])
    raise DeviceError(f"unknown device '{kind}'{nearest(kind, _KINDS)}", "", "Known: " + ", ".join(_KINDS) + ".")


def _own_device(manifest: dict[str, Any]) -> str:
    """Return the device that proves the artefact's target.

    Raises: DeviceError when there is none, or the target is of a file that is not known here.
    """
    from xnncc.target import load_target

    name = str(manifest["target"])
    try:
        device = load_target(name).device
    except BadTarget:
        raise DeviceError(f"target '{name}' is not known here", "", "Say where to run it with --device.") from None
    if not device:
        raise DeviceError(
            f"target '{name}'", "nothing here runs it", "Copy the folder to such a device and call it there."
        )
    return device
