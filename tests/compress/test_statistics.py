"""What calibration learns: moments of inputs, Fisher information, and the heads they come from."""

from __future__ import annotations

from pathlib import Path

import calibration_network as small
import numpy as np
import pytest

from xnncc.compress.layers import weight_layers
from xnncc.compress.numpy_network import NumpyNetwork
from xnncc.compress.sample_loss import Head, find_heads, sampled_gradient
from xnncc.compress.statistics import Statistics, cached, collect, statistics_key
from xnncc.compress.synthetic_inputs import synthetic_inputs
from xnncc.compress.weight_matrix import columns, from_rows, row_steps, to_rows


def _collected(guided: bool = False, count: int = 8) -> Statistics:
    mod = small.network()
    return collect(mod, weight_layers(mod), small.samples(count), 0, small.quiet, guided)


def test_every_layer_is_its_matrix_times_its_columns() -> None:
    mod = small.network()
    layers = {layer.digest: layer for layer in weight_layers(mod)}
    network, seen = NumpyNetwork(mod), []
    results = [step.result for step in network.steps]

    def watch(step: object, operands: list) -> None:
        for layer in layers.values():
            if len(operands) > 1 and operands[1] is network.constants[layer.digest]:
                seen.append((layer, step.result, np.matmul(to_rows(layer, layer.weights), columns(layer, operands))))

    values = network.trace(next(network.feeds(small.samples(1))), watch, keep=results).values
    assert [layer.name for layer, _, _ in seen] == ["stem", "depthwise", "point", "up", "head"]
    for layer, result, product in seen:
        expected = values[result]
        if layer.kind == "conv2d_transpose":  # rows are channels and taps: gather the taps from the image
            _, channels, height, width = expected.shape
            expected = expected.reshape(channels, height // 2, 2, width // 2, 2).transpose(0, 2, 4, 1, 3)
        elif layer.kind == "matmul":
            expected = expected.T
        np.testing.assert_allclose(product.ravel(), expected.ravel(), rtol=1e-4, atol=1e-5)


def test_rows_and_back_is_the_weight() -> None:
    for layer in weight_layers(small.network()):
        np.testing.assert_array_equal(from_rows(layer, to_rows(layer, layer.weights)), layer.weights)
        steps = np.arange(1, layer.weights.shape[layer.axis] + 1, dtype="f")
        shape = [-1 if i == layer.axis else 1 for i in range(layer.weights.ndim)]
        scaled = to_rows(layer, layer.weights * steps.reshape(shape))
        np.testing.assert_allclose(scaled, to_rows(layer, layer.weights) * row_steps(layer, steps)[:, :, None])


def test_moments_of_the_first_layer_are_those_of_its_patches() -> None:
    mod = small.network()
    stem = weight_layers(mod)[0]
    second, first = _collected().inputs(stem.digest)
    padded = np.pad(small.samples(8).inputs["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = np.stack([padded[:, :, i : i + 12, j : j + 12] for i in range(3) for j in range(3)], axis=2)
    flat = patches.reshape(8, 27, 144).transpose(1, 0, 2).reshape(27, -1)
    np.testing.assert_allclose(second[0], flat @ flat.T / flat.shape[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(first[0], flat.mean(axis=1), rtol=1e-4, atol=1e-5)


def test_fisher_information_is_the_curvature_of_the_divergence() -> None:
    """KL(p || p after w_c + d) = d^2 / 2 * F_cc to second order; F from 400 samples with one label each."""
    mod = small.network()
    head = next(layer for layer in weight_layers(mod) if layer.name == "head")
    samples = small.samples(400, seed=9)
    fisher = collect(mod, [], samples, 0, small.quiet).fisher[head.digest].mean()
    network = NumpyNetwork(mod, np.float64)
    (out,) = network.heads
    feeds = list(network.feeds(samples[:100]))
    before = [network.run(f)[out] for f in feeds]
    rng, curvature = np.random.default_rng(0), []
    for _ in range(12):
        noise = 1e-3 * rng.standard_normal(head.weights.shape)
        network.constants[head.digest] = head.weights + noise
        moved = [float((p * np.log(p / network.run(f)[out])).sum()) for p, f in zip(before, feeds, strict=True)]
        curvature.append(2 * np.mean(moved) / np.square(noise).sum())
    assert fisher == pytest.approx(np.mean(curvature), rel=0.3)


def test_halves_together_are_the_whole() -> None:
    found = _collected(guided=True)
    for key, (a, b) in found.moments.items():
        second, _ = found.inputs(key)
        np.testing.assert_allclose(second * (a.weight + b.weight), a.second + b.second, rtol=1e-4, atol=1e-12)


def test_statistics_are_read_back_as_they_were(tmp_path: Path) -> None:
    first = cached(str(tmp_path), "k", _collected)
    again = cached(str(tmp_path), "k", lambda: pytest.fail("it was stored"))
    assert (again.decisions, again.samples) == (first.decisions, first.samples) == (1, 8)
    for key, value in first.fisher.items():
        np.testing.assert_array_equal(again.fisher[key], value)
    for key in first.moments:
        np.testing.assert_array_equal(again.inputs(key)[0], first.inputs(key)[0])


def test_keys_differ_with_samples_and_seed() -> None:
    layers = weight_layers(small.network())
    keys = {statistics_key(layers, small.samples(4, seed), rest) for seed in (1, 2) for rest in (0, 1)}
    assert len(keys) == 4


def test_a_softmax_is_seen_through_and_gradients_average_to_zero() -> None:
    network = NumpyNetwork(small.network())
    (head,) = find_heads(network, {})
    assert head.kind == "softmax" and head.var not in network.heads
    rng, logits = np.random.default_rng(0), np.array([[2.0, 0.0, -1.0]])
    mean = np.mean([sampled_gradient(head, logits, rng) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(mean, 0, atol=0.03)  # E[p - onehot] = 0


@pytest.mark.parametrize("kind", ["sigmoid", "gaussian"])
def test_gradients_of_other_heads_average_to_zero(kind: str) -> None:
    rng, value = np.random.default_rng(0), np.array([[2.0, -700.0, 700.0]])
    head = Head(NumpyNetwork(small.network()).heads[0], kind)
    mean = np.mean([sampled_gradient(head, value, rng) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(mean, 0, atol=0.03)


def test_synthetic_images_are_smooth_and_within_their_range() -> None:
    samples = synthetic_inputs(small.network(), 16, -1, 1, 0)
    assert samples is not None
    x = samples.inputs["x"]
    assert x.shape == (16, 3, 12, 12) and x.dtype == np.float32
    assert x.min() >= -1 and x.max() <= 1
    neighbours = np.mean(np.square(np.diff(x, axis=3)))
    assert neighbours < x.var()  # of white noise: twice the variance
    again = synthetic_inputs(small.network(), 16, -1, 1, 0)
    assert again is not None and np.array_equal(again.inputs["x"], x)
