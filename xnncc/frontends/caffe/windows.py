"""Kernel, stride, pad and dilation of a layer over its spatial dimensions, as Caffe's fields give them."""

from __future__ import annotations

from collections.abc import Sequence

from .params import Params
from .refused import Broken

MAX_EXTENT = 2**16  # of a kernel, stride, pad or dilation: far beyond any network


def per_dimension(params: Params, field: str, rank: int, default: int | None, low: int) -> tuple[int, ...]:
    """Return ``field`` for each spatial dimension: given once for all, once each, or as ``_h`` and ``_w``."""
    short = field.removesuffix("_size")
    values = params.wholes(field, low)
    named = [params.has(f"{short}_{side}") for side in "hw"]
    if any(named):
        if values:
            raise Broken(f"{params.name} gives both {field} and {short}_h, {short}_w")
        if rank != 2:
            raise Broken(f"{params.name} gives {short}_h and {short}_w for {rank} spatial dimensions")
        fallback = default if default is not None else -1
        values = [params.whole(f"{short}_{side}", fallback, min(low, fallback)) for side in "hw"]
        if min(values) < low:
            raise Broken(f"{params.name} gives only one of {short}_h and {short}_w")
    if not values:
        if default is None:
            raise Broken(f"{params.name} gives no {field}")
        values = [default]
    if len(values) not in (1, rank):
        raise Broken(f"{params.name} gives {len(values)} values of {field} for {rank} spatial dimensions")
    if max(values) > MAX_EXTENT:
        raise Broken(f"{params.name} {field} is {max(values)}, larger than {MAX_EXTENT}")
    return tuple(values * rank if len(values) == 1 else values)


def reach(kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Return how many elements lie from the first to the last that a window reads."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
