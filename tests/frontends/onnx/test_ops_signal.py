"""Fourier transforms against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, one_node, random

from xnncc.frontends.evaluate import evaluate

# A prime, products of two and of many factors, a square, one of a real signal above SMALL_POINTS.
POINTS = [1, 2, 7, 10, 49, 60, 128, 210]
TOLERANCE = 1e-6  # of the largest value: float32 sums of at most 210 products


@pytest.fixture
def transformed(load):
    """``transformed(x, **attributes)`` returns the DFT of axis 1, computed in float32 by numpy's operators."""

    def run(x: np.ndarray, length: int | None = None, **attributes: int) -> np.ndarray:
        points = None if length is None else const(np.array(length))
        made, feeds = one_node("DFT", x, points, const(np.array(1)), opset=20, **attributes)
        return evaluate(load(made, feeds, check=False).mod, [feeds["x0"]])[0][0]

    return run


def close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    parts = np.stack([theirs.real, theirs.imag], -1) if np.iscomplexobj(theirs) else theirs[..., None]
    return ours.shape == parts.shape and float(np.abs(ours - parts).max()) <= TOLERANCE * np.abs(parts).max()


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("inverse", [0, 1])
def test_complex(transformed, points, inverse):
    x = random(3, points, 2)
    signal = x[..., 0].astype("float64") + 1j * x[..., 1]
    assert close(transformed(x, inverse=inverse), (np.fft.ifft if inverse else np.fft.fft)(signal, axis=1))


@pytest.mark.parametrize("points", POINTS)
def test_real(transformed, points):
    x = random(3, points, 1)
    signal = x[..., 0].astype("float64")
    assert close(transformed(x), np.fft.fft(signal, axis=1))
    assert close(transformed(x, onesided=1), np.fft.rfft(signal, axis=1))


@pytest.mark.parametrize("length", [5, 12, 40])
def test_cut_and_padded(transformed, length):
    x = random(2, 12, 2)
    assert close(transformed(x, length), np.fft.fft(x[..., 0].astype("float64") + 1j * x[..., 1], length, axis=1))


@pytest.mark.parametrize("length", [None, 9, 6, 20])
def test_half_a_spectrum_back(transformed, length):
    x = random(2, 6, 2)
    expected = np.fft.irfft(x[..., 0].astype("float64") + 1j * x[..., 1], length, axis=1)
    assert close(transformed(x, length, inverse=1, onesided=1), expected)


def test_two_steps_have_small_tables(load):
    made, feeds = one_node("DFT", random(1, 1024, 2), None, const(np.array(1)), opset=20)
    mod = load(made, feeds).mod  # onnxruntime agrees
    values = [arg for b in mod["main"].body.blocks[0].bindings for arg in getattr(b.value, "args", ())]
    sizes = [arg.value.numpy().size for arg in values if hasattr(arg, "value") and hasattr(arg.value, "numpy")]
    assert 0 < sum(sizes) < 8 * 1024  # one table would have 2 * 1024 * 1024


def test_large_primes_are_refused(refuses):
    words = refuses("DFT", random(1, 4099, 1), None, const(np.array(1)), opset=20)
    assert "a transform of 4099 points is not supported. Supported: factors up to 4096" in words
