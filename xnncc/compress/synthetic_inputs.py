"""Inputs made of nothing, for methods that want samples when the user gives none.

Images with the statistics that nearly every photograph has: a power spectrum that falls with the square of the
frequency (Field 1987, "Relations between the statistics of natural images and the response properties of cortical
cells"), and rectangles of one brightness or of stripes, whose edges and right angles such noise lacks. Other float
inputs are smooth noise along their last axis. Networks were trained on better data: what is learnt on these inputs is
an estimate, not a measurement.
"""

from __future__ import annotations

import numpy as np
import tvm

from .result import Samples

Array = np.ndarray
_RECTANGLES = 6


def synthetic_inputs(mod: tvm.IRModule, count: int, low: float, high: float, seed: int) -> Samples | None:
    """Return ``count`` samples with values in ``low``..``high``; None when an input is not of floats."""
    rng, inputs = np.random.default_rng(seed), {}
    for param in mod["main"].params:
        shape = tuple(int(dim) for dim in param.ty.shape.values)
        if str(param.ty.dtype) != "float32":
            return None
        own = shape[1:] if shape and shape[0] == 1 else shape
        make = _image if len(shape) == 4 else _noise
        inputs[param.name] = np.stack([low + (high - low) * make(rng, own) for _ in range(count)]).astype(np.float32)
    return Samples(inputs) if inputs else None


def _noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return noise 0..1 with a spectrum that falls with the frequency along the last axis."""
    spectrum = np.fft.rfft(rng.standard_normal(shape))
    spectrum /= 1 + np.arange(spectrum.shape[-1])
    return _scaled(np.fft.irfft(spectrum, shape[-1]) if shape[-1] > 1 else rng.uniform(size=shape))


def _image(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return an image 0..1 of ``shape`` C, H, W or H, W, C: channels that are alike, as colours are."""
    last = shape[-1] <= 4 < shape[0]
    channels, height, width = (shape[2], *shape[:2]) if last else shape
    grey = _pink(rng, height, width)
    image = np.stack([grey + 0.3 * _pink(rng, height, width) for _ in range(channels)])
    image = _scaled(image)
    for _ in range(rng.integers(_RECTANGLES + 1)):
        tall, wide = (int(rng.integers(max(size // 16, 1), max(size // 2, 2))) for size in (height, width))
        top, left = rng.integers(height - tall + 1), rng.integers(width - wide + 1)
        image[:, top : top + tall, left : left + wide] = _filling(rng, tall, wide)
    return np.moveaxis(image, 0, 2) if last else image


def _filling(rng: np.random.Generator, tall: int, wide: int) -> Array:
    """Return [1, tall, wide]: one brightness, or cells of two like print seen closely."""
    if rng.random() < 0.5:
        return np.full((1, tall, wide), rng.uniform())
    cell = int(rng.integers(2, 9))
    cells = rng.random((-(-tall // cell), -(-wide // cell))) < 0.5
    dark, light = np.sort(rng.uniform(size=2))
    return np.where(cells, light, dark).repeat(cell, 0).repeat(cell, 1)[None, :tall, :wide]


def _pink(rng: np.random.Generator, height: int, width: int) -> Array:
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    spectrum = np.fft.rfft2(rng.standard_normal((height, width))) / np.maximum(frequency, 1 / max(height, width))
    noise = np.fft.irfft2(spectrum, (height, width))
    return noise / (float(noise.std()) or 1.0)


def _scaled(image: Array) -> Array:
    low, high = float(image.min()), float(image.max())
    return (image - low) / ((high - low) or 1.0)
