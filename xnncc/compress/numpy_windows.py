"""Convolutions and pools over images in numpy with gradients, as ``numpy_operators.py`` describes them.

x: [N, C, H, W]. A convolution is one GEMM per group on im2col columns [N, G, C/G*KH*KW, OH*OW]; depthwise ones run tap
by tap, because their columns would be KH*KW copies of x for a product with one row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from tvm.ir import Call

Array = np.ndarray
Vjp = Callable[[Any], Sequence[Any]]


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


class Windows:
    """The windows that a kernel of ``kernel`` sees of an image of ``size``: where each tap lies in the padded image."""

    def __init__(self, call: Call, size: tuple[int, int], kernel: tuple[int, int]) -> None:
        a = call.attrs
        strides, dilation = _ints(a.strides), _ints(a.dilation)
        self.padding, self.kernel, self.size = _ints(a.padding), kernel, size
        top, left, bottom, right = self.padding
        self.padded = (size[0] + top + bottom, size[1] + left + right)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        self.outs = tuple((s - r) // t + 1 for s, r, t in zip(self.padded, reach, strides, strict=True))
        self._cuts = [
            tuple(
                slice(tap * d, tap * d + (out - 1) * s + 1, s)
                for tap, d, out, s in zip(taps, dilation, self.outs, strides, strict=True)
            )
            for taps in itertools.product(*map(range, kernel))
        ]

    def pad(self, x: Array, value: float = 0) -> Array:
        """Return x [..., H, W] with its pads."""
        if not any(self.padding):
            return x
        top, left, bottom, right = self.padding
        lead = [(0, 0)] * (x.ndim - 2)
        return np.pad(x, [*lead, (top, bottom), (left, right)], constant_values=value)

    def unpad(self, g: Array) -> Array:
        """Return the part of g [..., PH, PW] that is not pad."""
        top, left = self.padding[:2]
        return g[..., top : top + self.size[0], left : left + self.size[1]]

    def taps(self, padded: Array) -> Iterator[tuple[int, Array]]:
        """Yield each tap with its view [..., OH, OW] of the padded image: writing to it writes to the image."""
        for tap, cut in enumerate(self._cuts):
            at: tuple[Any, ...] = (..., *cut)
            yield tap, padded[at]

    def columns(self, x: Array, groups: int) -> Array:
        """Return [N, G, C/G*KH*KW, OH*OW] of x [N, C, H, W]."""
        batch, channels = x.shape[:2]
        taps = len(self._cuts)
        if taps == 1 and self.outs == x.shape[2:] and not any(self.padding):
            return x.reshape(batch, groups, channels // groups, -1)
        columns = np.empty((batch, channels, taps, *self.outs), x.dtype)
        for tap, view in self.taps(self.pad(x)):
            columns[:, :, tap] = view
        return columns.reshape(batch, groups, channels // groups * taps, -1)

    def uncolumns(self, columns: Array, channels: int) -> Array:
        """Return what ``columns`` gives back to x: every tap added where it came from."""
        batch = columns.shape[0]
        parts = columns.reshape(batch, channels, len(self._cuts), *self.outs)
        whole = np.zeros((batch, channels, *self.padded), columns.dtype)
        for tap, view in self.taps(whole):
            view += parts[:, :, tap]
        return self.unpad(whole)


def is_plain(call: Call) -> bool:
    """The layouts are those of ONNX and Caffe."""
    layout, kernel, out = call.attrs.data_layout, call.attrs.kernel_layout, call.attrs.out_layout
    return layout == "NCHW" and kernel in ("OIHW", "IOHW") and out in ("", layout)


def conv(call: Call, x: Array, w: Array) -> tuple[Array, Vjp] | None:
    """w: [O, C/G, KH, KW] -> [N, O, OH, OW]."""
    if not is_plain(call):
        return None
    groups, windows = int(call.attrs.groups), Windows(call, x.shape[2:], w.shape[2:])
    if groups == x.shape[1] == w.shape[0] and groups > 1:
        return _depthwise(windows, x, w)
    columns = windows.columns(x, groups)
    rows = w.reshape(groups, w.shape[0] // groups, -1)
    y = np.matmul(rows, columns).reshape(x.shape[0], w.shape[0], *windows.outs)

    def vjp(g: Array) -> Sequence[Any]:
        out = g.reshape(x.shape[0], groups, rows.shape[1], -1)
        by_w = np.matmul(out, columns.swapaxes(-1, -2)).sum(axis=0).reshape(w.shape)
        return windows.uncolumns(np.matmul(rows.swapaxes(-1, -2), out), x.shape[1]), by_w

    return y, vjp


def _depthwise(windows: Windows, x: Array, w: Array) -> tuple[Array, Vjp]:
    padded, by_tap = windows.pad(x), w.reshape(w.shape[0], -1)
    y = np.zeros((*x.shape[:2], *windows.outs), x.dtype)
    for tap, view in windows.taps(padded):
        y += view * by_tap[:, tap, None, None]

    def vjp(g: Array) -> Sequence[Any]:
        by_w, by_x = np.empty_like(by_tap), np.zeros_like(padded)
        for tap, view in windows.taps(padded):
            by_w[:, tap] = np.einsum("nchw,nchw->c", view, g)
        for tap, view in windows.taps(by_x):
            view += g * by_tap[:, tap, None, None]
        return windows.unpad(by_x), by_w.reshape(w.shape)

    return y, vjp


class _Spread:
    """The call of a transposed convolution as the convolution that it is the transpose of, for ``Windows``."""

    def __init__(self, call: Call) -> None:
        self.attrs = call.attrs


def transposed_windows(call: Call, x: Array, w: Array) -> Windows:
    """Return the windows that the forward convolution has on the output of the transposed one."""
    a = call.attrs
    strides, dilation, padding, extra = (_ints(v) for v in (a.strides, a.dilation, a.padding, a.output_padding))
    size = [
        (n - 1) * s + (k - 1) * d + 1 + e - low - high
        for n, s, k, d, e, low, high in zip(
            x.shape[2:], strides, w.shape[2:], dilation, extra, padding[:2], padding[2:], strict=True
        )
    ]
    return Windows(_Spread(call), (size[0], size[1]), w.shape[2:])


def conv_transpose(call: Call, x: Array, w: Array) -> tuple[Array, Vjp] | None:
    """w: [C, O/G, KH, KW]; each element of x adds its kernel to the output."""
    if not is_plain(call):
        return None
    groups, windows = int(call.attrs.groups), transposed_windows(call, x, w)
    rows = w.reshape(groups, w.shape[0] // groups, -1)  # [G, C/G, O/G*KH*KW]
    flat = x.reshape(x.shape[0], groups, rows.shape[1], -1)
    y = windows.uncolumns(np.matmul(rows.swapaxes(-1, -2), flat), groups * w.shape[1])

    def vjp(g: Array) -> Sequence[Any]:
        columns = windows.columns(g, groups)
        by_w = np.matmul(flat, columns.swapaxes(-1, -2)).sum(axis=0).reshape(w.shape)
        return np.matmul(rows, columns).reshape(x.shape), by_w

    return y, vjp


def max_pool(call: Call, x: Array) -> tuple[Array, Vjp] | None:
    """Pads never win; of equal elements the first gets the gradient."""
    if call.attrs.ceil_mode or call.attrs.layout != "NCHW":
        return None
    windows = Windows(call, x.shape[2:], _ints(call.attrs.pool_size))  # type: ignore[arg-type]
    padded = windows.pad(x, -np.inf)
    y = np.full((*x.shape[:2], *windows.outs), -np.inf, x.dtype)
    for _, view in windows.taps(padded):
        np.maximum(y, view, out=y)

    def vjp(g: Array) -> Sequence[Any]:
        whole, left = np.zeros_like(padded), g.copy()
        for (_, view), (_, to) in zip(windows.taps(padded), windows.taps(whole), strict=True):
            hit = np.where(view == y, left, 0)
            to += hit
            left[view == y] = 0
        return (windows.unpad(whole),)

    return y, vjp


def avg_pool(call: Call, x: Array) -> tuple[Array, Vjp] | None:
    """The mean over each window, pads counted as zeros or not at all."""
    if call.attrs.ceil_mode or call.attrs.layout != "NCHW":
        return None
    windows = Windows(call, x.shape[2:], _ints(call.attrs.pool_size))  # type: ignore[arg-type]
    total = np.zeros((*x.shape[:2], *windows.outs), x.dtype)
    for _, view in windows.taps(windows.pad(x)):
        total += view
    count = np.full(windows.outs, np.prod(windows.kernel), x.dtype)
    if not call.attrs.count_include_pad:
        count = np.zeros(windows.outs, x.dtype)
        for _, view in windows.taps(windows.pad(np.ones(x.shape[2:], x.dtype))):
            count += view

    def vjp(g: Array) -> Sequence[Any]:
        whole, share = np.zeros((*x.shape[:2], *windows.padded), g.dtype), g / count
        for _, view in windows.taps(whole):
            view += share
        return (windows.unpad(whole),)

    return total / count, vjp
