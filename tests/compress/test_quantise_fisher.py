"""quantise_fisher on the small network: size, loss, what it leaves alone, what breaks elsewhere."""

from __future__ import annotations

import calibration_network as small
import numpy as np
import pytest

from xnncc.compress.layers import weight_layers, with_constants
from xnncc.compress.quantise_fisher import quantise_fisher, steps_of
from xnncc.compress.result import Data, Squeezed
from xnncc.errors import CompressError
from xnncc.ir.coded import digest


def _run(config: object = None, state: Squeezed | None = None, seed: int = 0) -> Squeezed:
    return quantise_fisher(state or small.state(), config or small.config(), small.data(), seed, small.quiet)


def test_seven_times_smaller_at_a_hundredth_of_a_nat() -> None:
    squeezed = _run(small.config(loss=0.03))
    # 1,032 weights of 4 bytes; 2026-11: 7.3 times at 0.0085 nats
    assert 4 * sum(line.weights for line in squeezed.report.layers) >= 7 * small.total_bytes(squeezed)
    assert small.divergence(squeezed.mod) <= 0.015


def test_the_measured_loss_is_about_the_predicted_one() -> None:
    # 2026-11: 0.0023 for 0.01; compensation takes some away, a few samples and higher orders the rest
    assert 0.001 <= small.divergence(_run(small.config(loss=0.01)).mod) <= 0.02


def test_every_constant_is_what_its_integers_say() -> None:
    squeezed = _run()
    for layer in weight_layers(squeezed.mod):
        assert np.array_equal(layer.weights, squeezed.coded[layer.digest].values())


def test_more_strength_is_smaller_and_worse() -> None:
    sizes, losses = zip(
        *((small.total_bytes(s), small.divergence(s.mod)) for s in (_run(small.config(v)) for v in (0, 0.5, 1))),
        strict=True,
    )
    assert sizes[0] > sizes[1] > sizes[2]
    assert losses[0] < losses[2]


def test_compensation_pays_on_samples_it_has_not_seen() -> None:
    plain = _run(small.config(loss=0.3, compensate="never", levels=8))
    compensated = _run(small.config(loss=0.3, compensate="measured", levels=8))
    assert small.divergence(compensated.mod) < small.divergence(plain.mod)


def test_the_same_seed_gives_the_same_integers() -> None:
    first, again = _run(seed=3), _run(seed=3)
    assert list(first.coded) == list(again.coded)


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    squeezed = quantise_fisher(state, small.config(layers=()), small.data(), 0, small.quiet)
    assert squeezed.mod is state.mod and not squeezed.coded
    assert set(squeezed.report.left_alone.values()) == {"not in the recipe's layers"}


def test_leaves_a_weight_with_nan_alone_and_says_so() -> None:
    state = small.state()
    point = next(layer for layer in weight_layers(state.mod) if layer.name == "point")
    broken = point.weights.copy()
    broken[3, 2] = np.nan
    squeezed = _run(small.config(), Squeezed(with_constants(state.mod, {point.digest: broken})))
    assert squeezed.report.left_alone == {"point": "it has NaN or infinite values"}


def test_a_row_and_a_layer_of_zeros_stay_zeros() -> None:
    state = small.state()
    layers = {layer.name: layer for layer in weight_layers(state.mod)}
    rows = layers["stem"].weights.copy()
    rows[2] = 0
    new = {layers["stem"].digest: rows, layers["point"].digest: np.zeros_like(layers["point"].weights)}
    squeezed = _run(small.config(), Squeezed(with_constants(state.mod, new)))
    after = {layer.name: layer.weights for layer in weight_layers(squeezed.mod)}
    assert not after["stem"][2].any() and not after["point"].any()
    assert all(np.isfinite(w).all() for w in after.values())


def test_tiny_weights_keep_their_relative_precision() -> None:
    state = small.state()
    head = next(layer for layer in weight_layers(state.mod) if layer.name == "head")
    squeezed = _run(small.config(0), Squeezed(with_constants(state.mod, {head.digest: head.weights * 1e-18})))
    after = next(layer for layer in weight_layers(squeezed.mod) if layer.name == "head").weights * np.float32(1e18)
    assert np.abs(after - head.weights).max() < 0.5 * np.sqrt(np.mean(np.square(head.weights)))


def test_a_pruned_weight_keeps_its_zeros() -> None:
    state = small.state()
    head = next(layer for layer in weight_layers(state.mod) if layer.name == "head")
    pruned = np.where(np.abs(head.weights) < 2, 0, head.weights)
    squeezed = _run(small.config(compensate="always"), Squeezed(with_constants(state.mod, {head.digest: pruned})))
    after = next(layer for layer in weight_layers(squeezed.mod) if layer.name == "head").weights
    assert not after[pruned == 0].any()


def test_steps_fall_with_the_root_of_the_fisher_information() -> None:
    layer = weight_layers(small.network())[0]
    few, many = (steps_of(layer, np.full(layer.weights.shape, s, "f"), 1e-3, 1.0, 1 << 14) for s in (1.0, 4.0))
    assert float(few[0]) == pytest.approx(2 * float(many[0])) == pytest.approx(1e-3)


def test_without_samples_it_says_what_to_give() -> None:
    with pytest.raises(CompressError, match="Give some with --calib"):
        quantise_fisher(small.state(), small.config(synthetic=False), Data(), 0, small.quiet)


def test_a_bias_takes_up_the_mean_of_the_error() -> None:
    before = small.state()
    squeezed = _run(small.config(loss=1.0))
    biases = [c.value.numpy() for b in before.mod["main"].body.blocks[0].bindings if b.value.op.name == "relax.add"
              for c in b.value.args[1:]]  # fmt: skip
    after = [c.value.numpy() for b in squeezed.mod["main"].body.blocks[0].bindings if b.value.op.name == "relax.add"
             for c in b.value.args[1:]]  # fmt: skip
    assert [digest(a) != digest(b) for a, b in zip(biases, after, strict=True)] == [True] * 4
