"""A classification task that a small network learns in seconds: which of ten blurred patterns an image shows."""

from __future__ import annotations

import functools

import channel_networks
import numpy as np
import tvm

from xnncc.compress.result import Data, Samples, Squeezed, StepConfig

CLASSES = 10


@functools.cache
def _task(count: int, seed: int) -> Samples:
    patterns = np.random.default_rng(7).normal(size=(CLASSES, 3, 8, 8))
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=count)
    images = patterns[labels] * rng.uniform(0.6, 1.2, (count, 1, 1, 1)) + 0.5 * rng.normal(size=(count, 3, 8, 8))
    return Samples({"x": images.astype("float32")}, labels.astype(np.int64))


@functools.cache
def trained() -> tvm.IRModule:
    """Return ``channel_networks.chain`` trained on the task: 99.6 % right."""
    from xnncc.compress.fine_tune import DEFAULTS, fine_tuned

    start = channel_networks.chain()
    config = StepConfig({**DEFAULTS, "share": 0.0, "epochs": 8, "batch": 64, "lr": 1e-2})
    return fine_tuned(start, config, Data(train=_task(1024, 1), original=start), 0, "train", quiet)


def state() -> Squeezed:
    """Return the trained network before any method."""
    return Squeezed(trained())


def data() -> Data:
    """Return labelled training samples and unlabelled calibration samples."""
    return Data(calib=Samples(_task(48, 3).inputs), train=_task(1024, 1), original=trained())


def calibration() -> Data:
    """Return calibration samples alone."""
    return Data(calib=Samples(_task(48, 3).inputs), original=trained())


def accuracy(mod: tvm.IRModule) -> float:
    """Return the share of 1,000 other samples that ``mod`` has right."""
    from xnncc.compress.torch_network import TorchNetwork

    samples, network = _task(1000, 2), TorchNetwork(mod)
    (logits,) = network.run(network.tensors(samples))
    return float((logits[:, 0].argmax(1).detach().numpy() == samples.labels).mean())


def quiet(text: str, done: int, total: int) -> None:
    """Say nothing."""
