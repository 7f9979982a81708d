"""What is in a prototxt and what of it cannot be built: see ``frontends/survey.py``."""

from __future__ import annotations

from pathlib import Path

from ...errors import BadModel
from ..survey import OWN_OPERATOR, NodeFacts, Shapes, Survey, Trial, Unsupported, macs_by_label, merged, tried
from .caffemodel import read_caffemodel
from .convert import NetConverter
from .inputs import static_inputs
from .layers import CONVERTERS
from .net import Net, build_net
from .prototxt import read_prototxt
from .read import weights_of
from .types import REASONS


def survey(path: Path, shapes: Shapes, weights: Path | None) -> Survey:
    """Return what is in the network; its weights need not be there."""
    text, given = read_prototxt(path), weights_of(path, weights)
    has_weights = given.is_file()
    net = build_net(path, text, read_caffemodel(given) if has_weights else {})
    nodes = tuple(
        NodeFacts(layer.type, layer.name, layer.label, layer.outputs, sum(blob.nbytes for blob in layer.blobs))
        for layer in net.layers
    )
    by_name = [
        Unsupported(layer.type, layer.name, REASONS.get(layer.type, "the layer is not supported"), OWN_OPERATOR)
        for layer in net.layers
        if layer.type not in CONVERTERS
    ]
    note = "" if has_weights else f"its weights {given} are not there. Name the .caffemodel with --weights FILE."
    trial = _trial(path, net, shapes, by_name, nodes) if has_weights else Trial(None, (), note)
    return Survey(
        format="caffe",
        inputs=tuple({"name": name, "shape": list(dims) or None, "dtype": "float32"} for name, dims in net.inputs),
        outputs=tuple({"name": name, "shape": None, "dtype": "float32"} for name in net.outputs),
        nodes=nodes,
        unsupported=merged(by_name, trial.unsupported),
        macs=macs_by_label(trial.mod, nodes) if trial.mod is not None else None,
        note=trial.note,
    )


def _trial(path: Path, net: Net, shapes: Shapes, by_name: list[Unsupported], nodes: tuple[NodeFacts, ...]) -> Trial:
    if by_name:
        return Trial(None, (), "layers after an unsupported one are not looked at")
    try:
        inputs = static_inputs(path, net, shapes)
    except BadModel as error:
        return Trial(None, (), f"{error.why}. {error.next}" if error.why else str(error))
    converter = NetConverter(path, net)
    return tried(lambda: converter.convert(inputs)[0], lambda: [s for _, s in converter.problems], nodes)
