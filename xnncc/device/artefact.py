"""What every device shares: the artefact's files, its tensors as bytes, and the three things a device can do."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xnncc.errors import BadInput, BadPackage, DeviceError, nearest
from xnncc.ir.plan import DTYPE_BYTES
from xnncc.pack import variant_manifests

if TYPE_CHECKING:
    import numpy as np

Ops = Sequence[dict[str, Any]]  # "ops" of manifest.json


@dataclass(frozen=True)
class Timings:
    """Wall time of each inference in ms, and of each operator (median over the inferences) when it was asked for."""

    ms: list[float]
    per_op_ms: list[float] | None = None

    @property
    def median_ms(self) -> float:
        """The middle one."""
        return _quantile(self.ms, 0.5)

    @property
    def p90_ms(self) -> float:
        """Nine of ten are at most this."""
        return _quantile(self.ms, 0.9)

    @property
    def min_ms(self) -> float:
        """The best one."""
        return min(self.ms)


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def timings_of_ops(samples: list[list[float]]) -> Timings:
    """Return the timings of inferences that were run operator by operator: ``samples[inference][operator]`` in ms."""
    return Timings([sum(s) for s in samples], [_quantile(list(column), 0.5) for column in zip(*samples, strict=True)])


class Device(ABC):
    """A place that runs artefacts. All methods raise DeviceError when the artefact fails there."""

    name = ""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifest = manifest

    @abstractmethod
    def run(self, folder: Path, inputs: Sequence[np.ndarray], threads: int = 1) -> list[np.ndarray]:
        """Return the outputs, in the manifest's order, of one inference; ``inputs`` in the manifest's order."""

    def run_stream(
        self, folder: Path, steps: Sequence[Sequence[np.ndarray]], threads: int = 1
    ) -> list[list[np.ndarray]]:
        """Return the outputs of several inferences in a row on one open network, whose states go on.

        All steps have the same shapes.
        """
        if len(steps) > 1 and self.manifest.get("states"):
            raise DeviceError(f"device '{self.name}'", "it opens the network anew for every inference")
        return [self.run(folder, inputs, threads) for inputs in steps]

    @abstractmethod
    def time(
        self, folder: Path, inputs: Sequence[np.ndarray], threads: int = 1, repeat: int = 20, per_op: bool = False
    ) -> Timings:
        """Return the wall times of ``repeat`` inferences after one that warms up."""

    @abstractmethod
    def trace(self, folder: Path, inputs: Sequence[np.ndarray], ops: Ops) -> Iterator[tuple[int, list[np.ndarray]]]:
        """Yield, after each of ``ops``, its index and the raw bytes (uint8) of each of its output regions."""


def artefact_file(folder: Path, manifest: dict[str, Any], role: str, suffixes: tuple[str, ...]) -> Path:
    """Return the artefact's file of that role ("library", "package").

    Raises: BadPackage when the folder lacks it.
    """
    names = [str(f["path"]) for f in manifest["files"] if f["role"] == role and str(f["path"]).endswith(suffixes)]
    names += [p.name for p in sorted(folder.iterdir()) if not names and p.name.endswith(suffixes)]
    if not names or not (folder / names[0]).is_file():
        wanted = names[0] if names else " or ".join(f"*{s}" for s in suffixes)
        raise BadPackage(f"'{folder}'", f"it has no {role} ({wanted})", "Build the folder again with 'xnncc build'.")
    return (folder / names[0]).resolve()


def library_file(folder: Path, manifest: dict[str, Any]) -> Path:
    """Return the library that a device loads. Raises: BadPackage."""
    return artefact_file(folder, manifest, "library", (".so", ".dylib", ".wasm", ".a"))


def package_file(folder: Path, manifest: dict[str, Any]) -> Path:
    """Return the ``.xnn`` package. Raises: BadPackage."""
    return artefact_file(folder, manifest, "package", (".xnn",))


def module_file(folder: Path, manifest: dict[str, Any]) -> Path:
    """Return the ES module that loads a WebAssembly library and its package, which must lie beside it.

    Raises: BadPackage.
    """
    library_file(folder, manifest), package_file(folder, manifest)
    return artefact_file(folder, manifest, "binding", (".mjs",))


def tensor_bytes(tensor: dict[str, Any]) -> int:
    """Return the bytes of an input or output of the manifest."""
    return prod(tensor["shape"]) * DTYPE_BYTES[tensor["dtype"]]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return numpy's type of a dtype name; bfloat16, which numpy lacks, travels as its bits in uint16."""
    import numpy as np

    return np.dtype("uint16" if name == "bfloat16" else name)


def variant_for(manifest: dict[str, Any], inputs: Sequence[Any]) -> dict[str, Any]:
    """Return the manifest of the variant that takes inputs of these shapes, in the manifest's order.

    Raises: BadInput when the artefact was built for several shapes and none of them fits.
    """
    import numpy as np

    variants = variant_manifests(manifest)
    if len(variants) == 1 or len(inputs) != len(manifest["inputs"]):
        return variants[0]
    given = [list(np.shape(value)) for value in inputs]
    for variant in variants:
        if [tensor["shape"] for tensor in variant["inputs"]] == given:
            return variant
    words = ", ".join(f"'{t['name']}' {shape}" for t, shape in zip(manifest["inputs"], given, strict=True))
    built = "; ".join(", ".join(f"'{t['name']}' {t['shape']}" for t in v["inputs"]) for v in variants)
    raise BadInput(f"inputs {words}", f"the artefact was built for {built}", "Resize them, or build with that --shape.")


def check_inputs(manifest: dict[str, Any], inputs: Sequence[Any]) -> list[np.ndarray]:
    """Return the inputs as dense arrays of the shapes and types of the variant that fits, in the manifest's order.

    Raises: BadInput.
    """
    expected = variant_for(manifest, inputs)["inputs"]
    if len(inputs) != len(expected):
        names = ", ".join(f"'{t['name']}'" for t in expected)
        raise BadInput(f"{len(inputs)} inputs given", f"the network has {len(expected)}", f"Give {names}.")
    return [_check_tensor(tensor, value) for tensor, value in zip(expected, inputs, strict=True)]


def inputs_by_name(manifest: dict[str, Any], named: dict[str, Any]) -> list[np.ndarray]:
    """Return the inputs of a table by the model's own names as dense arrays in the manifest's order.

    Raises: BadInput.
    """
    names = [str(t["name"]) for t in manifest["inputs"]]
    for name in named:
        if name not in names:
            known = "Known: " + ", ".join(names) + "."
            raise BadInput(f"the network has no input '{name}'{nearest(name, names)}", "", known)
    missing = [name for name in names if name not in named]
    if missing:
        raise BadInput(f"input '{missing[0]}' is missing", "", "Give every input: " + ", ".join(names) + ".")
    return check_inputs(manifest, [named[name] for name in names])


def _check_tensor(tensor: dict[str, Any], value: Any) -> np.ndarray:
    import numpy as np

    array, dtype, shape = np.asarray(value), numpy_dtype(tensor["dtype"]), tuple(tensor["shape"])
    if array.dtype != dtype:
        why = f"its type is {array.dtype}, expected {tensor['dtype']}"
        raise BadInput(f"input '{tensor['name']}'", why, f"Convert it: array.astype('{dtype}').")
    if array.shape != shape:
        why = f"its shape is {list(array.shape)}, expected {list(shape)}"
        raise BadInput(f"input '{tensor['name']}'", why, "Resize or reshape it, or build with another --shape.")
    return np.asarray(array, order="C")  # ascontiguousarray would turn a scalar into a vector


def split_outputs(manifest: dict[str, Any], data: bytes) -> list[np.ndarray]:
    """Return the outputs out of their bytes, one after the other.

    Raises: DeviceError when there are fewer or more bytes.
    """
    import numpy as np

    total = sum(tensor_bytes(t) for t in manifest["outputs"])
    if len(data) != total:
        raise DeviceError("the device's answer", f"{len(data)} bytes of outputs, expected {total}")
    arrays, at = [], 0
    for tensor in manifest["outputs"]:
        size = tensor_bytes(tensor)
        flat = np.frombuffer(data[at : at + size], dtype=numpy_dtype(tensor["dtype"]))
        arrays.append(flat.reshape(tensor["shape"]).copy())
        at += size
    return arrays


def split_steps(manifest: dict[str, Any], data: bytes, steps: int) -> list[list[np.ndarray]]:
    """Return the outputs of several inferences out of their bytes, one inference after the other.

    Raises: DeviceError when there are fewer or more bytes.
    """
    size = len(data) // steps
    return [split_outputs(manifest, data[i * size : (i + 1) * size]) for i in range(steps)]


def split_regions(ops: Ops, data: bytes) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield each operator's index and output regions out of their bytes, one after the other."""
    import numpy as np

    at = 0
    for op in ops:
        regions = []
        for region in op["outputs"]:
            regions.append(np.frombuffer(data[at : at + region["size"]], dtype=np.uint8))
            at += region["size"]
        yield int(op["index"]), regions


def crash_error(what: str, exit_code: int, target: str) -> DeviceError:
    """Return the error for a process that a signal ended; ``exit_code`` as subprocess (-4) or a shell (132) has it."""
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return DeviceError(what, f"it ended with exit code {exit_code}")
    if name == "SIGILL":
        next_step = f"This CPU lacks an instruction of target '{target}': build for a lower target."
        return DeviceError(what, "it was ended by SIGILL (illegal instruction)", next_step)
    next_step = "A kernel or the package is broken: run 'xnncc verify --layers'."
    return DeviceError(what, f"it was ended by {name}", next_step)
