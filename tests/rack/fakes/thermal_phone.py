"""A Phone whose kernels' true speeds are known and whose temperature is a model's: nothing runs, and no time passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from xnncc.device.bench import Fault, Group, Measurement
from xnncc.rack.phone import Batch, Description, Phone, Status
from xnncc.rack.steady import ReferenceJob
from xnncc.rack.thermal_model import ThermalModel

REFERENCE = ReferenceJob({"library": "a" * 64, "package": "b" * 64}, {}, Group((0,), 1, 4, 4), "xnn_reference_graph")
_REFERENCE_US, _REFERENCE_SHARE = 900.0, 0.97
_FLUSH_US = 900.0  # what measure.c reads between two runs
_SLOWER = 1 / 0.75  # behind the best of its group a candidate is not timed again, after the third round


class ThermalPhone(Phone):
    """``truth``: candidate -> (microseconds at full speed, share of it that the clock decides), or a Fault."""

    def __init__(self, model: ThermalModel, truth: Mapping[int, tuple[float, float] | Fault]) -> None:
        self.model, self.truth = model, truth
        self.jobs = 0
        self.measured: list[int] = []  # candidates, each time

    def describe(self) -> Description:
        """See Phone."""
        return Description("SIM", "sim1", "arm64-v8a", "model", self.model.chip.khz[:1] * 4)

    def status(self) -> Status:
        """See Phone."""
        return Status(celsius=self.model.celsius, core_khz=(self.model.khz,), throttled=self.model.throttled)

    def measure(self, batch: Batch, blobs: Mapping[str, Path]) -> Iterator[Measurement | Fault]:
        """See Phone; as runtime/tools/measure.c does it."""
        self.jobs += 1
        self.model.wait(0.05)  # a job's start
        before = {"celsius": self.model.celsius}
        is_reference = batch.arguments.get("graph_symbol") == REFERENCE.graph_symbol
        for group in batch.groups:
            yield from self._group(group, batch.rounds, is_reference)
        self.facts = {"before": before, "after": {"celsius": self.model.celsius}}
        self.outputs = bytes(g.candidates[0] for g in batch.groups) if batch.arguments.get("dumps") else b""

    def _group(self, group: Group, rounds: int, is_reference: bool) -> Iterator[Measurement | Fault]:
        times: dict[int, list[float]] = {c: [] for c in group.candidates}
        for number in range(rounds):
            for candidate in list(times):
                best = min((min(found) for found in times.values() if found), default=0.0)
                if number >= 3 and candidate != group.candidates[0] and min(times[candidate]) > best * _SLOWER:
                    continue
                what = (_REFERENCE_US, _REFERENCE_SHARE) if is_reference else self.truth[candidate]
                if isinstance(what, Fault):
                    self.model.run(5e6)  # it hangs, and heats
                    del times[candidate]
                    yield what
                    continue
                self.model.run(_FLUSH_US, 0.2)
                times[candidate].append(self.model.run(*what))
        self.measured += [] if is_reference else list(times)
        for candidate, found in times.items():
            yield Measurement(candidate, tuple(round(1000 * us) for us in found), 0.0)

    def run(self, batch: Batch, blobs: Mapping[str, Path], output: Path) -> dict[str, object]:
        """See Phone."""
        return {"text": "done"}

    def recover(self, rung: str) -> bool:
        """See Phone."""
        return False

    def close(self) -> None:
        """See Phone."""
