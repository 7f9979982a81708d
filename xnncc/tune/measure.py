"""From candidates to results: compile, link, measure on the devices, and sort what went wrong by whose doing it was."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..device.bench import Bench, Dump, Fault, Group, Library, Measurement
from ..errors import DeviceError
from ..schedule.records import config_fields
from .candidates import Workshop
from .check_winner import tolerance
from .journal import Entry
from .tasks import Task

ROUNDS = 8  # of a candidate that is not far behind
VISITS, VISIT_ROUNDS = 3, 12  # of a winner: its group is run three times with others in between

Groups = Sequence[tuple[Task, Sequence[int]]]


@dataclass
class Measurer:
    """Measures on ``benches``, equal devices; one that is lost is left out from then on."""

    workshop: Workshop
    benches: list[Bench]
    threads: int
    warnings: list[str] = field(default_factory=list)

    def try_candidates(self, batch: Groups) -> list[Entry]:
        """Return an entry for each candidate of ``batch``; the analytic choice joins every group, to compare with.

        Raises: DeviceError when no device is left.
        """
        wanted = [(task, list(dict.fromkeys((0, *indices)))) for task, indices in batch]
        compiled = self.workshop.compile([(task, i) for task, indices in wanted for i in indices])
        entries = [
            self._entry(task, i, fault="refused", words=str(compiled[task.key, i]))
            for task, indices in wanted
            for i in indices
            if isinstance(compiled[task.key, i], str)
        ]
        good = [(task, [i for i in ids if not isinstance(compiled[task.key, i], str)]) for task, ids in wanted]
        good = [(task, ids) for task, ids in good if ids and ids[0] == 0]
        if not good:
            return entries
        library, groups = self.workshop.link(good)
        found = self._spread(library, groups)
        for (task, indices), group in zip(good, groups, strict=True):
            first = found.get(group.candidates[0])
            for index, candidate in zip(indices, group.candidates, strict=True):
                result = found.get(candidate)
                if isinstance(result, Measurement) and isinstance(first, Measurement):
                    entries.append(self._measured(task, index, result, first))
                elif isinstance(result, Fault):
                    entries.append(self._entry(task, index, fault=result.kind, words=result.words))
        return entries

    def _measured(self, task: Task, index: int, result: Measurement, first: Measurement) -> Entry:
        if not result.error <= tolerance(task):
            words = f"differs from the analytic choice by {result.error:.1e}"
            return self._entry(task, index, fault="wrong", words=words)
        return Entry(
            task.key, config_fields(task.space[index]), self.workshop.target.fingerprint, self.benches[0].description,
            self.threads, round(result.us, 3), round(result.median_us, 3), round(result.mad_us, 3),
            round(result.us / first.us, 4) if first.us else 1.0,
        )  # fmt: skip

    def _entry(self, task: Task, index: int, fault: str, words: str) -> Entry:
        config, target = config_fields(task.space[index]), self.workshop.target
        return Entry(
            task.key, config, target.fingerprint, self.benches[0].description, self.threads, fault=fault, words=words
        )

    def _spread(self, library: Library, groups: list[Group]) -> dict[int, Measurement | Fault]:
        """Return the results of all groups, shared out among the devices; what a lost one leaves goes to the others."""
        found: dict[int, Measurement | Fault] = {}
        left = groups
        while left:
            shares = [left[n :: len(self.benches)] for n in range(len(self.benches))]

            def run(share: tuple[Bench, list[Group]]) -> tuple[Bench, dict[int, Measurement | Fault], str]:
                bench, mine = share
                results: dict[int, Measurement | Fault] = {}
                try:
                    results.update((r.candidate, r) for r in bench.measure(library, mine, ROUNDS, self.threads))
                except DeviceError as error:
                    return bench, results, str(error)
                return bench, results, ""

            with ThreadPoolExecutor(max_workers=len(shares)) as pool:
                outcomes = list(pool.map(run, zip(self.benches, shares, strict=True)))
            for bench, results, lost in outcomes:
                found |= results
                if lost:
                    self._leave_out(bench, lost)
            lost_any = any(lost for *_, lost in outcomes)
            left = [g for g in left if not any(c in found for c in g.candidates)] if lost_any else []
        return found

    def _leave_out(self, bench: Bench, why: str) -> None:
        self.benches.remove(bench)
        if not self.benches:
            raise DeviceError(
                f"device '{bench.name}' was lost", why, "What was measured is kept: run the same command."
            )
        self.warnings.append(f"device '{bench.name}' was lost: {why}")

    def race(self, groups: Groups) -> dict[tuple[str, int], list[Measurement]]:
        """Return the visits of each candidate, in ``VISITS`` rounds through all groups on one device; one that failed
        has fewer."""
        compiled = self.workshop.compile([(task, i) for task, indices in groups for i in indices])
        good = [(task, [i for i in indices if not isinstance(compiled[task.key, i], str)]) for task, indices in groups]
        library, linked = self.workshop.link(good)
        names = [(task.key, index) for task, indices in good for index in indices]
        visits: dict[tuple[str, int], list[Measurement]] = {name: [] for name in names}
        for result in self.benches[0].measure(library, linked * VISITS, VISIT_ROUNDS, self.threads):
            if isinstance(result, Measurement):
                visits[names[result.candidate]].append(result)
        return visits

    def outputs(self, candidates: Sequence[tuple[Task, int]]) -> bytes:
        """Return what candidates that work write, raw, one after the other."""
        library, groups = self.workshop.link([(task, [index]) for task, index in candidates])
        dump = Dump()
        for _ in self.benches[0].measure(library, groups, 0, self.threads, dump):
            pass
        return dump.data
