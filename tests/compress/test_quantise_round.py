"""Rounding: bounds by hand, the guards, seed and empty recipe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from network_running import module, variable
from tvm import relax
from tvm.relax import op

from xnncc.compress.layers import weight_layers
from xnncc.compress.quantise_round import DEFAULTS, quantise_round, rounded, unsuitable
from xnncc.compress.result import Data, Squeezed, StepConfig
from xnncc.ir.coded import digest


def _config(**given: Any) -> StepConfig:
    knobs = {key: given.pop(key) for key in ("strength", "layers", "skip", "gentler") if key in given}
    return StepConfig({**DEFAULTS, **given}, **knobs)


def _run(mod: tvm.IRModule, **given: Any) -> Squeezed:
    return quantise_round(Squeezed(mod), _config(**given), Data(), 0, lambda text, done, total: None)


def _network(head: np.ndarray | None = None) -> tvm.IRModule:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype("float32") for shape in ((8, 3, 3, 3), (8, 1, 3, 3), (16, 8, 1, 1))]
    last = rng.standard_normal((16, 10)).astype("float32") if head is None else head

    def build(emit: Any, x: relax.Var) -> relax.Var:
        y = emit(op.nn.conv2d(x, relax.const(weights[0]), padding=1), "stem")
        y = emit(op.nn.conv2d(emit(op.nn.relu(y), "r"), relax.const(weights[1]), groups=8, padding=1), "dw")
        y = emit(op.mean(emit(op.nn.conv2d(y, relax.const(weights[2])), "point"), [2, 3]), "mean")
        return emit(op.matmul(y, relax.const(last)), "fc")

    return module(build, variable("x", (1, 3, 8, 8)))


@pytest.mark.parametrize(("bits", "largest"), [(8, 127), (4, 7), (2, 1)])
def test_every_weight_is_within_half_a_step(bits: int, largest: int) -> None:
    state = _run(_network(), bits=bits, sensitive_bits=2)
    before = {layer.name: layer for layer in weight_layers(_network())}
    for layer in weight_layers(state.mod):
        tensor, old = state.coded[layer.digest], before[layer.name]
        assert np.array_equal(tensor.values(), layer.weights)
        assert np.abs(tensor.integers).max() == largest
        steps = tensor.steps.reshape([-1 if i == old.axis else 1 for i in range(old.weights.ndim)])
        assert (np.abs(layer.weights - old.weights) <= steps * 0.5001).all()


def test_steps_follow_the_outputs() -> None:
    state = _run(_network(), bits=4, sensitive_bits=2)
    found = {layer.name: (layer.axis, len(state.coded[layer.digest].steps)) for layer in weight_layers(state.mod)}
    assert found == {"stem": (0, 8), "dw": (0, 8), "point": (0, 16), "fc": (1, 10)}


def test_stem_and_depthwise_keep_eight_bits() -> None:
    state = _run(_network(), bits=3)
    largest = {layer.name: int(np.abs(state.coded[layer.digest].integers).max()) for layer in weight_layers(state.mod)}
    assert largest == {"stem": 127, "dw": 127, "point": 3, "fc": 3}


def test_strength_goes_from_127_levels_to_1_and_gentler_softens() -> None:
    levels = [
        int(np.abs(state.coded[layer.digest].integers).max())
        for strength in (0.0, 0.5, 1.0)
        for state in [_run(_network(), strength=strength)]
        for layer in weight_layers(state.mod)
        if layer.name == "fc"
    ]
    assert levels == [127, 15, 1]
    state = _run(_network(), strength=1.0, gentler={"fc": 0.5, "point": 0.0})
    assert dict(state.report.left_alone) == {"point": "its loss was too high"}
    fc = next(layer for layer in weight_layers(state.mod) if layer.name == "fc")
    assert np.abs(state.coded[fc.digest].integers).max() == 15


def test_an_empty_recipe_changes_nothing_and_the_seed_does_not_matter() -> None:
    mod = _network()
    state = _run(mod, layers=())
    tvm.ir.assert_structural_equal(state.mod, mod)
    assert not state.coded and not state.report.layers
    assert set(state.report.left_alone) == {"stem", "dw", "point", "fc"}


def test_a_channel_of_zeros_stays_zero() -> None:
    head = np.ones((16, 10), "float32")
    head[:, 3] = 0
    state = _run(_network(head), bits=8)
    fc = next(layer for layer in weight_layers(state.mod) if layer.name == "fc")
    assert not fc.weights[:, 3].any() and np.isfinite(fc.weights).all()
    assert state.coded[fc.digest].steps[3] == 1


@pytest.mark.parametrize(
    ("value", "why"),
    [(np.nan, "NaN or infinity"), (np.inf, "NaN or infinity"), (1e-35, "too small for a float32 step")],
)
def test_what_cannot_be_rounded_is_left_alone(value: float, why: str) -> None:
    head = np.full((16, 10), value, "float32")
    state = _run(_network(head))
    assert why in state.report.left_alone["fc"]
    assert digest(head) not in state.coded


def test_a_tiny_channel_beside_large_ones_becomes_zero() -> None:
    weights = np.ones((2, 40), "float32")
    weights[1] = 1e-38
    assert unsuitable(weights) == ""
    assert not rounded(weights, 127, 0).values()[1].any()


def test_a_shared_weight_is_coded_once() -> None:
    weights = relax.const(np.random.default_rng(0).standard_normal((8, 8)).astype("float32"))

    def build(emit: Any, x: relax.Var) -> relax.Var:
        return emit(op.matmul(emit(op.matmul(x, weights), "first"), weights), "second")

    state = _run(module(build, variable("x", (1, 8))))
    (layer,) = weight_layers(state.mod)
    assert (layer.name, layer.shared, layer.macs) == ("first", ("second",), 128)
    assert len(state.coded) == 1
