"""A bench on an Android phone over adb: our agent is put there and spoken to through a forwarded port."""

from __future__ import annotations

from contextlib import suppress

from xnncc.device.adb_agent import AgentOnPhone
from xnncc.device.adb_client import Adb
from xnncc.device.agent_build import agent_program
from xnncc.device.agent_client import AgentClient
from xnncc.device.bench_agent import AgentBench
from xnncc.errors import DeviceError
from xnncc.target import Target


class AdbBench(AgentBench):
    """The phone with that serial number, or the only one that is attached when the number is empty."""

    name = "adb"

    def __init__(self, target: Target, serial: str) -> None:
        if target.toolchain.libc != "bionic":
            raise DeviceError(f"target '{target.name}' on adb", "it is not for Android", "Use --target android-arm64.")
        self.adb = Adb(serial)
        abis = self.adb.abis()
        if target.abi not in abis:
            why = f"it runs {', '.join(abis)} and not {target.abi}"
            raise DeviceError(self.adb.what, why, "Tune for one of its ABIs.")
        self.soc = self.adb.soc()
        self.agent = AgentOnPhone(self.adb, agent_program(target))
        self.port = 0
        try:
            self.port = self.adb.forward(self.agent.start())
            self.client = AgentClient("127.0.0.1", self.port, self.agent.token)
            self.facts = self.client.describe()
        except BaseException:
            self._let_go()
            raise

    @property
    def description(self) -> str:
        """See Bench."""
        return self.soc or super().description

    def close(self) -> None:
        """See Bench."""
        super().close()
        self._let_go()

    def _let_go(self) -> None:
        with suppress(DeviceError):
            if self.port:
                self.adb.unforward(self.port)
            self.agent.stop()
