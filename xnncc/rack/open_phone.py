"""From a spec, as the registry keeps it, to the phone: ``adb:SERIAL`` or ``tcp:HOST:PORT``."""

from __future__ import annotations

from xnncc.rack.discover import split_spec
from xnncc.rack.phone import Phone


def open_phone(spec: str, token: bytes = b"", may_reboot: bool = False) -> Phone:
    """Return the phone that ``spec`` names; nothing is asked of it yet.

    ``token``: what a tcp agent was started with; an adb phone gets one of its own each time. Raises: BadInput, and
    DeviceError where adb is not installed.
    """
    kind, name, port = split_spec(spec)
    if kind == "adb":
        from xnncc.rack.adb_phone import AdbPhone

        return AdbPhone(name, may_reboot)
    from xnncc.rack.agent_phone import AgentPhone

    return AgentPhone(name, port, token)
