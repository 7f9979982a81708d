"""Long windows into few channels, in the network that needs them: a cascade of audio filters, magnitudes, a logarithm.

Quiet values under the logarithm are differences of loud ones, and the smallest of them shifts every output: the front
end of a transcription network in small.
"""

from __future__ import annotations

import numpy as np
import pytest
from network_running import Network, compile_and_run, module, variable
from tvm import relax
from tvm.relax import op

from xnncc.kernels.conv2d import reference_conv2d
from xnncc.kernels.spatial import Window
from xnncc.transform import layout_linear

TAPS, SAMPLES, STAGES, BANDS = 256, 8192, 3, 3
EPSILON = 1e-16


def _low_pass() -> np.ndarray:
    """Return a half-band filter [1, 1, 1, TAPS], a sinc under a Blackman window."""
    t = np.arange(TAPS) - (TAPS - 1) / 2
    return (np.sinc(t / 2) / 2 * np.blackman(TAPS)).astype("float32").reshape(1, 1, 1, TAPS)


def _bands() -> np.ndarray:
    """Return band filters [BANDS, 1, 1, TAPS] away from the tone."""
    t = np.arange(TAPS)
    centres = [0.11, 0.23, 0.37]  # cycles a sample
    rows = [np.cos(2 * np.pi * f * t) * np.blackman(TAPS) / TAPS for f in centres]
    return np.stack(rows).astype("float32").reshape(BANDS, 1, 1, TAPS)


def _signal() -> np.ndarray:
    """Return a loud low tone and noise 60 dB below it, [1, 1, 1, SAMPLES]."""
    tone = 0.9 * np.sin(2 * np.pi * 0.004 * np.arange(SAMPLES))
    noise = 1e-3 * np.random.default_rng(0).standard_normal(SAMPLES)
    return (tone + noise).astype("float32").reshape(1, 1, 1, SAMPLES)


def _run() -> Network:
    def build(emit, x):
        y = x
        for stage in range(STAGES):
            y = emit(op.nn.conv2d(y, relax.const(_low_pass()), strides=[1, 2]), f"low{stage}")
        y = emit(op.nn.conv2d(y, relax.const(_bands()), strides=[1, 8]), "bands")
        power = emit(op.multiply(y, y), "power")
        return emit(op.log(emit(op.add(power, relax.const(np.float32(EPSILON))), "raised")), "level")

    x = _signal()
    return compile_and_run(module(build, variable("x", x.shape)), x)


def _expected() -> np.ndarray:
    """Return the levels in float64 throughout."""
    y = _signal().astype("f8")
    for w, stride in [(_low_pass(), 2)] * STAGES + [(_bands(), 8)]:
        width = y.shape[3]
        win = Window((1, width), (1, TAPS), (1, stride), (0, 0, 0, 0), (1, (width - TAPS) // stride + 1))
        y = reference_conv2d(y, w, np.zeros(len(w)), win)
    return np.log(y * y + EPSILON)


def _error(network: Network) -> float:
    return float(np.abs(network.outputs[0] - _expected()).max())


# Largest difference of a level, in nepers of power; measured 0.015, with one accumulator 0.71. What is left comes of
# the stages' own float32 outputs: 3e-8 of 0.9 beside band values down to 1e-8.
BOUND = 0.03


def test_levels_are_right_behind_a_cascade_of_filters() -> None:
    network = _run()
    assert sum("conv2d_filter" in k for k in network.kernels) == STAGES + 1
    assert _error(network) < BOUND


def test_packed_sums_in_one_accumulator_miss_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_linear, "LEAST_TAPS", TAPS + 1)
    network = _run()
    assert not any("filter" in k for k in network.kernels)
    assert _error(network) > 10 * BOUND


@pytest.mark.parametrize(
    ("c", "o", "taps", "attrs"),
    [
        (1, 5, 64, {}),  # lanes of output channels are mostly full
        (1, 1, 63, {}),
        (5, 1, 64, {}),  # so many input channels are packed
        (1, 1, 64, {"dilation": [1, 2]}),
    ],
)
def test_other_windows_stay_with_the_packed_kernels(c: int, o: int, taps: int, attrs: dict) -> None:
    x, w = np.ones((1, c, 2, 200), "float32"), np.full((o, c, 1, taps), 0.5, "float32")
    network = compile_and_run(
        module(lambda emit, x: emit(op.nn.conv2d(x, relax.const(w), **attrs), "y"), variable("x", x.shape)), x
    )
    assert not any("filter" in k for k in network.kernels)
    assert (network.outputs[0] == 0.5 * c * taps).all()  # whole numbers and halves: no rounding


def test_scale_and_bias_fold_into_the_filter() -> None:
    x, w = _signal(), _low_pass()
    k, b = np.float32(-3.0), np.float32(0.25)

    def build(emit, x):
        y = emit(op.nn.conv2d(x, relax.const(w), padding=[0, 128, 0, 127]), "y")
        scaled = emit(op.multiply(y, relax.const(k)), "scaled")
        return emit(op.nn.relu(emit(op.add(scaled, relax.const(b)), "shifted")), "r")

    network = compile_and_run(module(build, variable("x", x.shape)), x)
    win = Window((1, SAMPLES), (1, TAPS), (1, 1), (0, 128, 0, 127), (1, SAMPLES))
    expected = np.maximum(reference_conv2d(x, w * k, np.array([b]), win), 0)
    assert network.kernels == ["fused_conv2d_filter_relu"]
    assert np.abs(network.outputs[0] - expected).max() < 1.3e-7  # half a unit in the last place below 4
