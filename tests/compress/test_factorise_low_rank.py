"""factorise_low_rank: low ranks are found with the same numbers, data choose better than weights alone, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import calibration_network as small
import numpy as np
import pytest
import tvm
from network_running import module as written
from network_running import variable
from tvm import relax
from tvm.relax import op

from xnncc.compress.factorise_low_rank import factorise_low_rank
from xnncc.compress.layers import weight_layers
from xnncc.compress.numpy_network import NumpyNetwork
from xnncc.compress.result import Data, Samples, Squeezed
from xnncc.ir.coded import CodedTensor
from xnncc.transform.flat_network import FlatNetwork

Array = np.ndarray
RNG = np.random.default_rng(3)
KERNEL = np.einsum("or,rcu,rv->ocuv", *(RNG.standard_normal(s) for s in ((16, 3), (3, 12, 3), (3, 3))))


def module(build: Callable[..., Any], x: relax.Var) -> tvm.IRModule:
    """Return the module as importers write it: its results are a tuple."""
    return FlatNetwork(written(build, x)).module()


def conv(weights: Array, **attributes: Any) -> Callable[..., relax.Var]:
    def build(emit: Any, x: relax.Var) -> relax.Var:
        y = emit(op.nn.conv2d(x, relax.const(weights.astype("float32")), **attributes), "conv")
        return emit(op.add(y, relax.const(np.full((1, len(weights), 1, 1), 0.5, "float32"))), "out")

    return build


def dense(weights: Array) -> Callable[..., relax.Var]:
    return lambda emit, x: emit(op.matmul(x, relax.const(weights.astype("float32"))), "dense")


def low(rank: int, rows: int, columns: int) -> Array:
    return RNG.standard_normal((rows, rank)) @ RNG.standard_normal((rank, columns))


def run(mod: tvm.IRModule, x: Array) -> Array:
    network = NumpyNetwork(mod)
    (head,) = network.heads
    return np.stack([network.run(feeds)[head][0] for feeds in network.feeds(Samples({"x": x}))])


CASES = {
    "dense of rank 4": (dense(low(4, 40, 30)), (1, 40), [(40, 4), (4, 30)]),
    "1x1 of rank 5": (conv(low(5, 24, 32)[..., None, None]), (1, 32, 6, 6), [(5, 32, 1, 1), (24, 5, 1, 1)]),
    "3x3 with 4 kinds of output": (
        conv(low(4, 32, 12 * 9).reshape(32, 12, 3, 3), strides=2, padding=1),
        (1, 12, 9, 9),
        [(4, 12, 3, 3), (32, 4, 1, 1)],
    ),
    "3x3 split in height and width": (
        conv(KERNEL, strides=(2, 1), padding=(1, 2, 0, 1), dilation=(1, 2)),
        (1, 12, 10, 11),
        [(3, 12, 3, 1), (16, 3, 1, 3)],
    ),
}


@pytest.mark.parametrize("with_samples", [False, True], ids=["data-free", "calibrated"])
@pytest.mark.parametrize("case", CASES)
def test_a_low_rank_is_found_and_gives_the_same_numbers(case: str, with_samples: bool) -> None:
    build, shape, expected = CASES[case]
    mod = module(build, variable("x", shape))
    x = np.random.default_rng(1).standard_normal((40, *shape[1:])).astype("float32")
    data = Data(calib=Samples({"x": x})) if with_samples else Data()
    made = factorise_low_rank(Squeezed(mod), small.config(error=1e-3), data, 0, small.quiet)
    assert [layer.weights.shape for layer in weight_layers(made.mod) if layer.weights.ndim > 1] == expected
    before, after = run(mod, x[:4]), run(made.mod, x[:4])
    assert np.abs(before - after).max() <= 1e-4 * np.abs(before).max()
    (line,) = made.report.layers
    assert line.macs_after < line.macs_before and line.kept < line.weights and line.error <= 1e-3
    assert made.report.facts["MACs after"] == line.macs_after


def test_what_has_no_low_rank_is_left_alone_with_the_reason() -> None:
    mod = module(dense(np.eye(40)), variable("x", (1, 40)))
    made = factorise_low_rank(Squeezed(mod), small.config(error=0.3), Data(), 0, small.quiet)
    tvm.ir.assert_structural_equal(made.mod, mod)
    assert made.report.left_alone == {"dense": "no rank that pays keeps its output within 30.0%"}


def test_samples_find_a_rank_that_the_weights_do_not_show() -> None:
    """The weight has full rank, the inputs lie in five directions: what is never asked need not be kept."""
    mod = module(dense(RNG.standard_normal((40, 40))), variable("x", (1, 40)))
    x = (np.random.default_rng(1).standard_normal((200, 5)) @ low(5, 5, 40)).astype("float32")
    blind = factorise_low_rank(Squeezed(mod), small.config(error=0.05), Data(), 0, small.quiet)
    seeing = factorise_low_rank(
        Squeezed(mod), small.config(error=0.05, samples=100), Data(calib=Samples({"x": x})), 0, small.quiet
    )
    assert not blind.report.layers
    assert seeing.report.layers[0].kept <= 5 * 80
    before, after = run(mod, x[100:]), run(seeing.mod, x[100:])
    assert np.linalg.norm(before - after) <= 0.06 * np.linalg.norm(before)


def test_a_bias_takes_up_the_mean_of_what_is_lost() -> None:
    weights = low(20, 24, 32)[..., None, None]
    mod = module(conv(weights), variable("x", (1, 32, 4, 4)))
    x = np.random.default_rng(1).standard_normal((60, 32, 4, 4)).astype("float32") + 3
    data = Data(calib=Samples({"x": x}))
    made = factorise_low_rank(Squeezed(mod), small.config(error=0.5), data, 0, small.quiet)
    assert made.report.layers
    before, after = run(mod, x), run(made.mod, x)
    drift = (before - after).mean(axis=(0, 2, 3))
    assert np.abs(drift).max() <= 1e-3 * np.abs(before).mean()


def test_more_strength_leaves_fewer_weights_and_strength_zero_all() -> None:
    kept = []
    for strength in (0.0, 0.5, 1.0):
        made = factorise_low_rank(small.state(), small.config(strength), small.data(), 0, small.quiet)
        kept.append(sum(layer.weights.size for layer in weight_layers(made.mod)))
    full = sum(layer.weights.size for layer in weight_layers(small.network()))
    assert full == kept[0] >= kept[1] > kept[2]


def test_integers_shared_weights_and_other_layers_are_left_alone() -> None:
    weights = relax.const(low(2, 16, 16).astype("float32"))

    def twice(emit: Any, x: relax.Var) -> relax.Var:
        return emit(op.matmul(emit(op.matmul(x, weights), "a"), weights), "b")

    def step(state: Squeezed, **params: Any) -> Any:
        return factorise_low_rank(state, small.config(error=0.3, **params), Data(), 0, small.quiet).report.left_alone

    assert step(Squeezed(module(twice, variable("x", (1, 16))))) == {"a": "several operators read it"}
    state = small.state()
    first = weight_layers(state.mod)[0]
    coded = CodedTensor(np.ones(first.weights.shape, np.int32), np.ones(1, np.float32))
    reasons = step(Squeezed(state.mod, {first.digest: coded}))
    assert reasons["stem"] == "it is made of integers, which two factors would not be"
    assert reasons["depthwise"].startswith("a conv2d weight of 8 groups")
    broken = module(dense(np.full((16, 16), np.nan)), variable("x", (1, 16)))
    assert step(Squeezed(broken)) == {"dense": "it has NaN or infinite values"}
    zero = module(dense(np.zeros((16, 16))), variable("x", (1, 16)))
    assert step(Squeezed(zero)) == {"dense": "it is zero"}


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    made = factorise_low_rank(state, small.config(layers=()), small.data(), 0, small.quiet)
    tvm.ir.assert_structural_equal(made.mod, state.mod)


def test_the_same_seed_gives_the_same_network() -> None:
    mods = [factorise_low_rank(small.state(), small.config(1.0), small.data(), 3, small.quiet).mod for _ in range(2)]
    tvm.ir.assert_structural_equal(*mods)
