"""verify: run the artefact where it belongs and compare every output with the model's own runtime.

With ``layers`` every operator's output is compared too, so that the first one that parts is known by its name.
A network that keeps state is run ``STREAM_STEPS`` times in a row on one open network: its states go on inside the
runtime, those of the reference are handed from call to call. Of an artefact for several shapes every one is verified.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xnncc.compare import Difference, compare, unpack
from xnncc.errors import BadPackage
from xnncc.inputs import fixed_arrays, read_npz, tensor_infos
from xnncc.ir.tolerance import TOLERANCE
from xnncc.ir.variants import shapes_in_words, suits

RANDOM = "random input"
STREAM_STEPS = 4  # the second call is the first that reads a state which the network computed

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
    shapes: str = ""  # "x 1×3×48×160", of an artefact for several shapes
    further: tuple[VerifyResult, ...] = ()  # those of its other shapes

    @property
    def passed(self) -> bool:
        """Every output is within the tolerance, at every shape."""
        return all(output.passed for output in self.outputs) and all(result.passed for result in self.further)

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
        document["further"] = [result.document() for result in self.further]
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
    plugins: Sequence[str | Path] = (),
) -> VerifyResult:
    """Compare the artefact in ``directory`` with ``model`` run by its own runtime.

    ``samples``: arrays by input name, or the path of an ``.npz``; None feeds random numbers of a fixed seed
    that suit the model (indices inside their tables); outputs are reported where they are worst. ``plugins``: those
    that it was built with.

    ``tolerance`` bounds max |ours - theirs| / max |theirs| of each output; ``ir/tolerance.py`` says why 1e-4. It is
    relative to the output's largest value, because elements near zero carry the rounding of the large ones that they
    are differences of. Integer and bool outputs must be equal.

    Of an artefact for several shapes the samples are fed to the one that they fit, random numbers to the others.

    Raises: BadModel, BadInput, BadPackage, DeviceError.
    """
    from xnncc.device.artefact import variant_for
    from xnncc.frontends import load_model
    from xnncc.frontends.custom_ops import load_plugins
    from xnncc.frontends.tie_states import tie_states
    from xnncc.pack import read_manifest, variant_manifests

    load_plugins(plugins)
    directory = Path(directory)
    manifest = read_manifest(directory)
    variants = variant_manifests(manifest)
    given = read_npz(Path(samples)) if isinstance(samples, (str, Path)) else samples
    fixed, nms_rows = fixed_arrays(manifest), manifest.get("nms_rows")
    options: dict[str, Any] = {"weights": weights, "fixed": fixed, "nms_rows": nms_rows}
    pairs = [f"{pair['input']}:{pair['output']}" for pair in manifest.get("states", ())]
    results = []
    for variant in variants:
        shapes = {info.name: info.shape for info in tensor_infos(variant["inputs"])}
        imported = tie_states(load_model(Path(model), shapes, check=False, **options), pairs)
        fed = given if len(variants) == 1 or suits(given, shapes) else None
        results.append(
            verify_imported(imported, directory, samples=fed, layers=layers, device=device, tolerance=tolerance)
        )
    if given is not None and len(variants) > 1 and all(result.data.startswith(RANDOM) for result in results):
        variant_for(manifest, [given.get(t["name"]) for t in manifest["inputs"]])  # says what they should have been
    return dataclasses.replace(results[0], further=tuple(results[1:]))


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
    from xnncc.pack import read_manifest, variant_manifests

    whole = read_manifest(directory)
    variants = variant_manifests(whole)
    manifest = next((v for v in variants if tensor_infos(v["inputs"]) == tuple(imported.inputs)), variants[0])
    _check_same_network(imported, manifest, directory)
    machine = open_device(device, whole)
    sets = _feeds(imported, manifest, samples)
    stream = f", {len(sets)} calls in a row" if imported.states else ""
    return VerifyResult(
        tolerance=tolerance,
        device=machine.name,
        data=(RANDOM if samples is None else "the given samples") + stream,
        outputs=_outputs(imported, machine, directory, sets, tolerance),
        layers=tuple(_layers(imported, machine, directory, manifest, sets[0], tolerance)) if layers else None,
        shapes=shapes_in_words(imported.inputs) if len(variants) > 1 else "",
    )


def _feeds(
    imported: Imported, manifest: dict[str, Any], samples: Mapping[str, np.ndarray] | None
) -> list[dict[str, np.ndarray]]:
    """Return what is fed: one set or several, or those of a stream."""
    from xnncc.device.artefact import inputs_by_name
    from xnncc.frontends.sample_inputs import random_inputs, random_stream

    if samples is not None:
        names = [info.name for info in imported.inputs]
        sets = [dict(zip(names, inputs_by_name(manifest, dict(samples)), strict=True))]
        return sets * STREAM_STEPS if imported.states else sets
    if imported.states:
        return random_stream(imported.mod, imported.inputs, STREAM_STEPS)
    return random_inputs(imported.mod, imported.inputs)


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
    expected = imported.reference_stream(sets)
    found_sets = machine.run_stream(directory, [list(feeds.values()) for feeds in sets])
    for reference, actual in zip(expected, found_sets, strict=True):
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
