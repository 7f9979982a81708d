"""The whole flow: a model file in, a folder out that an app can link.

    load -> prepare -> lower -> schedule -> emit -> pack -> report -> prove

``STAGES`` is that list; each stage takes the ``Job`` and adds to it. The driver times, dumps and stops between stages;
the folder is written aside and renamed when everything in it is right, so that nothing half-written is ever seen.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import OutputError, VerifyFailed, nearest
from .ir.names import graph_symbol
from .ir.variants import Shapes, check_variants, shapes_in_words, suits, variant_shapes
from .job import Job, Progress, Variant
from .output_folder import folder_aside, output_error, replace_folder
from .target import load_target

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class BuildResult:
    """A finished build. ``seconds`` of each stage are not part of the artefact."""

    directory: Path
    manifest: dict[str, Any]
    report: dict[str, Any]
    warnings: tuple[str, ...]
    seconds: dict[str, float]


def build(
    model: str | Path,
    target: str,
    output: str | Path | None = None,
    *,
    shapes: Shapes | None = None,
    samples: Mapping[str, np.ndarray] | None = None,
    weights: str | Path | None = None,
    threads: int | None = None,
    max_kib: int | None = None,
    verify: bool = True,
    exact: bool = False,
    records: str | Path | None = None,
    bindings: tuple[str, ...] = (),
    states: tuple[str, ...] = (),
    fixed: Mapping[str, np.ndarray] | None = None,
    nms_rows: int | None = None,
    plugins: Sequence[str | Path] = (),
    progress: Progress | None = None,
    dump: str | Path | None = None,
    stop_after: str | None = None,
) -> BuildResult:
    """Compile ``model`` for ``target`` into ``output`` (default ``<stem>-<target>``) and return what was written.

    ``shapes``: the shape of each input with free dimensions, or a list of shapes: the artefact then takes each of them,
    with one copy of the weights (``ir/variants.py`` says how the lists of several inputs go together).
    ``weights``: the file of the weights where the format keeps them apart (Caffe), by default the one beside ``model``.
    ``states``: pairs like "h:hn" of an input and an output that the runtime keeps from run to run.
    ``fixed``: values of ONNX inputs that become constants; the manifest keeps them. ``nms_rows``: the number of rows of
    every ONNX NonMaxSuppression, -1 behind the boxes.
    ``plugins``: Python files with operators of the user's own, which are executed (docs/plugins.md).
    ``threads``: cores to compile with, all by default. ``max_kib`` limits the library. ``exact`` forbids algorithms
    whose rounding is larger than that of plain sums (Winograd convolution). ``records``: a folder of tuned records, by
    default those shipped for the target. ``dump`` gets the IR after each stage; ``stop_after`` ends after the named
    stage and writes no folder.

    Raises: any class of ``errors.py``; then ``output`` is as it was before.
    """
    stages = _stages_until(stop_after)
    chosen = load_target(target)
    final = Path(output) if output is not None else Path(f"{Path(model).stem}-{target}")
    aside = folder_aside(final)
    job = Job(
        model=Path(model),
        target=chosen,
        folder=aside,
        shapes=variant_shapes(shapes or {}),
        samples=samples,
        weights=Path(weights) if weights else None,
        max_kib=max_kib,
        bindings=bindings,
        states=states,
        fixed=fixed or {},
        nms_rows=nms_rows,
        plugins=tuple(map(Path, plugins)),
        verify=verify,
        exact=exact,
        records=Path(records) if records is not None else None,
        jobs=threads or os.cpu_count() or 1,
        progress=progress or _silent,
        dump=Path(dump) if dump else None,
    )
    try:
        for number, stage in enumerate(stages):
            started = time.perf_counter()
            job.progress(_TALK[stage.__name__], 0, 0)
            stage(job)
            job.seconds[stage.__name__] = round(time.perf_counter() - started, 3)
            _dump(job, number, stage.__name__)
        if stop_after is None:
            replace_folder(aside, final)
    except OSError as error:
        raise output_error(final, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return BuildResult(final, job.manifest, job.report, tuple(job.warnings), job.seconds)


def _silent(text: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def load(job: Job) -> None:
    """Read the model and compare it with its own runtime."""
    from .frontends import load_model
    from .frontends.custom_ops import load_plugins
    from .frontends.tie_states import tie_states

    for op in load_plugins(job.plugins):
        if op.reference is None:
            job.warn(f"operator '{op.kind}' of {op.source} has no reference: what it emits is compared with itself")
    for shapes in job.shapes:
        samples = job.samples if len(job.shapes) == 1 or suits(job.samples, shapes) else None
        options: dict[str, Any] = {"weights": job.weights, "fixed": job.fixed, "nms_rows": job.nms_rows}
        imported = tie_states(load_model(job.model, shapes, samples, **options), job.states)
        job.variants.append(Variant(imported, imported.mod))
        job.warn(*imported.warnings)
    check_variants([(v.imported.inputs, v.imported.outputs, v.imported.states) for v in job.variants])
    checks = [v.imported.check.max_relative_error for v in job.variants if v.imported.check is not None]
    if checks:
        job.facts["import check, max relative error"] = float(f"{max(checks):.3g}")


def prepare(job: Job) -> None:
    """Simplify the graph."""
    from .ir.cost import macs_by_tensor
    from .transform.pipeline import prepare as prepare_graph

    for variant in job.variants:
        variant.mod = prepare_graph(variant.mod)
        variant.macs = macs_by_tensor(variant.mod)


def lower(job: Job) -> None:
    """Plan layouts, legalise and fuse."""
    from .coded_weights import start_coding
    from .schedule.records import read_records, shipped_folders
    from .transform.choose_vectors import choose_vectors
    from .transform.pipeline import lower_graph

    job.target = choose_vectors([variant.mod for variant in job.variants], job.target)
    job.facts["vectors"] = f"{job.target.machine.lanes} lanes of float32"
    folders = [job.records] if job.records is not None else shipped_folders(job.target)
    job.tuned = read_records(folders, job.target)
    if job.records is not None:
        job.warn(*job.tuned.notes)
    start_coding(job)
    algorithms, target = job.tuned.algorithms, job.target.tvm_target()
    for variant in job.variants:
        variant.graph = lower_graph(variant.mod, job.target.machine, target, job.exact, algorithms, job.coded)
        variant.mod = variant.graph.mod


def schedule(job: Job) -> None:
    """Choose tiles for every kernel."""
    from tvm import tirx

    from .codegen.emit import KernelNote
    from .schedule import schedule_kernel
    from .transform.pipeline import recorded_algorithms

    for variant in job.variants:
        for var, func in variant.mod.functions.items():
            if isinstance(func, tirx.PrimFunc):
                done = schedule_kernel(func, job.target.machine, job.tuned.kernels)
                variant.kernels[var.name_hint] = done.func
                variant.notes[var.name_hint] = KernelNote(done.rule, done.reason)
        for var, words in recorded_algorithms(variant.graph, job.tuned.convolutions).items():
            note = variant.notes[var]
            variant.notes[var] = KernelNote(note.rule, f"{words}; {note.reason}")
        variant.kernels = dict(sorted(variant.kernels.items()))


def emit(job: Job) -> None:
    """Compile kernels and graph to objects and link the library."""
    from .codegen.emit import Names, Scheduled
    from .codegen.emit import emit as emit_objects
    from .codegen.link import link_library

    symbol = graph_symbol(job.stem)
    with tempfile.TemporaryDirectory(prefix="xnncc-objects-") as objects:
        networks = [
            Scheduled(v.mod["main"], v.kernels, v.notes, Names(v.graph.sources, v.graph.packed, v.macs))
            for v in job.variants
        ]
        job.emitted = emit_objects(networks, job.target.tvm_target(), symbol, Path(objects), job.jobs, job.progress)
        job.progress("linking", 0, 0)
        libraries = link_library(job.target, job.emitted.objects, symbol, job.stem, job.folder)
    limit = job.max_kib
    for library in libraries:
        if limit is not None and library.suffix in (".so", ".dylib", ".wasm") and library.stat().st_size > limit * 1024:
            raise OutputError(
                f"{library.name}", f"{library.stat().st_size / 1024:.1f} KiB, more than the {limit} KiB of --max-kib",
                "Raise the limit or take a smaller network.",
            )  # fmt: skip


def pack(job: Job) -> None:
    """Write the package, the header, the bindings and the manifest."""
    from .artefact import write_artefact
    from .coded_weights import store_weights

    job.stored = store_weights(job)
    job.warn(*job.stored.left)
    job.manifest = write_artefact(job)


def report(job: Job) -> None:
    """Write report.json and report.html."""
    from . import report as page
    from .coded_weights import coded_in_words

    job.facts.update(coded_in_words(job.stored))
    if len(job.variants) > 1:
        job.facts["shapes"] = " | ".join(shapes_in_words(v.imported.inputs) for v in job.variants)
        job.facts["weights that only further shapes read, bytes"] = job.emitted.further_weights_bytes
    files = tuple(page.FileSize(f["path"], f["bytes"], f["role"]) for f in job.manifest["files"])
    data = page.ReportData(
        name=job.stem,
        target=job.target.name,
        target_summary=job.target.summary,
        source_file=job.model.name,
        source_sha256=job.manifest["source"]["sha256"],
        tools=job.manifest["tools"],
        inputs=job.imported.inputs,
        outputs=job.imported.outputs,
        ops=job.emitted.ops,
        memory=job.emitted.memory,
        files=files,
        warnings=tuple(dict.fromkeys((*job.warnings, *(note for v in job.variants for note in v.graph.notes)))),
        facts=job.facts,
        coded=tuple(layer.document() for layer in job.stored.layers),
    )
    job.report = page.write(job.folder, data)


def prove(job: Job) -> None:
    """Run the artefact against the source's own runtime where this machine can run it."""
    if not job.verify:
        return
    if not job.target.device:
        job.warnings.append(f"target '{job.target.name}' cannot be run here: built, not verified")
        return
    from .verify import verify_imported

    for variant in job.variants:
        shapes = {info.name: info.shape for info in variant.imported.inputs}
        samples = job.samples if len(job.variants) == 1 or suits(job.samples, shapes) else None
        result = verify_imported(variant.imported, job.folder, samples=samples)
        if not result.passed:
            which = f" at {shapes_in_words(variant.imported.inputs)}" if len(job.variants) > 1 else ""
            next_step = "Run 'xnncc verify --layers' on a build made with --no-verify."
            raise VerifyFailed(f"{job.model}{which}", result.summary, next_step)


STAGES = (load, prepare, lower, schedule, emit, pack, report, prove)
_TALK = {
    "load": "importing and checking the model",
    "prepare": "simplifying the graph",
    "lower": "planning layouts and fusing",
    "schedule": "choosing tiles",
    "emit": "compiling kernels",
    "pack": "writing the package",
    "report": "writing the report",
    "prove": "verifying",
}


def _stages_until(stop_after: str | None) -> tuple[Callable[[Job], None], ...]:
    names = [s.__name__ for s in STAGES]
    if stop_after is None:
        return STAGES
    if stop_after not in names:
        from .errors import XnnccError

        raise XnnccError(
            f"--stop-after '{stop_after}'",
            f"no such stage{nearest(stop_after, names)}",
            "Stages: " + ", ".join(names) + ".",
        )
    return STAGES[: names.index(stop_after) + 1]


def _dump(job: Job, number: int, stage: str) -> None:
    """Write the IR after ``stage`` to the dump folder."""
    if job.dump is None:
        return
    job.dump.mkdir(parents=True, exist_ok=True)
    for index, variant in enumerate(job.variants):
        stem = f"{number:02d}_{stage}" + (f"_shape{index}" if index else "")
        (job.dump / f"{stem}.py").write_text(variant.mod.script())
        if stage == "schedule":
            for name, func in variant.kernels.items():
                (job.dump / f"{stem}_{name}.py").write_text(func.script())
