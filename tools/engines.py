"""What can run a network for a judge or a bench: onnxruntime on the model file, or an artefact that xnncc built."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from judges.verdict import Feeds, Run


def onnxruntime_engine(model: Path, threads: int = 1) -> Run:
    """The model file itself under onnxruntime, all optimisations on."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(feeds: Feeds) -> dict[str, np.ndarray]:
        return dict(zip(names, session.run(names, feeds), strict=True))

    return run


def artefact_engine(directory: Path, device: str | None = None, threads: int = 1) -> Run:
    """The library in ``directory``: through ``xnncc.load`` where this machine runs it, else on ``device``."""
    import xnncc
    from xnncc.device import open_device
    from xnncc.target import load_target

    manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
    inputs = [tensor["name"] for tensor in manifest["inputs"]]
    outputs = [tensor["name"] for tensor in manifest["outputs"]]
    if device is None and load_target(manifest["target"]).device == "host":
        network = xnncc.load(directory, threads=threads)
        return lambda feeds: network(_same_names(inputs, feeds))
    runner = open_device(device, manifest)

    def run(feeds: Feeds) -> dict[str, np.ndarray]:
        _same_names(inputs, feeds)
        return dict(zip(outputs, runner.run(directory, [feeds[name] for name in inputs], threads), strict=True))

    return run


def _same_names(inputs: list[str], feeds: Feeds) -> Feeds:
    """Give ``feeds`` back; the user's names must have come through the compiler."""
    if set(inputs) != set(feeds):
        raise ValueError(f"the artefact's inputs are {sorted(inputs)}, the model's are {sorted(feeds)}")
    return feeds
