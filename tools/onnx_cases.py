"""ONNX's own backend tests as cases for this project: where they are, what goes in, what must come out, how they end.

``run_case`` takes one through the whole line: import, build for this machine, the C runtime in this process.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")
PASS, REFUSED, WRONG = "pass", "refused", "wrong"
TARGET = "host"


@dataclass(frozen=True)
class Outcome:
    """How a case ended: ``reason`` is the class of a refusal or what is wrong, ``words`` the whole sentence."""

    kind: str
    name: str
    result: str
    reason: str = ""
    words: str = ""
    fixed: Sequence[str] = ()  # inputs whose values were given at build time

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class DataSet:
    """Inputs by name, and the outputs in the graph's order; a value that is no tensor is None."""

    inputs: dict[str, np.ndarray | None]
    outputs: list[np.ndarray | None]


@dataclass(frozen=True)
class Case:
    """One test of ONNX. ``load`` gives the model and its data, which takes long for the light ones."""

    kind: str
    name: str
    rtol: float
    atol: float
    load: Callable[[], tuple[onnx.ModelProto, list[DataSet]]]


@cache
def all_cases() -> dict[tuple[str, str], Case]:
    """Return every case by kind and name, in a fixed order."""
    found = [case for kind in KINDS for case in (_light() if kind == "light" else _loaded(kind))]
    return {(case.kind, case.name): case for case in sorted(found, key=lambda c: (KINDS.index(c.kind), c.name))}


def _loaded(kind: str) -> Iterator[Case]:
    from onnx.backend.test.loader import load_model_tests

    with np.errstate(all="ignore"):  # the cases are computed when they are loaded
        tests = load_model_tests(kind=kind)
    for test in tests:
        yield Case(kind, test.name, test.rtol, test.atol, lambda test=test: _data_of(test))


def _data_of(test: Any) -> tuple[onnx.ModelProto, list[DataSet]]:
    if test.model is not None:
        sets = [(list(ins), list(outs)) for ins, outs in test.data_sets]
        return test.model, [_data_set(test.model, ins, outs) for ins, outs in sets]
    folder = Path(test.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        ins = [_read(path, model.graph.input) for path in _numbered(data, "input")]
        outs = [_read(path, model.graph.output) for path in _numbered(data, "output")]
        sets.append(_data_set(model, ins, outs))
    return model, sets


def _numbered(folder: Path, what: str) -> list[Path]:
    return sorted(folder.glob(f"{what}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))


def _read(path: Path, infos: Any) -> Any:
    """Return what a file holds: a tensor, or None for a sequence or an optional."""
    info = infos[int(path.stem.split("_")[1])]
    if not info.type.HasField("tensor_type"):
        return None
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def _data_set(model: onnx.ModelProto, ins: list[Any], outs: list[Any]) -> DataSet:
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input]
    if len(ins) != len(names):
        names = [name for name in names if name not in weights]
    return DataSet(dict(zip(names, map(_tensor, ins), strict=False)), [_tensor(value) for value in outs])


def _tensor(value: Any) -> np.ndarray | None:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return None if isinstance(value, list | tuple | dict) or value is None else np.asarray(value)


def _light() -> Iterator[Case]:
    """The nets of the model zoo without their weights: their tests come with an output for a ramp as input."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for path in sorted(folder.glob("*.onnx")):
        yield Case("light", path.stem, 1e-3, 1e-7, lambda path=path: _light_data(path))


def _light_data(path: Path) -> tuple[onnx.ModelProto, list[DataSet]]:
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    (value,) = [value for value in model.graph.input if value.name not in weights]
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    ramp = (np.arange(count).reshape(shape) / np.array(count, np.float32)).astype("float32")
    output = onnx.TensorProto.FromString(path.with_name(f"{path.stem}_output_0.pb").read_bytes())
    return model, [DataSet({value.name: ramp}, [onnx.numpy_helper.to_array(output)])]


def run_case(case: Case) -> Outcome:
    """Take a case through the whole line; never raises for what the case does."""
    return _judged(case, build=True)


def import_case(case: Case) -> Outcome:
    """Import a case without building it: "pass" means here that it is not refused."""
    return _judged(case, build=False)


def _judged(case: Case, build: bool) -> Outcome:
    from xnncc.errors import BadModel

    fixed: tuple[str, ...] = ()
    try:
        model, sets = case.load()
        with tempfile.TemporaryDirectory(prefix="xnncc-case-") as folder:
            path = Path(folder) / "case.onnx"
            path.write_bytes(model.SerializeToString())
            for data in sets:
                imported, fixed = _imported(path, data)
                wrong = _run(case, imported, path, data, Path(folder)) if build else ""
                if wrong:
                    return Outcome(case.kind, case.name, WRONG, wrong, fixed=fixed)
    except BadModel as error:  # anything else, from a compiler or device, is no refusal
        words = re.sub(r"\S*/case\.onnx", "case.onnx", str(error))
        return Outcome(case.kind, case.name, REFUSED, reason_class(words), words)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        return Outcome(case.kind, case.name, WRONG, f"{type(error).__name__}: {lines[-1][:200]}")
    return Outcome(case.kind, case.name, PASS, fixed=fixed)


def _run(case: Case, imported: Any, path: Path, data: DataSet, folder: Path) -> str:
    """Return what is wrong with the outputs, or an empty string."""
    feeds = [np.ascontiguousarray(data.inputs[info.name]).reshape(info.shape) for info in imported.inputs]
    for info, feed in zip(imported.inputs, feeds, strict=True):
        if str(feed.dtype) != info.dtype:
            return f"input '{info.name}' is {info.dtype}, the case gives {feed.dtype}"
    outputs = run_artefact(imported, path, folder, feeds)
    for info, ours, theirs in zip(imported.outputs, outputs, data.outputs, strict=True):
        problem = _difference(ours, theirs, case)
        if problem:
            return f"output '{info.name}': {problem}"
    return ""


def _imported(path: Path, data: DataSet) -> tuple[Any, tuple[str, ...]]:
    """Import, with as few inputs fixed to the case's values as a build needs; return their names too."""
    from xnncc.errors import UnsupportedModel
    from xnncc.frontends.onnx import load_onnx

    shapes = {name: value.shape for name, value in data.inputs.items() if value is not None and _is_sized(value)}
    free = _free_only(path, shapes)
    try:
        return load_onnx(path, free, None, check=False), ()
    except UnsupportedModel as refusal:
        error = refusal
        if not re.search(f"{_UNFIXED}|has no elements", str(refusal)):
            raise
    parameters = {name: value for name, value in data.inputs.items() if value is not None and _is_parameter(value)}
    graph = onnx.load(path, load_external_data=False).graph
    whole = len(data.inputs) if any(word in graph.name for word in _GENERATORS) else len(data.inputs) - 1
    for names in _choices(sorted(parameters), whole):
        try:
            rest = {name: shape for name, shape in free.items() if name not in names}
            fixed = {name: parameters[name] for name in names}
            return load_onnx(path, rest, None, check=False, fixed=fixed), names
        except UnsupportedModel as refusal:
            if not re.search(_UNFIXED, str(refusal)):
                error = refusal
    raise error


_UNFIXED = "computed at run time|whose value a build needs"


def _is_parameter(value: np.ndarray) -> bool:
    return value.ndim <= 1 and value.size <= 64


# Operators that make something out of sizes alone: all their inputs are fixed. Others keep at least one.
_GENERATORS = ("range", "constantofshape", "window", "melweight", "affine_grid")


def _choices(names: list[str], at_most: int) -> Iterator[tuple[str, ...]]:
    """Yield sets of inputs to fix, the smallest first."""
    for count in range(1, min(len(names), at_most) + 1):
        yield from itertools.combinations(names, count)


def _is_sized(value: np.ndarray) -> bool:
    return value.ndim > 0 and value.size > 0


def _free_only(path: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs that the model leaves open."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    free = {
        value.name
        for value in graph.input
        if value.name not in weights
        and not (
            value.type.tensor_type.HasField("shape")
            and all(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim)
        )
    }
    return {name: shape for name, shape in shapes.items() if name in free}


def run_artefact(imported: Any, path: Path, folder: Path, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """Build without report and verification, and return what the library computes in this process."""
    from xnncc.device.network import Network
    from xnncc.target import load_target

    build = import_module("xnncc.build")  # ``xnncc.build`` itself is the function
    with tempfile.TemporaryDirectory(prefix="artefact-", dir=folder) as out:
        needed = {f.name: None for f in fields(build.Job) if f.init and f.default is f.default_factory is MISSING}
        known = {"model": path, "target": load_target(TARGET), "folder": Path(out), "shapes": [{}], "bindings": ()}
        job = build.Job(**needed | known | {"jobs": 1, "progress": lambda text, done, total: None})
        job.variants = [build.Variant(imported, imported.mod)]
        for stage in (build.prepare, build.lower, build.schedule, build.emit, build.pack):
            stage(job)
        with Network(Path(out), job.manifest, threads=1) as net:
            outputs = net.run(feeds)
            handle = net._library._handle
        _close(handle)
    return outputs


def _close(handle: int) -> None:
    libc = ctypes.CDLL(None)
    libc.dlclose.argtypes = [ctypes.c_void_p]
    libc.dlclose(handle)


def _difference(ours: np.ndarray, theirs: np.ndarray | None, case: Case) -> str:
    if theirs is None:
        return "the case expects no tensor"
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)}, expected {theirs.dtype}{list(theirs.shape)}"
    if ours.dtype.kind != "f":
        wrong = int((ours != theirs).sum())
        return f"{wrong} of {ours.size} differ" if wrong else ""
    try:
        np.testing.assert_allclose(ours, theirs, case.rtol, case.atol, equal_nan=True)
    except AssertionError as error:
        worst = next((line for line in str(error).splitlines() if "Max abs" in line), str(error).splitlines()[-1])
        return f"not within rtol {case.rtol:g}, atol {case.atol:g}: {worst.strip()}"
    return ""


_CLASSES = (
    (r"operators? (is|are) not supported: (.*?)\. See", "operator"),
    (r"\(([\w.]+)\): the operator is not supported", "operator"),
    (r"is a (sequence|optional|map)", "sequences and optionals as inputs or outputs"),
    (r"string", "strings"),
    (r"dtype (\w+)", "dtype"),
    (r"element type|has dtype", "dtype"),
    (rf"{_UNFIXED}|known only at run time", "sizes or parameters computed at run time"),
    (r"training", "training"),
    (r"no elements", "tensors without elements"),
    (r"\(([\w.]+)\):", "attribute"),
)


def reason_class(words: str) -> str:
    """Return a refusal's class, with the operator or dtype where that says more: ``operator: Loop``."""
    for pattern, name in _CLASSES:
        found = re.search(pattern, words)
        if not found:
            continue
        if name == "operator":
            operators = re.findall(r"([\w.]+) \((?:node|\d)", found.group(0)) or [found.group(1)]
            return f"operator: {', '.join(sorted(set(operators)))}"
        if name in ("dtype", "attribute") and found.groups():
            return f"{name}: {found.group(1)}"
        return name
    return "other"
