"""verify: run the artefact where it belongs and compare every output with the model's own runtime.

With ``layers`` every operator's output is compared too, so that the first one that parts is known by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xnncc.compare import Difference, compare, unpack
from xnncc.errors import BadPackage
from xnncc.inputs import read_npz, tensor_infos
from xnncc.ir.tolerance import TOLERANCE

if TYPE_CHECKING:
    import numpy as np

    from xnncc.device import Device
    from xnncc.frontends.imported import Imported


@dataclass(frozen=True)
class LayerDifference:
    """How far one operator's output is from the tensor of the same name in the source model."""

    index: int
    kernel: str
    tensor: str
    shape: tuple[int, ...]
    difference: Difference | None  # None: the source runtime has no tensor of that name to compare with


@dataclass(frozen=True)
class VerifyResult:
    """Whether the artefact gives the source model's numbers, and by how much it misses them."""

    tolerance: float
    device: str  # where the artefact ran
    data: str  # what was fed: "random input" or "the given samples"
    outputs: tuple[Difference, ...]
    layers: tuple[LayerDifference, ...] | None = None

    @property
    def passed(self) -> bool:
        """Every output is within the tolerance."""
        return all(output.passed for output in self.outputs)

    @property
    def summary(self) -> str:
        """One line: how well it fits, or which outputs do not and why."""
        bad = [output for output in self.outputs if not output.passed]
        if not bad:
            worst = max((output.max_relative or 0.0 for output in self.outputs), default=0.0)
            return f"largest relative difference {worst:.1e}, tolerance {self.tolerance:g}"
        return "; ".join(f"output '{output.name}': {output.sentence}" for output in bad)

    @property
    def first_bad_layer(self) -> LayerDifference | None:
        """The first operator, in the order they run, whose output is beyond the tolerance."""
        return next((layer for layer in self.layers or () if layer.difference and not layer.difference.passed), None)

    def document(self) -> dict[str, Any]:
        """Return the result as plain data for JSON; numbers that are not finite become None."""
        document = asdict(self)
        bad = self.first_bad_layer
        document["passed"] = self.passed
        document["first_bad_layer"] = bad.index if bad else None
        return document


def verify(
    model: str | Path,
    directory: str | Path,
    *,
    samples: str | Path | Mapping[str, np.ndarray] | None = None,
    weights: str | Path | None = None,
    layers: bool = False,
    device: str | None = None,
    tolerance: float = TOLERANCE,
) -> VerifyResult:
    """Compare the artefact in ``directory`` with ``model`` run by its own runtime.

    ``samples``: arrays by input name, or the path of an ``.npz``; None feeds random numbers of a fixed seed
    that suit the model (indices inside their tables); outputs are reported where they are worst.

    ``tolerance`` bounds max |ours - theirs| / max |theirs| of each output; ``ir/tolerance.py`` says why 1e-4. It is
    relative to the output's largest value, because elements near zero carry the rounding of the large ones that they
    are differences of. Integer and bool outputs must be equal.

    Raises: BadModel, BadInput, BadPackage, DeviceError.
    """
    from xnncc.frontends import load_model
    from xnncc.frontends.tie_states import tie_states
    from xnncc.pack import read_manifest

    directory = Path(directory)
    manifest = read_manifest(directory)
    infos = tensor_infos(manifest["inputs"])
    given = read_npz(Path(samples)) if isinstance(samples, (str, Path)) else samples
    shapes = {info.name: info.shape for info in infos}
    imported = load_model(Path(model), shapes, check=False, weights=weights)
    imported = tie_states(imported, [f"{pair['input']}:{pair['output']}" for pair in manifest.get("states", ())])
    return verify_imported(imported, directory, samples=given, layers=layers, device=device, tolerance=tolerance)


def verify_imported(
    imported: Imported,
    directory: Path,
    *,
    samples: Mapping[str, np.ndarray] | None = None,
    layers: bool = False,
    device: str | None = None,
    tolerance: float = TOLERANCE,
) -> VerifyResult:
    """Compare as ``verify`` does, for a model that is imported already."""
    from xnncc.device import open_device
    from xnncc.device.artefact import inputs_by_name
    from xnncc.pack import read_manifest

    manifest = read_manifest(directory)
    _check_same_network(imported, manifest, directory)
    machine = open_device(device, manifest)
    if samples is None:
        from xnncc.frontends.sample_inputs import random_inputs

        sets = random_inputs(imported.mod, imported.inputs)
    else:
        names = [info.name for info in imported.inputs]
        sets = [dict(zip(names, inputs_by_name(manifest, dict(samples)), strict=True))]
    return VerifyResult(
        tolerance=tolerance,
        device=machine.name,
        data="random input" if samples is None else "the given samples",
        outputs=_outputs(imported, machine, directory, sets, tolerance),
        layers=tuple(_layers(imported, machine, directory, manifest, sets[0], tolerance)) if layers else None,
    )


def _check_same_network(imported: Imported, manifest: dict[str, Any], directory: Path) -> None:
    """Refuse a model whose inputs or outputs are not the artefact's: it was built from another file."""
    for side, infos in (("inputs", imported.inputs), ("outputs", imported.outputs)):
        built = tensor_infos(manifest[side])
        if tuple(infos) != built:
            raise BadPackage(
                f"'{directory}'",
                f"it was built from another model than '{imported.source}': "
                f"{side} {_names(built)} there, {_names(infos)} here",
                "Build it again from this model, or verify against the model it was built from.",
            )


def _names(infos: tuple[Any, ...]) -> str:
    return ", ".join(f"{info.name} {list(info.shape)} {info.dtype}" for info in infos)


def _outputs(
    imported: Imported, machine: Device, directory: Path, sets: list[dict[str, np.ndarray]], tolerance: float
) -> tuple[Difference, ...]:
    """Return for each output its difference on that set of inputs where it is worst."""
    worst: dict[str, Difference] = {}
    for feeds in sets:
        reference = imported.reference(feeds)
        actual = machine.run(directory, list(feeds.values()))
        for info, array in zip(imported.outputs, actual, strict=True):
            found = compare(info.name, array, reference[info.name], tolerance)
            worst[info.name] = max(worst.get(info.name, found), found, key=_badness)
    return tuple(worst[info.name] for info in imported.outputs)


def _badness(difference: Difference) -> tuple[bool, float]:
    return not difference.passed, difference.max_relative or 0.0


def _layers(
    imported: Imported,
    machine: Device,
    directory: Path,
    manifest: dict[str, Any],
    feeds: dict[str, np.ndarray],
    tolerance: float,
) -> Iterator[LayerDifference]:
    """Yield the difference of each tensor that an operator completes, in the order the operators run."""
    ops = manifest["ops"]
    names = [_tensor_names(op) for op in ops]
    reference = imported.reference_tensors(feeds, sorted({name for row in names for name in row if name}))
    for index, raw in machine.trace(directory, list(feeds.values()), ops):
        for name, region, data in zip(names[index], ops[index]["outputs"], raw, strict=False):
            shape = tuple(region["shape"])
            difference = None
            theirs = reference.get(name)
            if theirs is not None:
                theirs = theirs.reshape(shape) if theirs.size == prod(shape) else theirs  # a fused reshape is no fault
                difference = compare(name, unpack(data, region), theirs, tolerance)
            yield LayerDifference(index, ops[index]["kernel"], name, shape, difference)


def _tensor_names(op: dict[str, Any]) -> list[str]:
    """Return the source tensor that each output region of ``op`` holds: the last ones of its list, in order."""
    wanted = len(op["outputs"])
    names = list(op["source"])[-wanted:]
    return [""] * (wanted - len(names)) + names
