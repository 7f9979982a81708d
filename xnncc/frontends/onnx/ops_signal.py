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
MAX_POINTS = 4096  # of one matrix: it has the square of it
SMALL_POINTS = 64  # of a real signal: one product, which costs less than two with a turn between them


def _angles(count: int, step: int, points: int) -> np.ndarray:
    """Return the angles 2 pi i j / points, reduced to one turn so that they are exact for large i and j."""
    return 2 * np.pi * (np.outer(np.arange(count), np.arange(step)) % points) / points


def _parts_first(n: Node, x: Expr) -> Expr:
    """Return [rows, samples, 1 or 2] as [1 or 2, rows, samples]."""
    rows, samples, parts = shape_of(x)
    return n.emit(n.reshaped(x, [1, rows, samples]) if parts == 1 else R.permute_dims(x, [2, 0, 1]))


def _part(n: Node, x: Expr, axis: int, begin: int, end: int) -> Expr:
    return n.emit(R.strided_slice(x, [axis], [begin], [end], [1]))


def _product(n: Node, x: Expr, bins: int, points: int, inverse: bool) -> Expr:
    """Return the transform of [1 or 2, rows, samples] over ``points`` as [2, rows, bins].

    A whole turn is split into its even and odd half first, x[j] + x[points - j] and x[j] - x[points - j]: the cosines
    of the odd half and the sines of the even one cancel, which saves half of the products, and exactly so.
    """
    samples = shape_of(x)[2]
    if max(samples, bins) > MAX_POINTS:
        raise Refused(f"a transform of {points} points is not supported", f"Supported: factors up to {MAX_POINTS}.")
    even, odd, first = x, x, 0
    if samples == points and points > 2:
        half, first = (points - 1) // 2, 1
        left = _part(n, x, 2, 1, half + 1)
        right = n.emit(R.flip(_part(n, x, 2, points - half, points), 2))
        alone = [_part(n, x, 2, half + 1, points - half)] if points % 2 == 0 else []
        even = n.emit(R.concat([_part(n, x, 2, 0, 1), n.emit(R.add(left, right)), *alone], 2))
        odd = n.emit(R.subtract(left, right))
    angles = _angles(samples, bins, points) * (1 if inverse else -1)
    return _combined(n, _sums(n, even, np.cos(angles)), _sums(n, odd, np.sin(angles[first:])))


def _sums(n: Node, x: Expr, waves: np.ndarray) -> Expr:
    """Return [parts, rows, bins] of [parts, rows, samples] times ``waves``, the first ``samples`` rows of it."""
    parts, rows, samples = shape_of(x)
    table = n.build.constant(waves[:samples].astype(dtype_of(x)))
    flat = n.emit(n.reshaped(x, [parts * rows, samples]))
    return n.emit(n.reshaped(R.matmul(flat, table), [parts, rows, waves.shape[1]]))


def _combined(n: Node, cosines: Expr, sines: Expr) -> Expr:
    """Return [2, rows, bins]: real = re cos - im sin, imaginary = re sin + im cos."""
    if shape_of(cosines)[0] == 1:
        return n.emit(R.concat([cosines, sines], 0))
    real = R.subtract(_part(n, cosines, 0, 0, 1), _part(n, sines, 0, 1, 2))
    imaginary = R.add(_part(n, cosines, 0, 1, 2), _part(n, sines, 0, 0, 1))
    return n.emit(R.concat([n.emit(real), n.emit(imaginary)], 0))


def _transformed(n: Node, x: Expr, points: int, onesided: bool, inverse: bool) -> Expr:
    """Return the transform of [rows, samples, 1 or 2] as [rows, bins, 2]; samples beyond ``points`` are left out."""
    samples = shape_of(x)[1]
    length = min(samples, points)
    bins = points // 2 + 1 if onesided else points
    if length < samples:
        x = _part(n, x, 1, 0, length)
    x = _parts_first(n, x)
    first = max(f for f in range(1, math.isqrt(points) + 1) if points % f == 0)
    is_small = shape_of(x)[0] == 1 and points <= SMALL_POINTS
    if first == 1 or length < points or is_small:
        y = _product(n, x, bins, points, inverse)
    else:
        y = _in_two_steps(n, x, first, inverse)
    y = y if shape_of(y)[2] == bins else _part(n, y, 2, 0, bins)
    y = n.emit(R.multiply(y, n.scalar(1 / points))) if inverse else y
    return n.emit(R.permute_dims(y, [1, 2, 0]))


def _in_two_steps(n: Node, x: Expr, first: int, inverse: bool) -> Expr:
    """Return the transform of [1 or 2, rows, points] by those of its factors.

    Cooley and Tukey 1965, "An algorithm for the machine calculation of complex Fourier series", eq. 6 to 8: with
    points = p m, sample q m + j and bin k + p r, a transform over q for each j, a turn by j k / points, and one over j
    for each k. That takes points (p + m) products instead of points squared, in tables of 2 (p^2 + m^2) numbers.
    """
    parts, rows, points = shape_of(x)
    second = points // first
    columns = R.permute_dims(n.reshaped(x, [parts, rows, first, second]), [0, 1, 3, 2])
    y = _product(n, n.emit(n.reshaped(columns, [parts, rows * second, first])), first, first, inverse)
    angles = _angles(second, first, points)
    turned = _turned(n, n.emit(n.reshaped(y, [2, rows, second, first])), angles if inverse else -angles)
    turned = n.emit(R.permute_dims(turned, [0, 1, 3, 2]))
    y = _product(n, n.emit(n.reshaped(turned, [2, rows * first, second])), second, second, inverse)
    y = R.permute_dims(n.reshaped(y, [2, rows, first, second]), [0, 1, 3, 2])
    return n.emit(n.reshaped(y, [2, rows, points]))


def _turned(n: Node, x: Expr, angles: np.ndarray) -> Expr:
    """Return complex [2, rows, j, k] times exp(i angles[j, k])."""
    cos, sin = (n.build.constant(part(angles).astype(dtype_of(x))) for part in (np.cos, np.sin))
    real, imaginary = _part(n, x, 0, 0, 1), _part(n, x, 0, 1, 2)
    turned_real = R.subtract(R.multiply(real, cos), R.multiply(imaginary, sin))
    turned_imaginary = R.add(R.multiply(real, sin), R.multiply(imaginary, cos))
    return n.emit(R.concat([n.emit(turned_real), n.emit(turned_imaginary)], 0))


@converter("DFT")
def dft(n: Node) -> Expr:
    """x: [.., samples, .., 1 or 2] with the complex parts last."""
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    rank, shape = n.rank(), n.shape()
    if n.opset >= 20:
        axis = n.axis(n.ints(2, "axis")[0] if n.has(2) else -2)
    else:
        axis = n.axis(int(n.attr("axis", 1)))
    halved = inverse and onesided
    points = n.ints(1, "dft_length")[0] if n.has(1) else 2 * (shape[axis] - 1) if halved else shape[axis]
    if points < 1 or axis == rank - 1:
        raise Refused(f"a transform of {points} points along axis {axis} of {rank} is none")
    order = [i for i in range(rank - 1) if i != axis] + [axis, rank - 1]
    back = [order.index(i) for i in range(rank)]
    rest = [shape[i] for i in order[:-2]]
    moved = R.permute_dims(n.expr(0), order) if order != list(range(rank)) else n.expr(0)
    flat = n.emit(n.reshaped(moved, [math.prod(rest), shape[axis], shape[-1]]))
    y = _real_inverse(n, flat, points) if halved else _transformed(n, flat, points, onesided, inverse)
    wide = n.emit(n.reshaped(y, [*rest, *shape_of(y)[1:]]))
    return R.permute_dims(wide, back) if back != list(range(rank)) else wide


def _real_inverse(n: Node, x: Expr, points: int) -> Expr:
    """Return the real signal [rows, points, 1] of half a spectrum [rows, bins, 2], whose other half is its mirror.

    Every bin but the first and, of an even number of points, the last stands for itself and its mirror.
    """
    rows, bins, parts = shape_of(x)
    used = min(bins, points // 2 + 1)
    if parts != 2 or points > MAX_POINTS:
        raise Refused(f"{points} points from a spectrum of {parts} parts are not supported", "Supported: 2 parts.")
    if used < bins:
        x = _part(n, x, 1, 0, used)
    weights = np.full((used, 1), 2 / points)
    weights[0] = 1 / points
    if points % 2 == 0 and used == points // 2 + 1:
        weights[-1] = 1 / points
    angles = _angles(used, points, points)
    matrix = np.stack([np.cos(angles) * weights, -np.sin(angles) * weights], axis=1).reshape(used * 2, points)
    flat = n.emit(n.reshaped(x, [rows, used * 2]))
    return n.emit(n.reshaped(R.matmul(flat, n.build.constant(matrix.astype(dtype_of(x)))), [rows, points, 1]))


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
