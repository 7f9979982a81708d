"""The loop of a tuning run: plan a batch, measure it, keep it, and again until time, trials or candidates are over."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import TuneFailed
from ..schedule.records import Record, read_folder
from ..target import Target
from .confirm import Confirmer
from .cost_model import LARGE_SPACE, CostModel, missing_model
from .journal import LOST, Entry, Journal
from .knowledge import Knowledge
from .measure import Measurer, Prepared
from .plan_batch import plan_batch
from .tasks import Tasks
from .write_records import add_records, repair_folder

CONFIRM_EVERY = 4  # batches; the first time after two, so that early gains are records early
CONFIRM_SHARE = 0.12  # of the time, kept for the last confirmation

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Limits:
    """When a run ends: after ``trials`` measured candidates or ``seconds``, whichever comes first."""

    seconds: float
    trials: int | None = None


@dataclass
class Outcome:
    """A run's result. ``curve``: (seconds, times faster) after each batch, by the estimates so far."""

    folder: Path
    analytic_us: float = 0.0
    best_us: float = 0.0
    trials: int = 0
    candidates: int = 0
    resumed: int = 0
    records: list[Record] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    curve: list[tuple[float, float]] = field(default_factory=list)
    is_interrupted: bool = False

    @property
    def gain(self) -> float:
        """Times faster than the analytic choices, over the kernels that can be tuned."""
        return self.analytic_us / self.best_us if self.best_us else 1.0


class Search:
    """One run over ``tasks``; everything that it learns goes to the journal at once, and winners to ``folder``."""

    def __init__(
        self, tasks: Tasks, target: Target, folder: Path, journal: Journal, limits: Limits, progress: Progress
    ) -> None:
        self.target, self.journal, self.limits, self.progress = target, journal, limits, progress
        self.known = Knowledge(tasks)
        self.outcome = Outcome(folder, candidates=sum(len(t.space) for t in tasks.tasks.values()))
        self.started = time.monotonic()

    def run(self, measurer_in: Callable[[Path], Measurer], about: dict[str, Any]) -> Outcome:
        """Search until the limits; Ctrl-C ends it early and keeps everything.

        Raises: TuneFailed, DeviceError, OutputError.
        """
        with tempfile.TemporaryDirectory(prefix="xnncc-tune-") as scratch:
            measurer = measurer_in(Path(scratch))
            confirmer = Confirmer(self.known, measurer, self._kept_records())
            self._resume(measurer)
            try:
                self._loop(measurer, confirmer, about)
            except KeyboardInterrupt:
                self.outcome.is_interrupted = True
        self.outcome.warnings += [*measurer.warnings, *confirmer.wrong]
        self.outcome.records = list(confirmer.records.values())
        self.outcome.analytic_us, self.outcome.best_us = self.known.network_us()
        return self.outcome

    def _kept_records(self) -> dict[str, Record]:
        if not self.outcome.folder.is_dir():
            return {}
        self.outcome.warnings += repair_folder(self.outcome.folder)
        found = read_folder(self.outcome.folder, self.outcome.warnings)
        return {record.kernel: record for record in found if record.machine == self.target.fingerprint}

    def _resume(self, measurer: Measurer) -> None:
        here = (self.target.fingerprint, measurer.benches[0].description, measurer.threads)
        self.outcome.resumed = self.known.learn_all(
            entry for entry in self.journal if (entry.machine, entry.device, entry.threads) == here
        )

    def _loop(self, measurer: Measurer, confirmer: Confirmer, about: dict[str, Any]) -> None:
        if any(len(t.space) > LARGE_SPACE for t in self.known.tasks.tasks.values()) and missing_model():
            self.outcome.warnings.append(missing_model())
        model, batches = CostModel(self.known), 0
        with ThreadPoolExecutor(max_workers=1) as pool:
            try:
                ready = self._prepare(measurer, model)
                while ready is not None:
                    following = self._measure(measurer, model, ready, pool)
                    batches += 1
                    if batches == 2 or batches % CONFIRM_EVERY == 0:
                        self._confirm(confirmer, about)
                    ready = following or self._prepare(measurer, model)
            except BaseException:
                for bench in measurer.benches:
                    bench.close()  # what is still measured there, nobody will ask for
                raise
        self._confirm(confirmer, about)

    def _prepare(self, measurer: Measurer, model: CostModel, coming: int = 0) -> Prepared | None:
        """Return the next candidates, built, or None when it is over. ``coming``: trials that are being measured."""
        left = self.limits.trials - self.outcome.trials - coming if self.limits.trials is not None else 1 << 30
        if left <= 0 or self._is_over():
            return None
        batch = plan_batch(self.known, model.order, left)
        return measurer.prepare(batch) if batch else None

    def _measure(
        self, measurer: Measurer, model: CostModel, ready: Prepared, pool: ThreadPoolExecutor
    ) -> Prepared | None:
        """Measure ``ready`` and learn from it; where that leaves this machine idle, build what comes next meanwhile."""
        self._say("measuring", measurer)
        entries: list[Entry] = []

        def keep(new: list[Entry]) -> None:
            for entry in sorted(new, key=lambda e: bool(e.fault)):
                self.journal.add(entry)
            entries.extend(new)

        following = None
        if measurer.is_elsewhere:
            out = pool.submit(measurer.measure, ready, keep)
            pairs = {(task.key, index) for task, indices in ready.wanted for index in indices}
            self.known.pending = pairs
            following = self._prepare(measurer, model, len(pairs) + len(ready.refused))
            self.known.pending = set()
            out.result()
        else:
            measurer.measure(ready, keep)
        self._learn(entries)
        return following

    def _is_over(self) -> bool:
        spent = time.monotonic() - self.started
        no_trials = self.limits.trials is not None and self.outcome.trials >= self.limits.trials
        return no_trials or spent > self.limits.seconds * (1 - CONFIRM_SHARE)

    def _learn(self, entries: list[Entry]) -> None:
        for entry in entries:
            self.outcome.faults[entry.fault] += bool(entry.fault)
        self.outcome.trials += sum(entry.fault != LOST for entry in entries)
        self.known.learn_all(entries)
        if entries and not any(self.known.measured(task) for task in self.known.tasks.tasks.values()):
            worst = next((entry for entry in entries if entry.fault != LOST), entries[0])
            why = f"all {len(entries)} candidates failed, the first one: {worst.fault}, {worst.words}"
            raise TuneFailed("nothing could be measured", why, "Check the device with `xnncc verify` on a build.")
        before, after = self.known.network_us()
        if after:
            seconds = round(time.monotonic() - self.started, 1)
            self.outcome.curve.append((seconds, round(before / after, 4)))

    def _confirm(self, confirmer: Confirmer, about: dict[str, Any]) -> None:
        self._say("confirming winners", confirmer.measurer)
        new = confirmer.confirm()
        if new:
            add_records(self.outcome.folder, new, about)

    def _say(self, what: str, measurer: Measurer) -> None:
        before, after = self.known.network_us()
        left = max(self.limits.seconds - (time.monotonic() - self.started), 0)
        best = f", best {before / after:.3f}x" if after else ""
        tried = sum(len(r) for r in self.known.results.values())
        self.progress(f"{what}{best}, {int(left) // 60}:{int(left) % 60:02d} left", tried, self.outcome.candidates)
        for bench in measurer.benches:
            bench.show(what, tried, self.outcome.candidates, after, left)
