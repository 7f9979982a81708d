"""From candidates to results: compile, link, measure on the devices, and sort what went wrong by whose doing it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..device.bench import Bench, Dump, Fault, Group, Library, Measurement
from ..errors import DeviceError
from ..schedule.records import config_fields
from .candidates import Workshop
from .check_winner import tolerance
from .journal import LOST, Entry
from .tasks import Task

ROUNDS = 8  # of a candidate that is not far behind
VISITS, VISIT_ROUNDS = 3, 12  # of a winner: its group is run three times with others in between

Groups = Sequence[tuple[Task, Sequence[int]]]
Results = dict[int, Measurement | Fault]
Keep = Callable[[list[Entry]], None]


@dataclass(frozen=True)
class Prepared:
    """Candidates in one library, ready for a device; ``refused`` those that could not be compiled."""

    wanted: list[tuple[Task, list[int]]]
    library: Library | None
    groups: list[Group]
    refused: list[Entry]


@dataclass
class Measurer:
    """Measures on ``benches``, equal devices; one that is lost is left out from then on."""

    workshop: Workshop
    benches: list[Bench]
    threads: int
    warnings: list[str] = field(default_factory=list)

    @property
    def is_elsewhere(self) -> bool:
        """Whether this machine is free to compile while they measure."""
        return all(bench.is_elsewhere for bench in self.benches)

    def prepare(self, batch: Groups) -> Prepared:
        """Compile and link candidates; the analytic choice joins every group, to compare with."""
        wanted = [(task, list(dict.fromkeys((0, *indices)))) for task, indices in batch]
        compiled = self.workshop.compile([(task, i) for task, indices in wanted for i in indices])
        refused = [
            self._entry(task, i, fault="refused", words=str(compiled[task.key, i]))
            for task, indices in wanted
            for i in indices
            if isinstance(compiled[task.key, i], str)
        ]
        good = [(task, [i for i in ids if not isinstance(compiled[task.key, i], str)]) for task, ids in wanted]
        good = [(task, ids) for task, ids in good if ids and ids[0] == 0]
        library, groups = self.workshop.link(good) if good else (None, [])
        return Prepared(good, library, groups, refused)

    def measure(self, ready: Prepared, keep: Keep) -> None:
        """Hand the entries of each group to ``keep`` as soon as it is done, from any thread but one at a time; a
        candidate that no device could be made to measure is ``LOST``.

        Raises: DeviceError when no device is left.
        """
        if ready.refused:
            keep(ready.refused)
        if ready.library is None:
            return
        names = dict(zip((g.candidates for g in ready.groups), ready.wanted, strict=True))

        def group_is_over(group: Group, found: Results) -> None:
            task, indices = names[group.candidates]
            first = found.get(group.candidates[0])
            entries = []
            for index, candidate in zip(indices, group.candidates, strict=True):
                result = found.get(candidate)
                if isinstance(result, Measurement) and isinstance(first, Measurement):
                    entries.append(self._measured(task, index, result, first))
                elif isinstance(result, Fault):
                    entries.append(self._entry(task, index, fault=result.kind, words=result.words))
                else:
                    entries.append(self._entry(task, index, fault=LOST, words="not measured"))
            keep(entries)

        self._spread(ready.library, ready.groups, group_is_over)

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

    def _spread(self, library: Library, groups: list[Group], is_over: Callable[[Group, Results], None]) -> None:
        """Measure all groups, shared out among the devices; what a lost one leaves goes to the others."""
        lock = threading.Lock()
        left = groups
        while left:
            shares = [left[n :: len(self.benches)] for n in range(len(self.benches))]
            done: set[tuple[int, ...]] = set()

            def run(share: tuple[Bench, list[Group]], done: set[tuple[int, ...]] = done) -> tuple[Bench, str]:
                bench, mine = share
                results: Results = {}
                of_candidate = {c: group for group in mine for c in group.candidates}
                try:
                    for result in bench.measure(library, mine, ROUNDS, self.threads):
                        results[result.candidate] = result
                        group = of_candidate[result.candidate]
                        if all(c in results for c in group.candidates):
                            with lock:
                                done.add(group.candidates)
                                is_over(group, results)
                except DeviceError as error:
                    return bench, str(error)
                for group in mine:  # of a group whose first candidate crashed the rest says nothing
                    if group.candidates not in done:
                        with lock:
                            done.add(group.candidates)
                            is_over(group, results)
                return bench, ""

            with ThreadPoolExecutor(max_workers=len(shares)) as pool:
                outcomes = list(pool.map(run, zip(self.benches, shares, strict=True)))
            for bench, lost in outcomes:
                if lost:
                    self._leave_out(bench, lost)
            left = [group for group in left if group.candidates not in done]

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
