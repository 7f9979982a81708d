"""The whole flow: a model file in, a folder out that an app can link.

    load -> prepare -> lower -> schedule -> emit -> pack -> report -> prove

``STAGES`` is that list; each stage takes the ``Job`` and adds to it. The driver times, dumps and stops between stages;
the folder is written aside and renamed when everything in it is right, so that nothing half-written is ever seen.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import OutputError, VerifyFailed, nearest
from .ir.names import graph_symbol
from .target import Target, load_target

if TYPE_CHECKING:
    import numpy as np

    from .codegen.emit import Emitted
    from .frontends.imported import Imported
    from .ir.plan import OpRecord
    from .transform.pipeline import LoweredGraph

Progress = Callable[[str, int, int], None]


@dataclass
class Job:
    """One build under way: what was asked for, and what the stages have made so far."""

    model: Path
    target: Target
    folder: Path  # written aside; renamed to the real one at the end
    shapes: Mapping[str, tuple[int, ...]]
    samples: Mapping[str, np.ndarray] | None
    weights: Path | None
    max_kib: int | None
    bindings: tuple[str, ...]
    verify: bool
    exact: bool
    jobs: int
    progress: Progress
    states: tuple[str, ...] = ()
    dump: Path | None = None
    imported: Imported = field(init=False)
    graph: LoweredGraph = field(init=False)
    emitted: Emitted = field(init=False)
    mod: Any = None
    kernels: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    macs: dict[str, int] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    facts: dict[str, str | int | float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The model's name in file names and symbols."""
        return self.model.stem


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
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    samples: Mapping[str, np.ndarray] | None = None,
    weights: str | Path | None = None,
    threads: int | None = None,
    max_kib: int | None = None,
    verify: bool = True,
    exact: bool = False,
    bindings: tuple[str, ...] = (),
    states: tuple[str, ...] = (),
    progress: Progress | None = None,
    dump: str | Path | None = None,
    stop_after: str | None = None,
) -> BuildResult:
    """Compile ``model`` for ``target`` into ``output`` (default ``<stem>-<target>``) and return what was written.

    ``weights``: the file of the weights where the format keeps them apart (Caffe), by default the one beside ``model``.
    ``states``: pairs like "h:hn" of an input and an output that the runtime keeps from run to run.
    ``threads``: cores to compile with, all by default. ``max_kib`` limits the library. ``exact`` forbids algorithms
    whose rounding is larger than that of plain sums (Winograd convolution). ``dump`` gets the IR after each
    stage; ``stop_after`` ends after the named stage and writes no folder.

    Raises: any class of ``errors.py``; then ``output`` is as it was before.
    """
    stages = _stages_until(stop_after)
    chosen = load_target(target)
    final = Path(output) if output is not None else Path(f"{Path(model).stem}-{target}")
    aside = _folder_aside(final)
    job = Job(
        model=Path(model),
        target=chosen,
        folder=aside,
        shapes=shapes or {},
        samples=samples,
        weights=Path(weights) if weights else None,
        max_kib=max_kib,
        bindings=bindings,
        states=states,
        verify=verify,
        exact=exact,
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
            _replace_folder(aside, final)
    except OSError as error:
        raise _output_error(final, error) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return BuildResult(final, job.manifest, job.report, tuple(job.warnings), job.seconds)


def _silent(text: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def load(job: Job) -> None:
    """Read the model and compare it with its own runtime."""
    from .frontends import load_model
    from .frontends.tie_states import tie_states

    job.imported = tie_states(load_model(job.model, job.shapes, job.samples, weights=job.weights), job.states)
    job.warnings += job.imported.warnings
    job.mod = job.imported.mod
    if job.imported.check is not None:
        job.facts["import check, max relative error"] = float(f"{job.imported.check.max_relative_error:.3g}")


def prepare(job: Job) -> None:
    """Simplify the graph."""
    from .ir.cost import macs_by_tensor
    from .transform.pipeline import prepare as prepare_graph

    job.mod = prepare_graph(job.mod)
    job.macs = macs_by_tensor(job.mod)


def lower(job: Job) -> None:
    """Plan layouts, legalise and fuse."""
    from .transform.pipeline import lower_graph

    job.graph = lower_graph(job.mod, job.target.machine, job.target.tvm_target(), job.exact)
    job.mod = job.graph.mod


def schedule(job: Job) -> None:
    """Choose tiles for every kernel."""
    from tvm import tirx

    from .codegen.emit import KernelNote
    from .schedule import schedule_kernel

    for var, func in job.mod.functions.items():
        if isinstance(func, tirx.PrimFunc):
            done = schedule_kernel(func, job.target.machine)
            job.kernels[var.name_hint] = done.func
            job.notes[var.name_hint] = KernelNote(done.rule, done.reason)
    job.kernels = dict(sorted(job.kernels.items()))


def emit(job: Job) -> None:
    """Compile kernels and graph to objects and link the library."""
    from .codegen.emit import Names
    from .codegen.emit import emit as emit_objects
    from .codegen.link import link_library

    symbol = graph_symbol(job.stem)
    with tempfile.TemporaryDirectory(prefix="xnncc-objects-") as objects:
        names = Names(job.graph.sources, job.graph.packed, job.macs)
        job.emitted = emit_objects(
            job.mod["main"], job.kernels, job.notes, names, job.target.tvm_target(), symbol, Path(objects),
            job.jobs, job.progress,
        )  # fmt: skip
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
    from . import pack as package
    from .bindings import write_bindings, write_demo_page, write_header

    done = job.emitted
    before, after = zip(*job.imported.states, strict=True) if job.imported.states else ((), ())
    inputs = tuple(package.Tensor(t.name, t.shape, t.dtype) for t in (*job.imported.inputs, *before))
    outputs = tuple(package.Tensor(t.name, t.shape, t.dtype) for t in (*job.imported.outputs, *after))
    package.write(
        job.folder / f"{job.stem}.xnn",
        package.Package(
            name=job.stem,
            target=job.target.name,
            build_id=done.build_id,
            arena_bytes=done.memory.arena_bytes,
            thread_scratch_bytes=done.memory.thread_scratch_bytes,
            op_count=len(done.ops),
            inputs=inputs,
            outputs=outputs,
            weights=done.weights,
            prepared_bytes=done.memory.prepared_bytes,
            state_count=len(before),
        ),
    )
    io = (job.folder, job.stem, job.imported.inputs, job.imported.outputs)
    write_header(*io)
    is_web = job.target.toolchain.kind == "wasm"
    for kind in sorted({*job.bindings, "js"} if is_web else job.bindings):  # a module without its loader is of no use
        write_bindings(kind, *io)
    if is_web:
        write_demo_page(*io)
    job.manifest = {
        "format": 1,
        "name": job.stem,
        "target": job.target.name,
        "abi": job.target.abi,
        "build_id": done.build_id,
        "graph_symbol": graph_symbol(job.stem),
        "inputs": [_tensor(t) for t in job.imported.inputs],
        "outputs": [_tensor(t) for t in job.imported.outputs],
        "states": [{"input": a.name, "output": b.name} for a, b in job.imported.states],
        "op_count": len(done.ops),
        "arena_bytes": done.memory.arena_bytes,
        "thread_scratch_bytes": done.memory.thread_scratch_bytes,
        "weights_bytes": done.memory.weights_bytes,
        "prepared_bytes": done.memory.prepared_bytes,
        "files": [_file(job.folder, p) for p in sorted(job.folder.rglob("*")) if p.is_file()],
        "tools": _tools(),
        "source": {"file": job.model.name, "sha256": _sha256_of(job.model)},
        "ops": [_op(op, len(job.imported.outputs)) for op in done.ops],
    }
    package.write_manifest(job.folder / "manifest.json", job.manifest)


def report(job: Job) -> None:
    """Write report.json and report.html."""
    from . import report as page

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
        warnings=tuple(job.warnings) + job.graph.notes,
        facts=job.facts,
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

    result = verify_imported(job.imported, job.folder, samples=job.samples)
    if not result.passed:
        raise VerifyFailed(
            f"{job.model}", result.summary, "Run 'xnncc verify --layers' on a build made with --no-verify."
        )


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
    if job.dump is None or job.mod is None:
        return
    job.dump.mkdir(parents=True, exist_ok=True)
    (job.dump / f"{number:02d}_{stage}.py").write_text(job.mod.script())
    if stage == "schedule":
        for name, func in job.kernels.items():
            (job.dump / f"{number:02d}_{stage}_{name}.py").write_text(func.script())


def _folder_aside(final: Path) -> Path:
    """Return a new folder beside ``final``, on the same file system so that it can be renamed."""
    if final.exists() and not final.is_dir():
        raise OutputError(f"{final}", "this is a file, not a folder", "Choose another folder with -o.")
    if final.is_dir() and any(final.iterdir()) and not (final / "manifest.json").exists():
        raise OutputError(
            f"{final}", "the folder is not empty and was not made by xnncc", "Choose another folder with -o."
        )
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    except OSError as error:
        raise _output_error(final, error) from error


def _output_error(final: Path, error: OSError) -> OutputError:
    if error.errno == errno.ENOSPC:
        return OutputError(f"{final}", "the disk is full", "Free space there, or choose another folder with -o.")
    why = str(error.strerror or error).lower()
    return OutputError(f"{final}", why, "Choose a folder that you may write to with -o.")


def _replace_folder(aside: Path, final: Path) -> None:
    aside.chmod(0o755)
    if final.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
        os.rename(final, old / "old")
        os.rename(aside, final)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.rename(aside, final)


def _tensor(info: Any) -> dict[str, Any]:
    return {"name": info.name, "shape": list(info.shape), "dtype": info.dtype}


_ROLES = {".xnn": "package", ".h": "header", ".so": "library", ".dylib": "library", ".a": "library", ".wasm": "library"}


def _file(folder: Path, path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    role = _ROLES.get(path.suffix, "binding")
    return {
        "path": path.relative_to(folder).as_posix(),
        "bytes": len(data),
        "sha256": sha256(data).hexdigest(),
        "role": role,
    }


def _sha256_of(model: Path) -> str:
    """Return the hash of a model file, or of all files of a model folder with their names."""
    if model.is_file():
        return sha256(model.read_bytes()).hexdigest()
    digest = sha256()
    for path in sorted(p for p in model.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(model).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _op(op: OpRecord, output_count: int) -> dict[str, Any]:
    keys = ("space", "index", "offset", "size", "shape", "dtype", "layout")
    seen = [region for region in op.outputs if region.space != "output" or region.index < output_count]  # no states
    outputs = [{key: getattr(region, key) for key in keys} | {"shape": list(region.shape)} for region in seen]
    return {"index": op.index, "kernel": op.kernel, "rule": op.rule, "source": list(op.source), "outputs": outputs}


def _tools() -> dict[str, str]:
    from importlib.metadata import version

    import tvm

    from . import __version__

    llvm = ".".join(str(int(n)) for n in [tvm.target.codegen.llvm_version_major()])
    return {"xnncc": __version__, "tvm": version("apache-tvm"), "tvm-ffi": version("apache-tvm-ffi"), "llvm": llvm}
