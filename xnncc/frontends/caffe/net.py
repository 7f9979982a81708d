"""The layers that run at inference, each tensor with a name of its own.

Caffe names blobs, and a layer may write into the blob that it reads ("in place"), so one name can stand for several
tensors. Here each has its own name: the last one keeps the blob's, the others are ``blob@layer``. An input keeps its
blob's name in any case, because its user feeds it by that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import BadModel
from ..refused import Refused
from .caffemodel import Blobs
from .params import Params
from .prototxt import Message, Scalar
from .refused import Broken
from .types import V1_TYPES, V2_TYPES

_COMMON_FIELDS = frozenset({
    "name", "type", "bottom", "top", "include", "exclude", "phase", "param", "blobs_lr", "weight_decay",
    "loss_weight", "propagate_down", "blob_share_mode",
})  # fmt: skip
_TRAINING_FIELDS = frozenset({"transform_param", "loss_param"})
_NET_FIELDS = frozenset({
    "name", "layer", "layers", "input", "input_dim", "input_shape", "force_backward", "state", "debug_info",
})  # fmt: skip
_PHASES = {"0": "TRAIN", "1": "TEST", "TRAIN": "TRAIN", "TEST": "TEST"}


MAX_DIM = 2**31 - 1


@dataclass(frozen=True)
class Layer:
    """One layer that runs: ``inputs`` and ``outputs`` are tensors, ``blobs`` its weights."""

    name: str
    type: str
    body: Message
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    blobs: tuple[np.ndarray, ...]

    @property
    def label(self) -> str:
        """The layer for a message: ``layer 'conv1' (Convolution)``."""
        return f"layer '{self.name}' ({self.type})"

    def params(self, field: str) -> Params:
        """Return a message of the layer, ``convolution_param`` say; empty when it is not given."""
        found = self.body.messages(field)
        return Params(field, found[0] if found else None)

    def unknown_fields(self) -> list[str]:
        """Return the fields of the layer itself that are neither common to all layers nor parameters."""
        known = _COMMON_FIELDS | _TRAINING_FIELDS
        return sorted(f for f in self.body.fields if f not in known and not f.endswith("_param"))


@dataclass(frozen=True)
class Net:
    """The network at inference. ``inputs``: name and dims as the file gives them, () when it gives none."""

    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    layers: tuple[Layer, ...]
    outputs: tuple[str, ...]
    warnings: tuple[str, ...]

    def readers(self) -> Counter[str]:
        """Return how often each tensor is read, as an output too."""
        return Counter([t for layer in self.layers for t in layer.inputs] + list(self.outputs))


@dataclass(frozen=True)
class _Raw:
    name: str
    type: str
    body: Message
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]


def build_net(path: Path, text: Message, weights: Blobs) -> Net:
    """Return the network that ``text`` describes, with ``weights`` by the layers' names.

    Raises:
        BadModel: no layers, a blob nobody computes, two layers for one blob, two layers with weights of one name.
    """
    inputs = _declared_inputs(path, text)
    raw = []
    for layer in _running_layers(path, text):
        if layer.type == "Input":
            inputs += _input_layer(path, layer)
        else:
            raw.append(layer)
    if not raw:
        raise BadModel(f"{path}", "there are no layers in it that run at inference", _DEPLOY)
    if not inputs:
        raise BadModel(f"{path}", "the network has no input", _DEPLOY)
    twice = [name for name, count in Counter(name for name, _ in inputs).items() if count > 1]
    if twice:
        raise BadModel(f"{path}", f"two inputs are called '{twice[0]}'", "Give every input its own name.")
    counts = Counter(layer.name for layer in raw)
    for name in sorted(weights):
        if counts[name] > 1:
            raise BadModel(f"{path}", f"{counts[name]} layers with weights are called '{name}'", _OWN_NAME)
    layers, outputs = _with_tensors(path, [name for name, _ in inputs], raw, _shared(raw, weights))
    unknown = sorted(set(text.fields) - _NET_FIELDS)
    warnings = [f"{path.name}: field '{name}' is not known and was left out" for name in unknown]
    left = sorted(set(weights) - set(counts))
    if left:
        warnings.append(f"weights of {len(left)} layers are not used: {', '.join(left[:5])}{', ...' * (len(left) > 5)}")
    return Net(tuple(inputs), layers, outputs, tuple(warnings))


_DEPLOY = "Give the prototxt for deployment (deploy.prototxt), not the one for training."
_OWN_NAME = "Give every layer its own name."


def _declared_inputs(path: Path, text: Message) -> list[tuple[str, tuple[int, ...]]]:
    """Return the inputs that stand in front of the layers, as old files have them."""
    names = text.texts("input")
    try:
        shapes = [tuple(shape.wholes("dim", -MAX_DIM)) for shape in Params("net", text).messages_of("input_shape")]
        flat = Params("net", text).wholes("input_dim", -MAX_DIM)
    except Refused as refused:
        raise BadModel(f"{path}", refused.why, "Write whole numbers.") from refused
    if not shapes and flat:
        shapes = [tuple(flat[i : i + 4]) for i in range(0, len(flat), 4)]
    if shapes and len(shapes) != len(names):
        raise BadModel(f"{path}", f"{len(names)} inputs, but {len(shapes)} shapes for them", "Give each input a shape.")
    return list(zip(names, shapes or [()] * len(names), strict=True))


def _input_layer(path: Path, layer: _Raw) -> list[tuple[str, tuple[int, ...]]]:
    found = layer.body.messages("input_param")
    params = Params("input_param", found[0] if found else None)
    try:
        shapes = [tuple(shape.wholes("dim", -MAX_DIM)) for shape in params.messages_of("shape")]
    except Refused as refused:
        raise BadModel(f"{path}", f"layer '{layer.name}' (Input): {refused.why}", "Write whole numbers.") from refused
    if len(shapes) not in (0, 1, len(layer.tops)):
        why = f"layer '{layer.name}' (Input) has {len(layer.tops)} tops, but {len(shapes)} shapes"
        raise BadModel(f"{path}", why, "Give one shape for all, or one each.")
    return [(top, (shapes * len(layer.tops))[i] if shapes else ()) for i, top in enumerate(layer.tops)]


def _running_layers(path: Path, text: Message) -> list[_Raw]:
    """Return the layers of phase TEST, V1 types under their present names."""
    new, old = text.messages("layer"), text.messages("layers")
    if new and old:
        raise BadModel(
            f"{path}", "both 'layer' and 'layers' are used", "Upgrade it with Caffe's upgrade_net_proto_text."
        )
    result = []
    for number, body in enumerate(new or old):
        if body.messages("layer"):
            why = f"line {body.line}: a layer within a layer is the format of 2013 (V0)"
            raise BadModel(f"{path}", why, "Upgrade it with Caffe's upgrade_net_proto_text.")
        name = _one(path, body, "name", f"layer{number}")
        try:
            if not _runs(name, body):
                continue
        except Refused as refused:
            raise BadModel(f"{path}", f"layer '{name}': {refused.why}", "Correct the file.") from refused
        kind = _one(path, body, "type", "")
        if not kind:
            raise BadModel(f"{path}", f"layer '{name}' (line {body.line}) has no type", "The file is damaged.")
        kind = V1_TYPES.get(kind, kind) if old else V2_TYPES.get(kind, kind)
        result.append(_Raw(name, kind, body, tuple(body.texts("bottom")), tuple(body.texts("top"))))
    return result


def _one(path: Path, body: Message, field: str, default: str) -> str:
    values = body.fields.get(field, [])
    if len(values) > 1 or any(not isinstance(value, Scalar) for value in values):
        raise BadModel(f"{path}", f"line {body.line}: a layer needs exactly one '{field}'", "The file is damaged.")
    return body.texts(field)[0] if values else default


def _runs(name: str, body: Message) -> bool:
    """Return whether the layer is in the network of phase TEST, level 0, without stages, as Caffe decides it."""
    include, exclude = body.messages("include"), body.messages("exclude")
    if include and exclude:
        raise Broken("it has include and exclude rules, only one kind is allowed")
    if include:
        return any(_meets(rule) for rule in include)
    return not any(_meets(rule) for rule in exclude)


def _meets(rule: Message) -> bool:
    params = Params("rule", rule)
    low, high = params.whole("min_level", 0, -MAX_DIM), params.whole("max_level", 0, -MAX_DIM)
    phase = params.choice("phase", "TEST", _PHASES)
    return phase == "TEST" and low <= 0 <= high and not params.has("stage")


def _shared(raw: list[_Raw], weights: Blobs) -> Blobs:
    """Return the weights with those of layers that share another's by ``param { name }`` filled in."""
    result: Blobs = dict(weights)
    owners: dict[str, np.ndarray] = {}
    for layer in raw:
        names = [(spec.texts("name") or [""])[0] for spec in layer.body.messages("param")]
        if layer.name in weights:
            for name, blob in zip(names, weights[layer.name], strict=False):
                owners.setdefault(name, blob)
        elif names and all(name and name in owners for name in names):
            result[layer.name] = tuple(owners[name] for name in names)
    return result


def _with_tensors(
    path: Path, inputs: list[str], raw: list[_Raw], weights: Blobs
) -> tuple[tuple[Layer, ...], tuple[str, ...]]:
    writers = Counter(top for layer in raw for top in layer.tops)
    current = {name: name for name in inputs}  # blob -> the tensor it holds now
    taken, made_by, layers = set(inputs) | set(writers), dict.fromkeys(inputs, "the input"), []
    left = Counter(writers)
    reads: set[str] = set()
    for layer in raw:
        for blob in layer.bottoms:
            if blob not in current:
                raise BadModel(f"{path}", _no_writer(layer, blob, raw), "Correct the order or the names of the blobs.")
        reading = tuple(current[blob] for blob in layer.bottoms)
        reads.update(reading)
        made = []
        for index, blob in enumerate(layer.tops):
            in_place = index < len(layer.bottoms) and layer.bottoms[index] == blob
            if blob in current and not in_place:
                why = f"blob '{blob}' is computed by {made_by[blob]} and by layer '{layer.name}'"
                raise BadModel(f"{path}", why, "Give every blob its own name.")
            left[blob] -= 1
            tensor = blob if not left[blob] and blob not in inputs else _free(f"{blob}@{layer.name}", taken)
            current[blob], made_by[blob] = tensor, f"layer '{layer.name}'"
            made.append(tensor)
        layers.append(Layer(layer.name, layer.type, layer.body, reading, tuple(made), weights.get(layer.name, ())))
    outputs = tuple(t for layer in layers for t in layer.outputs if t not in reads)
    if not outputs:
        raise BadModel(f"{path}", "no layer computes an output: every blob is read by another layer", _DEPLOY)
    return tuple(layers), outputs


def _free(name: str, taken: set[str]) -> str:
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}#{count}"
    taken.add(candidate)
    return candidate


def _no_writer(layer: _Raw, blob: str, raw: list[_Raw]) -> str:
    later = next((other for other in raw if blob in other.tops), None)
    if later is layer:
        return f"layer '{layer.name}' reads blob '{blob}', which it computes itself: a cycle"
    if later is not None:
        why = f"which only the later layer '{later.name}' computes: a cycle, or layers out of order"
        return f"layer '{layer.name}' reads blob '{blob}', {why}"
    return f"layer '{layer.name}' reads blob '{blob}', which no layer computes"
