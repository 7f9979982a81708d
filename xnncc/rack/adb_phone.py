"""A phone over adb: our agent is pushed there, started, and spoken to through a forwarded port.

    AdbPhone("R5CT10").measure(batch, blobs) -> Measurement | Fault, one by one

Unproven on a real phone; proven against a daemon of the tests behind the real adb client.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from xnncc.device.adb_agent import AgentOnPhone
from xnncc.device.adb_client import Adb, attached, is_network
from xnncc.device.agent_build import agent_program
from xnncc.device.agent_client import AgentClient
from xnncc.errors import DeviceError
from xnncc.rack.adb_facts import description_of, merged, status_of
from xnncc.rack.agent_phone import AgentPhone
from xnncc.rack.phone import Description, Status
from xnncc.target import load_target

_TARGETS = {"arm64-v8a": "android-arm64"}  # the agent has no 32-bit build
_BACK_SECONDS = 30.0  # until a phone that was plugged in again, or kicked, answers adb
_BOOT_SECONDS = 240.0
_CONNECT_SECONDS = 15.0


class AdbPhone(AgentPhone):
    """The phone that adb calls ``serial``. It is rebooted only with ``may_reboot``."""

    def __init__(self, serial: str, may_reboot: bool = False) -> None:
        super().__init__("127.0.0.1", 0, b"")
        self.adb = Adb(serial)
        self.name = f"adb:{serial}"
        self.may_reboot = may_reboot
        self._agent: AgentOnPhone | None = None

    def describe(self) -> Description:
        """See Phone."""
        self._is_there()
        who = description_of(self.adb, list(_TARGETS))
        return who if who.core_khz else replace(who, core_khz=super().describe().core_khz)

    def status(self) -> Status:
        """See Phone: what the agent reads and what Android's services say, together. A dark screen is woken first."""
        own, services = super().status(), status_of(self.adb)
        if services.screen_on is False and self._agent is not None:
            self._agent.wake()
            services = status_of(self.adb)
        return merged(own, services)

    def recover(self, rung: str) -> bool:
        """See Phone."""
        if rung == "reboot" and not self.may_reboot:
            return False
        if rung == "reconnect":
            self._drop()
            self._reconnect()
        elif rung == "reboot":
            self._drop()
            self._reboot()
        elif rung != "restart-agent":
            return False
        self._restart()
        return True

    def close(self) -> None:
        """See Phone; a phone that is gone keeps what it has until it is opened again."""
        self._drop()
        if self._agent is not None:
            with suppress(DeviceError):
                self._agent.stop()
            self._agent = None

    def _connect(self) -> AgentClient:
        """Start a fresh agent, and connect to it. Raises: DeviceError."""
        self._is_there()
        if self._agent is None:
            program = agent_program(load_target(_TARGETS[description_of(self.adb, list(_TARGETS)).abi]))
            self._agent = AgentOnPhone(self.adb, program)
        port = self._agent.start()
        self._unforward()
        self.port, self.token = self.adb.forward(port), self._agent.token
        return super()._connect()

    def _drop(self) -> None:
        super()._drop()
        self._unforward()

    def _unforward(self) -> None:
        if self.port:
            with suppress(DeviceError):
                self.adb.unforward(self.port)
            self.port = 0

    def _reconnect(self) -> None:
        """Let adb find the phone anew. Raises: DeviceError when it does not come back."""
        if not is_network(self.adb.serial):
            self.adb.outcome("reconnect")
        self._wait(self._is_there, _BACK_SECONDS, "come back")

    def _reboot(self) -> None:
        """Raises: DeviceError when it does not come back."""
        before = self._uptime()
        self.adb.call("reboot")

        def has_booted() -> bool:
            is_new = self._is_there() and self._uptime() < before
            return is_new and self.adb.shell("getprop sys.boot_completed").strip() == "1"

        self._wait(has_booted, _BOOT_SECONDS, "start again")

    def _is_there(self) -> bool:
        """Whether adb can use it. A phone in the network, of which adb knows only what it was told, is told anew."""
        if self._is_usable():
            return True
        if is_network(self.adb.serial):
            Adb().outcome("disconnect", self.adb.serial)
            Adb().outcome("connect", self.adb.serial, seconds=_CONNECT_SECONDS)
        return self._is_usable()

    def _is_usable(self) -> bool:
        return any(phone.serial == self.adb.serial and phone.state == "device" for phone in attached())

    def _uptime(self) -> float:
        words = self.adb.shell("cat /proc/uptime").split()
        if not words or not words[0].replace(".", "", 1).isdecimal():
            raise DeviceError(self.adb.what, "it does not say how long it has run")
        return float(words[0])

    def _wait(self, claim: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while True:
            with suppress(DeviceError):
                if claim():
                    return
            if time.monotonic() > deadline:
                why = f"it did not {what} within {seconds:g} s"
                raise DeviceError(self.adb.what, why, "Look at the phone, its cable and its hub.")
            time.sleep(0.5)
