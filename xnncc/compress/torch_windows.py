"""Convolutions and pools in torch, with Relax's attributes. x: [N, C, spatial...]."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from tvm.ir import Call


def _ints(values: Any) -> list[int]:
    return [int(value) for value in values]


def _is_plain(call: Call) -> bool:
    layout, kernel, out = call.attrs.data_layout, call.attrs.kernel_layout, call.attrs.out_layout
    return layout in ("NCW", "NCHW", "NCDHW") and kernel[:2] in ("OI", "IO") and out in ("", layout)


def _padded(x: Tensor, padding: list[int], value: float) -> tuple[Tensor, list[int]]:
    """Return x and symmetric pads for torch: pads that differ on two sides, or are not zeros, are added here."""
    rank = x.ndim - 2
    low, high = padding[:rank], padding[rank:]
    if low == high and value == 0:
        return x, low
    widths = [w for pair in reversed(list(zip(low, high, strict=True))) for w in pair]
    return F.pad(x, widths, value=value), [0] * rank


def conv(call: Call, x: Tensor, w: Tensor) -> Tensor | None:
    """w: [O, C/G, kernel...]."""
    if not _is_plain(call):
        return None
    a = call.attrs
    x, pads = _padded(x, _ints(a.padding), 0)
    run = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[x.ndim - 2]
    return run(x, w, None, _ints(a.strides), pads, _ints(a.dilation), int(a.groups))


def conv_transpose(call: Call, x: Tensor, w: Tensor) -> Tensor | None:
    """w: [C, O/G, KH, KW]; pads that differ on two sides are cut off afterwards."""
    if not _is_plain(call):
        return None
    a = call.attrs
    padding, extra = _ints(a.padding), _ints(a.output_padding)
    y = F.conv_transpose2d(x, w, None, _ints(a.strides), 0, extra, int(a.groups), _ints(a.dilation))
    top, left, bottom, right = padding
    return y[:, :, top : y.shape[2] - bottom, left : y.shape[3] - right]


def max_pool(call: Call, x: Tensor) -> Tensor | None:
    """Pads never win."""
    a = call.attrs
    if a.layout != "NCHW" or a.ceil_mode:
        return None
    x, pads = _padded(x, _ints(a.padding), float("-inf")) if any(_ints(a.padding)) else (x, [0, 0])
    return F.max_pool2d(x, _ints(a.pool_size), _ints(a.strides), pads, _ints(a.dilation))


def avg_pool(call: Call, x: Tensor) -> Tensor | None:
    """The mean over each window, pads counted as zeros or not at all."""
    a = call.attrs
    padding = _ints(a.padding)
    if a.layout != "NCHW" or a.ceil_mode or any(d != 1 for d in _ints(a.dilation)):
        return None
    size, strides = _ints(a.pool_size), _ints(a.strides)
    if padding[:2] == padding[2:]:
        return F.avg_pool2d(x, size, strides, padding[:2], count_include_pad=bool(a.count_include_pad))
    padded, _ = _padded(x, padding, 0.0)
    mean = F.avg_pool2d(padded, size, strides)
    if a.count_include_pad:
        return mean
    ones, _ = _padded(torch.ones_like(x[:1, :1]), padding, 0.0)  # torch counts what was padded by hand
    return mean / F.avg_pool2d(ones, size, strides)
