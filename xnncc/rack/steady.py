"""A phone that is measured with discipline: its results are those of a device at full speed, or there are none.

    steady = SteadyPhone(phone, reference_job(target), cool)      a Phone like any other
    steady.measure(batch, blobs) -> Measurement | Fault

Between two readings of the reference kernel (drift) lies a piece of the batch, two seconds at most. What was measured
while the device changed its speed is thrown away and measured again, in shorter pieces, once it has cooled. Times are
divided by what the reference says, runs that are outliers are left out, and candidates whose runs lie too far apart are
timed once more (spread). All of it has bounds: a device that never holds its speed is an infrastructure fault.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from xnncc.device.bench import Fault, Group, Measurement
from xnncc.device.reference_kernel import reference_kernel
from xnncc.errors import DeviceError
from xnncc.rack.cooling import CoolingBenefit
from xnncc.rack.drift import DriftWatch, Reading, change_within, reading
from xnncc.rack.phone import Batch, Description, Phone, Status
from xnncc.rack.spread import divided, groups_of, merged, trimmed, unsettled
from xnncc.target import Target

REFERENCE_ROUNDS = 24
FRESH_S = 1.0  # so long the reading after one piece is also the one before the next
LONGEST_S = 2.0  # of a piece: a phone's clock may go down and up again within a few seconds
LEAST_S = 0.1
LEAST_ROUNDS = 5  # of a visit
MOST_IN_VAIN = 10  # pieces in a row
REST_S = 15.0  # for a device without a thermometer, or with one that lies
MOST_AGAIN = 2  # times that a candidate is timed once more for its spread

Results = dict[int, Measurement | Fault]


@dataclass(frozen=True)
class ReferenceJob:
    """The reference kernel as a batch: its files (name -> SHA-256), where their bytes are, its group and its symbol."""

    files: Mapping[str, str]
    blobs: Mapping[str, Path]
    group: Group
    graph_symbol: str


def reference_job(target: Target) -> ReferenceJob:
    """Return the job for a target, compiled when it is not there yet. Raises: ToolchainError, OutputError."""
    library, group = reference_kernel(target)
    paths = {"library": library.library, "package": library.package}
    files = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()}
    return ReferenceJob(files, {files[name]: path for name, path in paths.items()}, group, library.graph_symbol)


class SteadyPhone(Phone):
    """``phone`` with discipline. One for as long as the device is attached: it knows the device's full speed.

    ``cool``: called when the device should cool; it returns when it has (see cooling.wait_until_cool), or raises.
    ``watch``: has the baseline, which may be kept over restarts (``watch.baseline_us``).
    ``rest``: a sleep, for a device that is slow although its sensors call it cool: ``cool`` returns at once then.
    After a batch ``facts["reference"]`` holds "baseline_us", the "factors" that times were divided by, and "reasons":
    why pieces were measured again.
    """

    def __init__(
        self,
        phone: Phone,
        reference: ReferenceJob,
        cool: Callable[[], object],
        watch: DriftWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
        rest: Callable[[float], object] | None = None,
    ) -> None:
        self.phone, self.reference, self.cool, self.clock, self.rest = phone, reference, cool, clock, rest
        self.watch = watch or DriftWatch()
        self.benefit = CoolingBenefit()
        self._last: Reading | None = None

    def describe(self) -> Description:
        """See Phone."""
        return self.phone.describe()

    def status(self) -> Status:
        """See Phone."""
        return self.phone.status()

    def measure(self, batch: Batch, blobs: Mapping[str, Path]) -> Iterator[Measurement | Fault]:
        """See Phone. Results come a piece at a time. A batch without rounds is not timed, and passed on as it is."""
        if batch.rounds == 0:
            yield from self.phone.measure(batch, blobs)
            self.facts, self.outputs = self.phone.facts, self.phone.outputs
            return
        run = _Run(self, batch, blobs)
        self.facts, self.outputs = {}, b""
        if self.watch.baseline_us is None:
            self.cool()  # so that the first reading is one at full speed
        left = list(batch.groups)
        while left:
            piece, results = run.piece(left)
            yield from results.values()
            self.outputs += run.outputs
            left = left[len(piece) :]
        self.facts = run.facts

    def run(self, batch: Batch, blobs: Mapping[str, Path], output: Path) -> dict[str, object]:
        """See Phone: whole networks are timed as they are."""
        facts = self.phone.run(batch, blobs, output)
        self.facts = self.phone.facts
        return facts

    def recover(self, rung: str) -> bool:
        """See Phone."""
        self._last = None
        return self.phone.recover(rung)

    def close(self) -> None:
        """See Phone."""
        self.phone.close()

    def read_reference(self, batch: Batch, is_fresh_enough: bool = False) -> Reading:
        """Time the reference kernel on the cores of ``batch``; or take the last reading, when it may be fresh enough.

        Raises: DeviceError.
        """
        last, now = self._last, self.clock()
        if is_fresh_enough and last is not None and now - last.at_s < FRESH_S:
            return last
        job = self.reference
        work = Batch(
            "measure", batch.target, job.files, (job.group,), REFERENCE_ROUNDS, 1, batch.core_mask,
            {"graph_symbol": job.graph_symbol},
        )  # fmt: skip
        found = list(self.phone.measure(work, job.blobs))
        if len(found) != 1 or not isinstance(found[0], Measurement):
            raise DeviceError("the reference kernel", f"it fails on this device: {found}", "Is it the right target?")
        self._last = reading(self.clock(), found[0].ns)
        return self._last

    def cool_if_it_helps(self, batch: Batch, before: Reading) -> Reading:
        """Let the device cool unless it is known to be in vain; return the reading after that. Raises: DeviceError."""
        if not self.benefit.is_useful:
            self.benefit.skip()
            return before
        started = self.clock()
        self.cool()
        if self.rest is not None and self.clock() - started < FRESH_S:
            self.rest(REST_S)
        after = self.read_reference(batch)
        self.watch.note(after)
        self.benefit.note(self.watch.slowness(before), self.watch.slowness(after))
        return after


class _Run:
    """One batch on one phone, in pieces."""

    def __init__(self, steady: SteadyPhone, batch: Batch, blobs: Mapping[str, Path]) -> None:
        self.steady, self.batch, self.blobs = steady, batch, blobs
        self.budget_s = LONGEST_S  # of a piece: halved when the device changed, and growing again when it did not
        self.unit_s: float | None = None  # of one candidate's round, of late
        self.in_vain = 0  # pieces in a row that were thrown away
        self.faults: dict[int, Fault] = {}  # true at any speed, so they are not tried again
        self.outputs = self.written = b""  # of the last piece; of the last job
        self.factors: list[float] = []
        self.reasons: list[str] = []
        self.before: object = None
        self.after: object = None

    @property
    def facts(self) -> dict[str, object]:
        """What Phone.facts shall be."""
        baseline = self.steady.watch.baseline_us
        watched = {"baseline_us": baseline, "factors": self.factors, "reasons": self.reasons}
        return {"before": self.before, "after": self.after, "reference": watched}

    def piece(self, left: Sequence[Group]) -> tuple[Sequence[Group], Results]:
        """Measure groups from the front of ``left``, as many as fit between two readings; a single one that does not
        fit is measured in visits of fewer rounds. Return them with their results.

        Raises: DeviceError when the device changes its speed however short a piece is.
        """
        results: Results = {}
        self.outputs, rounds, groups = b"", self.batch.rounds, left
        while rounds:
            is_first = rounds == self.batch.rounds
            groups = self._fitting(left) if is_first else groups
            able = self._without_faults(groups)
            if not able:
                break
            visit = self._visit_rounds(able[0], rounds) if len(groups) == 1 else rounds
            found = self._between_readings(able, visit, dumps=is_first)
            if found is None:
                continue
            self.outputs = self.written if is_first else self.outputs
            _add(results, found)
            rounds -= visit
        results |= {c: self.faults[c] for group in groups for c in group.candidates if c in self.faults}
        self._settle(groups, results)
        return groups, {key: trimmed(r) if isinstance(r, Measurement) else r for key, r in results.items()}

    def _fitting(self, left: Sequence[Group]) -> Sequence[Group]:
        """Return the groups from the front that fit into the budget, at least one."""
        seconds = 0.0
        for count, group in enumerate(left):
            seconds += (self.unit_s or LONGEST_S) * len(group.candidates) * self.batch.rounds
            if count and seconds > self.budget_s:
                return left[:count]
        return left

    def _visit_rounds(self, group: Group, rounds: int) -> int:
        """Return how many of the rounds fit into the budget."""
        fitting = int(self.budget_s / (self.unit_s * len(group.candidates))) if self.unit_s else 0
        return min(max(fitting, LEAST_ROUNDS), rounds)

    def _without_faults(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups without candidates that are known to be at fault; a group needs its first one."""
        left = [g for g in groups if g.candidates[0] not in self.faults]
        return [replace(g, candidates=tuple(c for c in g.candidates if c not in self.faults)) for g in left]

    def _between_readings(self, groups: Sequence[Group], rounds: int, dumps: bool) -> Results | None:
        """Measure groups once, the device cooled before if it is slow; None when what came is to be thrown away.

        Raises: DeviceError.
        """
        steady, watch = self.steady, self.steady.watch
        before = steady.read_reference(self.batch, is_fresh_enough=True)
        watch.note(before)
        if watch.slowness(before) > watch.limits.throttled:
            before = steady.cool_if_it_helps(self.batch, before)
        arguments = {name: value for name, value in self.batch.arguments.items() if dumps or name != "dumps"}
        batch = replace(self.batch, groups=tuple(groups), rounds=rounds, arguments=arguments)
        started = steady.clock()
        results: Results = {r.candidate: r for r in steady.phone.measure(batch, self.blobs)}
        took, self.written = steady.clock() - started, steady.phone.outputs
        self.unit_s = took / (rounds * sum(len(group.candidates) for group in groups))
        self.faults |= {key: r for key, r in results.items() if isinstance(r, Fault)}
        self.before = self.before or steady.phone.facts.get("before")
        self.after = steady.phone.facts.get("after")
        within = max(change_within(_runs(group, results)) for group in groups)
        verdict = watch.judge(before, steady.read_reference(self.batch), within)
        is_too_long = took > 1.5 * LONGEST_S and (rounds > LEAST_ROUNDS or len(groups) > 1)
        if is_too_long or not verdict.is_steady:
            self._note_failure(f"{took:.1f} s between two readings is too long" if is_too_long else verdict.words)
            return None
        self.in_vain, self.budget_s = 0, min(self.budget_s * 1.5, LONGEST_S)
        self.factors.append(round(verdict.factor, 4))
        return {k: divided(r, verdict.factor) if isinstance(r, Measurement) else r for k, r in results.items()}

    def _note_failure(self, reason: str) -> None:
        self.reasons.append(reason)
        self.in_vain, self.budget_s = self.in_vain + 1, max(self.budget_s / 2, LEAST_S)
        if self.in_vain >= MOST_IN_VAIN:
            raise DeviceError("the device is not steady", reason, "Cool it, or take other work from it.")

    def _settle(self, groups: Sequence[Group], results: Results) -> None:
        """Time once more what lies too far apart; what stays so after MOST_AGAIN is kept with all its runs."""
        for _ in range(MOST_AGAIN):
            again = self._without_faults(groups_of(groups, unsettled(results.values())))
            if not again:
                return
            for group in again:
                visit = self._visit_rounds(group, self.batch.rounds)
                _add(results, self._between_readings([group], visit, dumps=False) or {})


def _runs(group: Group, results: Results) -> list[tuple[int, ...]]:
    """Return the runs of the group's candidates."""
    found = [results.get(candidate) for candidate in group.candidates]
    return [one.ns for one in found if isinstance(one, Measurement)]


def _add(results: Results, more: Results) -> None:
    """Add the runs of a further visit; a fault outweighs what was measured."""
    for candidate, new in more.items():
        old = results.get(candidate)
        if isinstance(old, Measurement) and isinstance(new, Measurement):
            new = merged(old, new)
        results[candidate] = new
