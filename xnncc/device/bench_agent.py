"""A bench where an agent runs, reached over TCP: ``tcp:HOST:PORT``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xnncc.device.agent_frames import Limits
from xnncc.device.bench import Bench, Dump, Fault, Group, Library, Measurement
from xnncc.device.static_program import static_measure
from xnncc.device.tcp import check_abi, connect_agent
from xnncc.target import Target


class AgentBench(Bench):
    """The device whose agent listens there, held by one session for as long as the bench is open."""

    name = "tcp"
    is_elsewhere = True

    def __init__(self, target: Target, spec: str) -> None:
        self.target = target
        self.client = connect_agent(spec)
        try:
            self.facts = check_abi(self.client, target)
        except BaseException:
            self.client.close()
            raise

    def measure(
        self, library: Library, groups: Sequence[Group], rounds: int, threads: int = 1, dump: Dump | None = None
    ) -> Iterator[Measurement | Fault]:
        """See Bench."""
        files = {"library": library.library.read_bytes(), "package": library.package.read_bytes()}
        if not self.facts["loads_libraries"]:
            files["program"] = static_measure(self.target, library.objects, library.graph_symbol)
        names = self.client.put_all(files)
        yield from self.client.measure(names, library.graph_symbol, groups, rounds, threads, limits=Limits(), dump=dump)

    @property
    def description(self) -> str:
        """See Bench."""
        return str(self.facts["soc"])

    def close(self) -> None:
        """See Bench."""
        self.client.close()
