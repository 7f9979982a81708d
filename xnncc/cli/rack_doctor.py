"""xnncc rack doctor: what is wrong with the broker, with adb and with each device, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output
from xnncc.cli.rack_serve import Rack

if TYPE_CHECKING:
    from xnncc.rack.discover import Found

_STATES = {
    "offline": "Look at its cable, its hub and its screen; `adb devices -l` says what adb sees.",
    "cooling": "Wait, or move it to a cooler place.",
}
_QUARANTINES = {
    "faults": "It is tried again by itself; `xnncc rack release {serial}` tries it now.",
    "preflight": "It is used again by itself once that is repaired.",
    "admin": "End it with `xnncc rack release {serial}`.",
}


@dataclass(frozen=True)
class Finding:
    """One line. ``state``: "ok", "wait" (it passes by itself) or "WRONG"."""

    state: str
    subject: str
    words: str
    next: str = ""


def doctor(url: Rack = None, json_only: flags.Json = False, quiet: flags.Quiet = False) -> None:
    """Say what is wrong with the broker, adb and the devices, and what to do.

    Exit code 1 when something is wrong.
    """
    out = Output(json_only=json_only, quiet=quiet)
    with out.progress("looking at the rack"):
        findings = [*_adb(), *_broker(url)]
    wrong = [one for one in findings if one.state == "WRONG"]
    out.document({"ok": not wrong, "findings": [vars(one) for one in findings]})
    rows = [(one.state, one.subject, one.words, one.next) for one in findings]
    out.table(("", "what", "how it is", "what to do"), rows, mark=findings.index(wrong[0]) if wrong else None)
    if wrong:
        out.result(f"{len(wrong)} wrong: {', '.join(one.subject for one in wrong)}")
        raise typer.Exit(1)
    out.result("nothing is wrong")


def _adb() -> list[Finding]:
    """Return what adb says, phone by phone."""
    from xnncc.errors import DeviceError
    from xnncc.rack.discover import found_phones

    try:
        phones = found_phones()
    except DeviceError as error:
        return [Finding("wait", "adb", f"{error.why or error.what}", error.next or "apt-get install adb")]
    rows = [Finding("ok", "adb", f"sees {len(phones)} phones")]
    return [*rows, *(_phone(one) for one in phones if not one.is_usable)]


def _phone(found: Found) -> Finding:
    return Finding("WRONG", found.spec, found.reason, found.next)


def _broker(url: str | None) -> list[Finding]:
    """Return how the broker is, and each of its devices."""
    from xnncc.cli.rack import open_client
    from xnncc.errors import XnnccError

    try:
        with open_client(url) as client:
            health, devices = client.health(), client.devices()
            where = client.config.url
    except XnnccError as error:
        return [Finding("WRONG", error.what, error.why, error.next)]
    if "version" not in health:
        return [Finding("WRONG", f"rack {where}", "it does not know this token", "Set XNNCC_RACK_TOKEN.")]
    words = f"version {health['version']}, {len(devices)} devices, {health['queued']} batches wait"
    rows = [Finding("ok", f"rack {where}", words)]
    if health["problem"]:
        rows.append(Finding("WRONG", "the broker's adb", health["problem"], "Install adb where the broker runs."))
    if not devices:
        rows.append(Finding("WRONG", "devices", "there is none", "Plug a phone in, or `xnncc rack add tcp:HOST:PORT`."))
    return [*rows, *(_device(one) for one in devices)]


def _device(device: dict[str, Any]) -> Finding:
    serial, state = str(device["serial"]), str(device["state"])
    subject = f"{device['name'] or serial} ({device['key']})"
    words = f"{state}: {device['reason']}" if device["reason"] else state
    if state in ("free", "busy"):
        return Finding("ok", subject, words)
    if state == "quarantined":
        step = _QUARANTINES.get(str(device["quarantined_by"]), "").format(serial=serial)
        return Finding("WRONG", subject, words, step)
    return Finding("wait" if state == "cooling" else "WRONG", subject, words, _STATES.get(state, ""))
