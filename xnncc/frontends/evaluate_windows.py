"""Convolutions and pools in numpy, any number of spatial dimensions. x: [N, C, spatial...]; sums in float32."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from tvm.ir import Call

Array = np.ndarray


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _padded(x: Array, padding: tuple[int, ...], value: float) -> Array:
    if not any(padding):
        return x
    rank = x.ndim - 2
    widths = [(0, 0), (0, 0), *zip(padding[:rank], padding[rank:], strict=True)]
    return np.pad(x, widths, constant_values=value)


def _windows(
    x: Array, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield each position within the kernel with the [N, C, out...] view of x that all windows see there."""
    sizes = zip(x.shape[2:], kernel, strides, dilations, strict=True)
    outs = [(size - (k - 1) * d - 1) // s + 1 for size, k, s, d in sizes]
    for position in itertools.product(*map(range, kernel)):
        cut = [slice(None), slice(None)]
        for p, out, s, d in zip(position, outs, strides, dilations, strict=True):
            cut.append(slice(p * d, p * d + (out - 1) * s + 1, s))
        yield position, x[tuple(cut)]


def _is_plain(call: Call) -> bool:
    layout, kernel = call.attrs.data_layout, call.attrs.kernel_layout
    return call.attrs.out_layout == layout and (layout, kernel) in (
        ("NCHW", "OIHW"), ("NCDHW", "OIDHW"), ("NCHW", "IOHW"),
    )  # fmt: skip


def conv(call: Call, x: Array, w: Array) -> Array:
    """w: [O, C/G, kernel...]."""
    if not _is_plain(call) or x.dtype.kind != "f":
        return NotImplemented
    a, x, w = call.attrs, x.astype("float32"), w.astype("float32")
    x = _padded(x, _ints(a.padding), 0)
    groups, kernel = int(a.groups), w.shape[2:]
    views = _windows(x, kernel, _ints(a.strides), _ints(a.dilation))
    if groups == x.shape[1] > 1:
        return _depthwise(views, w, groups)
    columns = np.stack([view for _, view in views], axis=2)  # [N, C, K, out...]
    batch, channels, taps, *outs = columns.shape
    columns = columns.reshape(batch, groups, channels // groups * taps, -1)
    rows = w.reshape(groups, w.shape[0] // groups, -1)
    return np.matmul(rows, columns).reshape(batch, w.shape[0], *outs)


def _depthwise(views: Iterator[tuple[tuple[int, ...], Array]], w: Array, groups: int) -> Array:
    total: Any = 0
    times = w.shape[0] // groups
    for position, view in views:
        at: tuple[Any, ...] = (slice(None), 0, *position)
        weight = w[at].reshape(1, -1, *[1] * (view.ndim - 2))
        total = total + (np.repeat(view, times, axis=1) if times > 1 else view) * weight
    return total


def conv_transpose(call: Call, x: Array, w: Array) -> Array:
    """w: [C, O/G, kernel...]; every input element adds its kernel to the output, then pads are cut off."""
    if not _is_plain(call) or x.dtype.kind != "f":
        return NotImplemented
    a, x, w = call.attrs, x.astype("float32"), w.astype("float32")
    strides, dilations, padding = _ints(a.strides), _ints(a.dilation), _ints(a.padding)
    groups, rank, extra = int(a.groups), x.ndim - 2, _ints(a.output_padding)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    full = [(size - 1) * s + r + e for size, s, r, e in zip(x.shape[2:], strides, reach, extra, strict=True)]
    y = np.zeros((x.shape[0], groups * w.shape[1], *full), "float32")
    rows = w.reshape(groups, -1, w.shape[1], *w.shape[2:])
    columns = x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)
    for position in itertools.product(*map(range, w.shape[2:])):
        at: tuple[Any, ...] = (..., *position)
        part = np.matmul(rows[at].transpose(0, 2, 1), columns)
        cut = [slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in
               zip(position, dilations, x.shape[2:], strides, strict=True)]  # fmt: skip
        y[(slice(None), slice(None), *cut)] += part.reshape(x.shape[0], -1, *x.shape[2:])
    ends = [size - end for size, end in zip(full, padding[rank:], strict=True)]
    return y[(slice(None), slice(None), *map(slice, padding[:rank], ends))]


def max_pool(call: Call, x: Array) -> Array:
    """Pads never win."""
    a = call.attrs
    if a.ceil_mode:
        return NotImplemented
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    views = _windows(_padded(x, _ints(a.padding), lowest), _ints(a.pool_size), _ints(a.strides), _ints(a.dilation))
    return functools.reduce(np.maximum, (view for _, view in views))


def avg_pool(call: Call, x: Array) -> Array:
    """The mean over each window, pads counted as zeros or not at all."""
    a = call.attrs
    if a.ceil_mode:
        return NotImplemented
    options = (_ints(a.pool_size), _ints(a.strides), _ints(a.dilation))
    total: Any = sum(view.astype("float64") for _, view in _windows(_padded(x, _ints(a.padding), 0), *options))
    if a.count_include_pad:
        return total / np.prod(options[0])
    ones = _padded(np.ones((1, 1, *x.shape[2:]), x.dtype), _ints(a.padding), 0)
    count: Any = sum(view for _, view in _windows(ones, *options))
    return total / count
