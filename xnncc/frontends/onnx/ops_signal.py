"""Fourier transforms as products with constant matrices, and other linear maps over windows of a signal."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import dtype_of, shape_of
from .node import Node, Refused
from .registry import converter
from .shapes import numpy_dtype

R = relax.op
MAX_POINTS = 4096  # of a transform: its matrix has the square of it


def _matrices(points: int, bins: int, inverse: bool, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin [length, bins] of the transform of ``length`` samples as if padded to ``points``."""
    angle = 2 * np.pi * np.outer(np.arange(length), np.arange(bins)) / points
    sign, scale = (1.0, 1 / points) if inverse else (-1.0, 1.0)
    return np.cos(angle) * scale, sign * np.sin(angle) * scale


def _transformed(n: Node, x: Expr, points: int, onesided: bool, inverse: bool) -> Expr:
    """Return the transform of [rows, samples, 1 or 2] as [rows, bins, 2]; samples beyond ``points`` are left out."""
    rows, samples, parts = shape_of(x)
    length = min(samples, points)
    bins = points // 2 + 1 if onesided else points
    if points > MAX_POINTS:
        raise Refused(f"a transform of {points} points is not supported", f"Supported: up to {MAX_POINTS}.")
    if length < samples:
        x = n.emit(R.strided_slice(x, [1], [0], [length], [1]))
    cos, sin = (m.astype(dtype_of(x)) for m in _matrices(points, bins, inverse, length))
    # One product over [samples, parts] with interleaved columns: real = re cos - im sin, imaginary = re sin + im cos.
    real_in = np.stack([cos, sin], axis=-1).reshape(length, bins * 2)
    imaginary_in = np.stack([-sin, cos], axis=-1).reshape(length, bins * 2)
    matrix = np.stack([real_in, imaginary_in][:parts], axis=1).reshape(length * parts, bins * 2)
    flat = n.emit(n.reshaped(x, [rows, length * parts]))
    return n.emit(n.reshaped(R.matmul(flat, n.build.constant(matrix)), [rows, bins, 2]))


@converter("DFT")
def dft(n: Node) -> Expr:
    """x: [.., samples, .., 1 or 2] with the complex parts last."""
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    rank, shape = n.rank(), n.shape()
    if n.opset >= 20:
        axis = n.axis(n.ints(2, "axis")[0] if n.has(2) else -2)
    else:
        axis = n.axis(int(n.attr("axis", 1)))
    points = n.ints(1, "dft_length")[0] if n.has(1) else shape[axis]
    if inverse and onesided:
        return _real_inverse(n, axis, points)
    order = [i for i in range(rank - 1) if i != axis] + [axis, rank - 1]
    back = [order.index(i) for i in range(rank)]
    rest = [shape[i] for i in order[:-2]]
    moved = R.permute_dims(n.expr(0), order) if order != list(range(rank)) else n.expr(0)
    flat = n.emit(n.reshaped(moved, [math.prod(rest), shape[axis], shape[-1]]))
    y = _transformed(n, flat, points, onesided, inverse)
    wide = n.emit(n.reshaped(y, [*rest, shape_of(y)[1], 2]))
    return R.permute_dims(wide, back) if back != list(range(rank)) else wide


def _real_inverse(n: Node, axis: int, points: int) -> Expr:
    """Half a spectrum back to a real signal: the other half is its mirror."""
    raise Refused("inverse=1 together with onesided=1 is not supported", "Export the full spectrum.")


@converter("STFT")
def stft(n: Node) -> Expr:
    """signal: [batch, samples, 1 or 2] -> [batch, frames, bins, 2]."""
    onesided = bool(n.attr("onesided", 1))
    step = n.ints(1, "frame_step")[0]
    shape = n.shape()
    length = n.ints(3, "frame_length")[0] if n.has(3) else n.shape(2)[0] if n.has(2) else shape[1]
    frames = (shape[1] - length) // step + 1
    if step < 1 or frames < 1:
        raise Refused(f"frames of {length} with step {step} do not fit {shape[1]} samples")
    parts = shape[2] if len(shape) > 2 else 1
    x = n.emit(n.reshaped(n.expr(0), [shape[0], shape[1], parts]))
    rows = (np.arange(frames)[:, None] * step + np.arange(length)).astype("int64")
    cut = n.emit(R.take(x, n.build.constant(rows), 1, mode="clip"))  # [batch, frames, length, parts]
    if n.has(2):
        window = n.emit(n.reshaped(n.expr(2), [1, 1, length, 1]))
        cut = n.emit(R.multiply(cut, window))
    flat = n.emit(n.reshaped(cut, [shape[0] * frames, length, parts]))
    y = _transformed(n, flat, length, onesided, inverse=False)
    return n.reshaped(y, [shape[0], frames, shape_of(y)[1], 2])


@converter("Col2Im")
def col2im(n: Node) -> Expr:
    """[N, C * kernel, windows] -> [N, C, image]: every window adds its values at its place, as a gather of windows."""
    image, block = n.ints(1, "image_shape"), n.ints(2, "block_shape")
    rank = len(image)
    strides, dilations = list(n.attr("strides") or [1] * rank), list(n.attr("dilations") or [1] * rank)
    pads = list(n.attr("pads") or [0] * (2 * rank))
    batch, columns, windows = n.shape()
    taps = math.prod(block)
    counts = [(image[i] + pads[i] + pads[i + rank] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
              for i in range(rank)]  # fmt: skip
    if math.prod(counts) != windows or columns % taps:
        raise Refused(f"{windows} windows of {columns} values do not fit an image of {image}")
    table, inside = _readers(image, block, counts, strides, dilations, pads)
    channels = columns // taps
    flat = n.emit(n.reshaped(n.expr(0), [batch, channels, taps * windows]))
    picked = n.emit(R.take(flat, n.build.constant(table), 2, mode="clip"))  # [N, C, pixels, taps]
    kept = n.emit(R.where(n.build.constant(inside), picked, n.scalar(0)))
    return n.reshaped(R.sum(kept, axis=[3]), [batch, channels, *image])


def _readers(
    image: list[int], block: list[int], counts: list[int], strides: list[int], dilations: list[int], pads: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return [pixels, taps]: the place in [taps * windows] that each tap of a pixel reads, and whether there is one."""
    rank = len(image)
    pixels = np.stack(np.meshgrid(*map(np.arange, image), indexing="ij"), -1).reshape(-1, 1, rank)
    taps = np.stack(np.meshgrid(*map(np.arange, block), indexing="ij"), -1).reshape(1, -1, rank)
    start = pixels + np.array(pads[:rank]) - taps * np.array(dilations)
    window = start // np.array(strides)
    inside = (start % np.array(strides) == 0) & (window >= 0) & (window < np.array(counts))
    flat = np.zeros(window.shape[:2], "int64")
    for axis in range(rank):
        flat = flat * counts[axis] + window[..., axis]
    tap = np.arange(taps.shape[1])[None, :]
    kept = inside.all(-1)
    return np.where(kept, tap * math.prod(counts) + flat, 0).astype("int64"), kept


@converter("BitCast")
def bit_cast(n: Node) -> Expr:
    """The same bits as another dtype of the same size."""
    from tvm import te, tirx

    dtype = numpy_dtype(n.attr("to", 0))
    if not dtype or np.dtype(dtype).itemsize != np.dtype(n.dtype()).itemsize:
        raise Refused(f"{n.dtype()} cannot become {dtype or 'its target dtype'} bit by bit")
    if "bool" in (dtype, n.dtype()):
        return R.astype(n.expr(0), dtype)

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *at: tirx.reinterpret(dtype, x(*at)), "bit_cast")

    return n.build.call_te(compute, n.expr(0), name="bit_cast")
