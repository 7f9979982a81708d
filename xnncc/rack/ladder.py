"""The recovery ladder: what is tried, in order, when a device has failed and no kernel is to blame.

    climb(phone, tell) -> Climb(rung="reconnect", words=...)    rung "" when nothing helped: someone has to look

A rung has helped when the device answers afterwards. What was tried is told as it happens.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xnncc.errors import DeviceError
from xnncc.rack.phone import Phone

RUNGS = ("restart-agent", "reconnect", "reboot")
_WEBHOOK_SECONDS = 30
_log = logging.getLogger("xnncc.rack")


@dataclass(frozen=True)
class Climb:
    """How far it went: the rung that helped, "" for none, and what each one said."""

    rung: str
    words: str


def climb(phone: Phone, tell: Callable[[str, str], None], rungs: Sequence[str] = RUNGS) -> Climb:
    """Try the rungs until the device answers. ``tell(rung, outcome)`` hears of each that the device has."""
    said = []
    for rung in rungs:
        try:
            if not phone.recover(rung):
                continue
            phone.status()
        except DeviceError as error:
            outcome = f"failed: {error}"
        else:
            tell(rung, "helped")
            return Climb(rung, f"{rung} helped")
        tell(rung, outcome)
        said.append(f"{rung} {outcome}")
    return Climb("", "; ".join(said) or "it has nothing to restart")


def tell_someone(command: Sequence[str], serial: str, state: str, reason: str) -> None:
    """Log that a device needs a person, and run ``command`` with serial, state and reason as further arguments.

    It is no shell line; it gets half a minute, and its failure is logged and hurts nothing.
    """
    _log.warning("%s is %s: %s", serial, state, reason)
    if not command:
        return
    try:
        null = subprocess.DEVNULL
        ended = subprocess.run(
            [*command, serial, state, reason],
            stdin=null,
            stdout=null,
            stderr=null,
            timeout=_WEBHOOK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.error("the command that tells someone failed: %s", error)
        return
    if ended.returncode:
        _log.error("the command that tells someone ended with %d", ended.returncode)
