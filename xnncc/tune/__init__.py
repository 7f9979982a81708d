"""Tuning: which configuration of each kernel's space, and which algorithm of each convolution, is fastest on a device.

tune(model, target) -> Outcome       records in a folder that ``xnncc build --records`` reads
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TuneFailed
from ..ir.variants import Shapes, variant_shapes
from ..target import load_target

if TYPE_CHECKING:
    import numpy as np

    from .search import Outcome, Progress

__all__ = ["tune"]


def tune(
    model: str | Path,
    target: str,
    *,
    devices: Sequence[str] = (),
    trials: int | None = None,
    seconds: float = 900.0,
    output: str | Path | None = None,
    shapes: Shapes | None = None,
    weights: str | Path | None = None,
    fixed: Mapping[str, np.ndarray] | None = None,
    nms_rows: int | None = None,
    threads: int = 1,
    exact: bool = False,
    layers: int | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Search for ``seconds`` or ``trials`` candidates; return what was found. The folder (default
    ``schedules/<target>``) keeps a journal, and the same call goes on from it.

    ``threads``: of an inference. ``layers``: only so many, those with the most work. ``devices``: equal ones, by
    default the one that proves the target.
    Raises: any class of ``errors.py``; what was measured before is kept.
    """
    import tvm

    from .. import __version__
    from ..device.bench import open_bench
    from ..frontends import load_model
    from ..transform.choose_vectors import choose_vectors
    from ..transform.pipeline import prepare
    from .candidates import Workshop
    from .journal import Journal
    from .measure import Measurer
    from .search import Limits, Search
    from .tasks import collect_tasks, heaviest

    say = progress or (lambda text, done, total: None)
    chosen = load_target(target)
    specs: Sequence[str | None] = devices or [None]
    with ExitStack() as held:
        benches = [held.enter_context(closing(open_bench(spec, chosen))) for spec in specs]
        measured_by = tuple(benches)  # also those that are lost on the way
        folder = Path(output) if output is not None else Path("schedules") / chosen.name
        say("importing the model", 0, 0)
        options: dict[str, Any] = {"weights": Path(weights) if weights else None, "fixed": fixed, "nms_rows": nms_rows}
        imported = [load_model(Path(model), sizes, None, **options) for sizes in variant_shapes(shapes or {})]
        say("collecting kernels", 0, 0)
        mods = [prepare(one.mod) for one in imported]
        chosen = choose_vectors(mods, chosen)
        tasks = collect_tasks(mods, chosen, exact)
        tasks = heaviest(tasks, layers) if layers is not None else tasks
        if not tasks.tasks:
            raise TuneFailed(f"'{model}'", "none of its kernels has more than one configuration", "Build it as it is.")
        journal = Journal(folder / "journal" / f"{Path(model).stem}.jsonl")
        search = Search(tasks, chosen, folder, journal, Limits(seconds, trials), say)
        about = {"xnncc": __version__, "tvm": str(tvm.__version__)}
        jobs = os.cpu_count() or 1
        try:
            outcome = search.run(lambda scratch: Measurer(Workshop(chosen, scratch, jobs), benches, threads), about)
        finally:
            journal.close()
        outcome.warnings += [journal.warning] if journal.warning else []
        outcome.warnings += [warning for bench in measured_by for warning in bench.warnings]
        if not all(bench.times_count for bench in benches):
            outcome.warnings.append("an emulator's times say nothing of a device: these records are right, not fast")
        return outcome
