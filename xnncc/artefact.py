"""What an artefact's folder holds beside the library: the package, the header, the bindings and the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .coded_weights import coded_facts
from .inputs import fixed_entries
from .ir.names import graph_symbol

if TYPE_CHECKING:
    from .ir.plan import OpRecord, TensorInfo
    from .job import Job

_ROLES = {".xnn": "package", ".h": "header", ".so": "library", ".dylib": "library", ".a": "library", ".wasm": "library"}


def write_artefact(job: Job) -> dict[str, Any]:
    """Write everything but the library and the report into the job's folder; return the manifest."""
    from . import pack
    from .bindings import write_bindings, write_demo_page, write_header

    _write_package(job)
    (inputs, outputs), *others = [(v.imported.inputs, v.imported.outputs) for v in job.variants]
    io = (job.folder, job.stem, inputs, outputs, others)
    write_header(*io)
    is_web = job.target.toolchain.kind == "wasm"
    for kind in sorted({*job.bindings, "js"} if is_web else job.bindings):  # a module without its loader is of no use
        write_bindings(kind, *io)
    if is_web:
        write_demo_page(*io)
    manifest = _manifest(job)
    pack.write_manifest(job.folder / "manifest.json", manifest)
    return manifest


def _write_package(job: Job) -> None:
    from . import pack

    done, first = job.emitted, job.emitted.memory
    sides = [_sides(v.imported) for v in job.variants]
    pack.write(
        job.folder / f"{job.stem}.xnn",
        pack.Package(
            name=job.stem,
            target=job.target.name,
            build_id=done.build_id,
            arena_bytes=first.arena_bytes,
            thread_scratch_bytes=first.thread_scratch_bytes,
            op_count=len(done.ops),
            inputs=sides[0][0],
            outputs=sides[0][1],
            weights=job.stored.data,
            blob_bytes=job.stored.blob_bytes,
            prepared_bytes=first.prepared_bytes,
            state_count=len(job.imported.states),
            variants=tuple(
                pack.Variant(plan.memory.arena_bytes, len(plan.ops), inputs, outputs)
                for plan, (inputs, outputs) in zip(done.plans[1:], sides[1:], strict=True)
            ),
        ),
    )


def _sides(imported: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the package's inputs and outputs: the caller's, then the states."""
    from . import pack

    before, after = zip(*imported.states, strict=True) if imported.states else ((), ())
    sides = (*imported.inputs, *before), (*imported.outputs, *after)
    inputs, outputs = (tuple(pack.Tensor(t.name, t.shape, t.dtype) for t in side) for side in sides)
    return inputs, outputs


def _manifest(job: Job) -> dict[str, Any]:
    """Return the manifest; what it says of inputs, outputs and operators is the first variant's."""
    done, first = job.emitted, job.emitted.memory
    variants = [
        _variant(v.imported.inputs, v.imported.outputs, plan) for v, plan in zip(job.variants, done.plans, strict=True)
    ]
    manifest = {
        "format": 1,
        "name": job.stem,
        "target": job.target.name,
        "abi": job.target.abi,
        "build_id": done.build_id,
        "graph_symbol": graph_symbol(job.stem),
        "states": [{"input": a.name, "output": b.name} for a, b in job.imported.states],
        "thread_scratch_bytes": first.thread_scratch_bytes,
        "weights_bytes": first.weights_bytes,
        "prepared_bytes": first.prepared_bytes,
        "files": [_file(job.folder, p) for p in sorted(job.folder.rglob("*")) if p.is_file()],
        "tools": _tools(),
        "source": {"file": job.model.name, "sha256": _sha256_of(job.model, job.imported.weight_files)},
        **variants[0],
    }
    if job.imported.fixed:
        manifest["fixed"] = fixed_entries(job.imported.fixed)
    if job.imported.nms_rows is not None:
        manifest["nms_rows"] = job.imported.nms_rows
    manifest |= coded_facts(job.stored)
    return manifest | ({"variants": variants[1:]} if len(variants) > 1 else {})


def _variant(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], plan: Any) -> dict[str, Any]:
    return {
        "inputs": [_tensor(t) for t in inputs],
        "outputs": [_tensor(t) for t in outputs],
        "op_count": len(plan.ops),
        "arena_bytes": plan.memory.arena_bytes,
        "ops": [_op(op, len(outputs)) for op in plan.ops],
    }


def _tensor(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "shape": list(info.shape), "dtype": info.dtype}


def _file(folder: Path, path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    role = _ROLES.get(path.suffix, "binding")
    return {
        "path": path.relative_to(folder).as_posix(),
        "bytes": len(data),
        "sha256": sha256(data).hexdigest(),
        "role": role,
    }


def _sha256_of(model: Path, weight_files: Sequence[Path]) -> str:
    """Return the hash of a model file; of a folder, or with weights apart, that of all files with names and sizes."""
    files = {path.name: path for path in (model, *weight_files)}
    if model.is_dir():
        files = {path.relative_to(model).as_posix(): path for path in sorted(model.rglob("*")) if path.is_file()}
    elif not weight_files:
        return sha256(model.read_bytes()).hexdigest()
    digest = sha256()
    for name, path in files.items():
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
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
