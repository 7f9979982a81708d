"""A prototxt and the caffemodel beside it -> Net."""

from __future__ import annotations

from pathlib import Path

from ...errors import BadModel
from .caffemodel import read_caffemodel
from .net import Net, build_net
from .prototxt import read_prototxt


def read_net(path: Path, weights: Path | None = None) -> Net:
    """Return the network in ``path`` with the weights in ``weights``, by default the .caffemodel of the same stem.

    Raises:
        BadModel: a file that is missing, cut off, no such file, or describes no network.
    """
    if path.suffix.lower() == ".caffemodel":
        beside = path.with_suffix(".prototxt")
        raise BadModel(f"{path}", "these are the weights only", f"Give the network: {beside} --weights {path}")
    text = read_prototxt(path)
    given = weights or path.with_suffix(".caffemodel")
    if not given.is_file():
        why = f"its weights {given} are not there"
        raise BadModel(f"{path}", why, "Name the .caffemodel with --weights FILE.")
    return build_net(path, text, read_caffemodel(given))
