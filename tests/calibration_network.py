"""The small network on which the calibrating methods are tested, with fixed weights and samples.

x [1, 3, 12, 12] -> conv 3x3 (8) -> relu -> depthwise 3x3 -> conv 1x1 (16) -> relu -> transposed conv 2x2 (4) -> mean
-> matmul (10) -> softmax.
"""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from xnncc.compress.numpy_network import NumpyNetwork
from xnncc.compress.result import Data, Samples, Squeezed, StepConfig

op, nn = relax.op, relax.op.nn
CLASSES = 10


def network() -> tvm.IRModule:
    """Return the module."""
    rng = np.random.default_rng(5)

    def const(*shape: int) -> relax.Expr:
        size = float(np.sqrt(np.prod(shape[1:])))
        return relax.const(rng.normal(size=shape) / size, "float32")

    x = relax.Var("x", relax.TensorType((1, 3, 12, 12), "float32"))
    block = relax.BlockBuilder()
    with block.function("main", [x]):
        with block.dataflow():
            y = block.emit(nn.conv2d(x, const(8, 3, 3, 3), padding=1), name_hint="stem")
            y = block.emit(nn.relu(block.emit(op.add(y, const(1, 8, 1, 1)))))
            y = block.emit(nn.conv2d(y, const(8, 1, 3, 3), padding=1, groups=8), name_hint="depthwise")
            y = block.emit(op.add(y, const(1, 8, 1, 1)))
            y = block.emit(nn.conv2d(y, const(16, 8, 1, 1)), name_hint="point")
            y = block.emit(nn.relu(block.emit(op.add(y, const(1, 16, 1, 1)))))
            y = block.emit(nn.conv2d_transpose(y, const(16, 4, 2, 2), strides=2), name_hint="up")
            y = block.emit(op.reshape(block.emit(nn.avg_pool2d(y, (8, 8), strides=8)), (1, 36)))
            y = block.emit(op.matmul(y, relax.const(3 * rng.normal(size=(36, CLASSES)), "float32")), name_hint="head")
            y = block.emit(op.add(y, const(CLASSES)))
            out = block.emit_output(nn.softmax(y, -1))
        block.emit_func_output(relax.Tuple([out]))
    return block.get()


def samples(count: int = 24, seed: int = 1) -> Samples:
    """Return smooth images: as correlated as pictures are, so that compensation has something to do."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(size=(count, 3, 4, 4)).repeat(3, axis=2).repeat(3, axis=3)
    return Samples({"x": (coarse + 0.2 * rng.normal(size=(count, 3, 12, 12))).astype("float32")})


def state() -> Squeezed:
    """Return the network before any method."""
    return Squeezed(network())


def data() -> Data:
    """Return calibration samples."""
    return Data(calib=samples())


def config(strength: float = 0.5, layers: tuple[str, ...] = ("*",), **params: object) -> StepConfig:
    """Return a step."""
    return StepConfig(params=params, strength=strength, layers=layers)


def quiet(text: str, done: int, total: int) -> None:
    """Say nothing."""


def answers(mod: tvm.IRModule) -> np.ndarray:
    """Return [40, 10]: what ``mod`` says on samples that no method has seen."""
    runner = NumpyNetwork(mod)
    (head,) = runner.heads
    return np.stack([runner.run(feeds)[head][0] for feeds in runner.feeds(samples(40, seed=2))])


def divergence(mod: tvm.IRModule) -> float:
    """Return the mean Kullback-Leibler divergence in nats of ``mod``'s answers from the network's own."""
    p, q = answers(network()), answers(mod)
    return float((p * np.log(p / q)).sum(axis=-1).mean())


def total_bytes(squeezed: Squeezed) -> float:
    """Return the bytes of all weights after the method, by the report."""
    return sum(line.bytes_after for line in squeezed.report.layers)
