"""Every method that does not train, on one network that has what breaks others: all of it at once."""

from __future__ import annotations

from functools import cache

import calibration_network as small
import numpy as np
import pytest
import tvm
from tvm import relax

from xnncc.compress.layers import weight_layers, with_constants
from xnncc.compress.numpy_network import NumpyNetwork
from xnncc.compress.recipe import METHODS, method_named, parse_recipe
from xnncc.compress.result import Data, Samples, Squeezed, StepConfig

op, nn = relax.op, relax.op.nn
METHODS_HERE = sorted(name for name, needs in METHODS.items() if needs != "train")
DATA_FREE = [name for name in METHODS_HERE if METHODS[name] == "nothing" and name != "prune_neurons"]
# Relative RMS of the answer, measured 2026-12 at strength 0.2 and rounded up by half; what is cut is not made good by
# fine-tuning here.
MOST = {"prune_neurons": 0.8, "prune_synapses": 0.5}


@cache
def network() -> tvm.IRModule:
    """Return an image of one channel [1, 1, 12, 12] -> three numbers (a regression), with a channel of zeros, one of
    tiny weights, a depthwise layer, a squeeze-excite gate and a weight that two convolutions read."""
    rng = np.random.default_rng(11)

    def array(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype("float32")

    def const(value: np.ndarray) -> relax.Expr:
        return relax.const(value, "float32")

    stem, shared = array(16, 1, 3, 3), const(array(16, 16, 1, 1))
    stem[3], stem[5] = 0, stem[5] * 1e-12
    x = relax.Var("x", relax.TensorType((1, 1, 12, 12), "float32"))
    block = relax.BlockBuilder()
    with block.function("main", [x]):
        with block.dataflow():
            y = block.emit(nn.conv2d(x, const(stem), padding=1), name_hint="stem")
            y = block.emit(nn.relu(block.emit(op.add(y, const(array(1, 16, 1, 1))))))
            y = block.emit(nn.conv2d(y, const(array(16, 1, 3, 3)), padding=1, groups=16), name_hint="depthwise")
            gate = block.emit(op.mean(y, [2, 3], keepdims=True), name_hint="squeeze")
            gate = block.emit(nn.relu(block.emit(nn.conv2d(gate, const(array(8, 16, 1, 1))), name_hint="down")))
            gate = block.emit(op.sigmoid(block.emit(nn.conv2d(gate, const(array(16, 8, 1, 1))), name_hint="up")))
            y = block.emit(op.multiply(y, gate), name_hint="excited")
            y = block.emit(nn.relu(block.emit(nn.conv2d(y, shared), name_hint="once")))
            y = block.emit(nn.relu(block.emit(nn.conv2d(y, shared), name_hint="twice")))
            y = block.emit(op.reshape(block.emit(op.mean(y, [2, 3])), (1, 16)))
            y = block.emit(op.matmul(y, const(array(16, 3))), name_hint="head")
            out = block.emit_output(op.add(y, const(array(3))))
        block.emit_func_output(relax.Tuple([out]))
    return block.get()


@cache
def samples(seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    coarse = rng.normal(size=(24, 1, 4, 4)).repeat(3, axis=2).repeat(3, axis=3)
    return Samples({"x": (coarse + 0.2 * rng.normal(size=(24, 1, 12, 12))).astype("float32")})


def answers(mod: tvm.IRModule) -> np.ndarray:
    """Return [24, 3]: what ``mod`` says on samples that no method has seen."""
    runner = NumpyNetwork(mod)
    return np.stack([runner.run(feeds)[runner.heads[0]][0] for feeds in runner.feeds(samples(2))])


def step(method: str) -> StepConfig:
    (only,) = parse_recipe(f'[[step]]\nmethod = "{method}"\nstrength = 0.2', "guards").steps
    return StepConfig(only.params, only.strength)


@pytest.mark.parametrize("method", METHODS_HERE)
def test_the_answer_stays_and_shared_weights_stay_shared(method: str) -> None:
    state = Squeezed(network())
    data = Data(calib=samples(1), original=state.mod, measure=lambda mod: 0.0)
    made = method_named(method)(state, step(method), data, 0, small.quiet)
    expected, found = answers(state.mod), answers(made.mod)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found - expected) <= MOST.get(method, 0.1) * np.linalg.norm(expected)
    (shared,) = [layer for layer in weight_layers(made.mod) if layer.name == "once"]
    assert shared.shared == ("twice",)
    assert all(np.isfinite([line.bytes_after, line.error]).all() for line in made.report.layers)


@pytest.mark.parametrize("method", DATA_FREE)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_no_number_stays_as_it_is(method: str, value: float) -> None:
    """Without samples: a network with NaN answers NaN to each. A neuron cut rounds nothing."""
    depthwise = next(layer for layer in weight_layers(network()) if layer.name == "depthwise")
    broken = depthwise.weights.copy()
    broken[0, 0, 0, 0] = value
    state = Squeezed(with_constants(network(), {depthwise.digest: broken}))
    with np.errstate(all="ignore"):
        made = method_named(method)(state, step(method), Data(), 0, small.quiet)
    (after,) = [layer.weights for layer in weight_layers(made.mod) if layer.name == "depthwise"]
    assert np.array_equal(after, broken, equal_nan=True)
