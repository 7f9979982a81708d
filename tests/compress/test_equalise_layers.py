"""equalise_layers: the same numbers, evener ranges."""

from __future__ import annotations

import calibration_network as small
import numpy as np

from xnncc.compress.equalise_layers import equalise_layers, find_pairs
from xnncc.compress.layers import weight_layers, with_constants
from xnncc.compress.quantise_admm import by_output
from xnncc.compress.result import Data, Squeezed


def _uneven() -> Squeezed:
    """A network like the small one whose stem has channels that differ a thousandfold, taken back behind it."""
    state = small.state()
    layers = {layer.name: layer for layer in weight_layers(state.mod)}
    stem, depthwise = layers["stem"], layers["depthwise"]
    scale = np.geomspace(0.03, 30, 8).astype("f")[:, None, None, None]
    new = {stem.digest: stem.weights * scale, depthwise.digest: depthwise.weights / scale}
    return Squeezed(with_constants(state.mod, new))


def test_finds_pairs_through_relu_and_bias() -> None:
    pairs = [(pair.first.name, pair.second.name) for pair in find_pairs(small.network())]
    assert pairs == [("stem", "depthwise"), ("depthwise", "point")]


def test_keeps_the_numbers() -> None:
    state = _uneven()
    squeezed = equalise_layers(state, small.config(), Data(), 0, small.quiet)
    np.testing.assert_allclose(small.answers(squeezed.mod), small.answers(state.mod), rtol=1e-4, atol=1e-6)


def test_channels_get_the_same_range_in_both_layers() -> None:
    squeezed = equalise_layers(_uneven(), small.config(), Data(), 0, small.quiet)
    layers = {layer.name: layer for layer in weight_layers(squeezed.mod)}
    rows, columns = (np.abs(by_output(layers[n], layers[n].weights)).max(axis=1) for n in ("stem", "depthwise"))
    np.testing.assert_allclose(rows, columns, rtol=0.35)  # the depthwise layer's other side pulls as well
    assert rows.max() / rows.min() < 30  # before: 1000 and more


def test_twice_is_once() -> None:
    once = equalise_layers(_uneven(), small.config(rounds=60), Data(), 0, small.quiet)
    twice = equalise_layers(once, small.config(rounds=1), Data(), 0, small.quiet)
    for a, b in zip(weight_layers(once.mod), weight_layers(twice.mod), strict=True):
        np.testing.assert_allclose(a.weights, b.weights, rtol=1e-3, atol=1e-7)


def test_an_empty_choice_of_layers_changes_nothing() -> None:
    state = small.state()
    assert equalise_layers(state, small.config(layers=()), Data(), 0, small.quiet).mod is state.mod
