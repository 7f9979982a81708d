"""A prototxt and the caffemodel beside it -> Net."""

from __future__ import annotations

from pathlib import Path

from ...errors import BadModel
from .caffemodel import read_caffemodel
from .net import Net, build_net
from .prototxt import read_prototxt


def weights_of(path: Path, weights: Path | None = None) -> Path:
    """Return the file of the weights: what the user named, or the .caffemodel of the prototxt's stem."""
    return weights or path.with_suffix(".caffemodel")


def read_net(path: Path, weights: Path | None = None) -> Net:
    """Return the network in ``path`` with the weights in ``weights_of(path, weights)``.

    Raises:
        BadModel: a file that is missing, cut off, no such file, or describes no network.
    """
    if path.suffix.lower() == ".caffemodel":
        beside = path.with_suffix(".prototxt")
        raise BadModel(f"{path}", "these are the weights only", f"Give the network: {beside} --weights {path}")
    text = read_prototxt(path)
    given = weights_of(path, weights)
    if not given.is_file():
        why = f"its weights {given} are not there"
        raise BadModel(f"{path}", why, "Name the .caffemodel with --weights FILE.")
    return build_net(path, text, read_caffemodel(given))
